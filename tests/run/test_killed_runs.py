"""A run that was killed is told from one that goes on: by its lock, never by a process number, and never for another host."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import crafted_run as c
import pytest
from msgspec.structs import replace

from pipeline import alive
from pipeline.records import io
from pipeline.records.run import RunProcess

HOLD = """
import os, sys, time
from pathlib import Path
import crafted_run as c
from pipeline import alive
from pipeline.records import io
with alive.held(Path(sys.argv[1])) as process:
    io.write(Path(sys.argv[1]) / "run.json", c.run(result="running", process=process, started="2026-11-30T10:11:12+00:00"))
    if sys.argv[2:] == ["fork"] and os.fork() == 0:
        os.write(1, f"{os.getpid()}\\n".encode())
        time.sleep(60)
        os._exit(0)
    os.write(1, b"held\\n")
    time.sleep(60)
"""


def stands(folder):
    return alive.as_it_stands(io.read(folder / "run.json", c.Run), folder).result


def start(folder, *words):
    made = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder), *words],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    said = {made.stdout.readline().strip() for _ in range(1 + len(words))}
    assert "held" in said
    return made, said - {"held"}


def test_a_run_reads_running_while_it_lives_and_killed_once_it_is(tmp_path):
    made, _ = start(tmp_path)
    assert stands(tmp_path) == "running"
    made.send_signal(signal.SIGSTOP)  # it makes no progress, but it lives
    assert stands(tmp_path) == "running"
    made.kill()
    made.communicate()
    assert stands(tmp_path) == "killed"
    assert io.read(tmp_path / "run.json", c.Run).result == "running"


def test_a_child_that_outlives_a_killed_run_does_not_keep_it_running(tmp_path):
    made, (child,) = start(tmp_path, "fork")
    try:
        made.kill()
        made.wait()
        assert stands(tmp_path) == "killed"
    finally:
        os.kill(int(child), signal.SIGKILL)


def written(folder, **facts):
    made = RunProcess(**({"pid": os.getpid(), "host": alive.platform.node(), "boot": alive._boot(), "locked": True} | facts))
    (folder / alive.LOCK_FILE).touch()
    io.write(folder / "run.json", c.run(result="running", process=made, started="2026-11-30T10:11:12+00:00"))
    return stands(folder)


def test_a_run_holds_room_for_its_last_words_and_keeps_its_lock_when_it_gives_it_back(tmp_path):
    lock = tmp_path / alive.LOCK_FILE
    with alive.held(tmp_path):
        assert lock.stat().st_blocks * 512 >= alive.ROOM_BYTES
        alive.make_room(tmp_path)
        assert lock.stat().st_blocks == 0 and alive._is_locked(lock)
    assert not lock.exists()


def test_another_process_with_the_number_of_a_killed_run_is_not_taken_for_it(tmp_path):
    assert written(tmp_path) == "killed"


@pytest.mark.parametrize("facts", [{"host": "elsewhere", "boot": "another"}, {"locked": False}], ids=["other host", "no locks there"])
def test_what_cannot_be_known_from_here_stays_running(tmp_path, facts):
    assert written(tmp_path, **facts) == "running"


@pytest.mark.parametrize(("booted", "result"), [("1790000000", "running"), ("1900000000", "killed")])
def test_a_run_from_before_this_hosts_start_was_killed_by_it(tmp_path, monkeypatch, booted, result):
    stat = tmp_path / "stat"
    stat.write_text(f"cpu 1 2 3\nbtime {booted}\n")
    monkeypatch.setattr(alive, "_STAT", stat)
    assert written(tmp_path, boot="an earlier one") == result


def test_a_run_that_ends_while_it_is_looked_at_reads_as_it_ended(tmp_path):
    written(tmp_path)
    running = io.read(tmp_path / "run.json", c.Run)
    io.write(tmp_path / "run.json", replace(running, result="pass"))
    assert alive.as_it_stands(running, tmp_path).result == "pass"


def test_a_run_without_a_word_about_its_process_stays_as_it_is_written(tmp_path):
    io.write(tmp_path / "run.json", c.run(result="running"))
    assert stands(tmp_path) == "running"
