"""docs/reliability.md row by row: what a run leaves behind when something stops it, and how it goes on."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from faulty import Forks, leftovers, results, write_recipe

from pipeline.records.io import read
from pipeline.records.run import Run
from pipeline.run import all_runs

KILLED = -9
pytestmark = pytest.mark.xdist_group("faults")  # one server and one whole run for all of them


@pytest.fixture(scope="module")
def forks(tmp_path_factory):
    made = Forks(tmp_path_factory.mktemp("forks"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def whole(forks, tmp_path_factory):
    """The recipe, and its results when nothing stops it."""
    folder = tmp_path_factory.mktemp("whole")
    recipe = write_recipe(folder / "recipe")
    code, output = forks("none", "run", recipe, "--workspace", folder, "-q")
    assert code == 0, output
    return recipe, folder


def last_run(workspace: Path) -> Run:
    return read(all_runs(workspace, "faults")[-1] / "run.json", Run)


def frozen(workspace: Path) -> bytes:
    return next(workspace.glob("engines/faults/freeze-*/sparse.safetensors")).read_bytes()


def test_a_run_killed_at_three_points_ends_as_if_nothing_had_happened(forks, whole, tmp_path):
    recipe, unbroken = whole
    for point, stage in (("dense-epoch-written", "train"), ("train-output-unnamed", "train"), ("first-arm-exported", "export")):
        code, output = forks(point, "run", recipe, "--workspace", tmp_path, "-q")
        assert code == KILLED, output
        assert [name.rpartition("-")[0] for name in leftovers(tmp_path)] == [stage]
    code, output = forks("none", "run", recipe, "--workspace", tmp_path, "-q")
    assert code == 0, output
    assert results(tmp_path) == results(unbroken)
    assert leftovers(tmp_path) == []


def test_training_goes_on_from_its_last_epoch(forks, whole, tmp_path):
    recipe, _ = whole
    assert forks("dense-epoch-written", "run", recipe, "--workspace", tmp_path, "--until", "train")[0] == KILLED
    history = next(tmp_path.rglob("history.csv"))
    code, output = forks("none", "run", recipe, "--workspace", tmp_path, "--until", "train")
    assert code == 0
    epochs = [line.split(",")[:2] for line in next(tmp_path.rglob("history.csv")).read_text().splitlines()[1:]]
    assert epochs == [["dense", str(i)] for i in (1, 2, 3, 4)] + [["finetune", str(i)] for i in (1, 2, 3)]
    assert "train dense 2.25/4" in output or "train dense 2.5/4" in output
    assert not history.exists()


@pytest.mark.parametrize(("signal", "code"), [("sigterm", 143), ("sigint", 130)])
def test_a_signal_stops_the_run_and_run_json_says_so(forks, whole, tmp_path, signal, code):
    recipe, unbroken = whole
    found, output = forks(signal, "run", recipe, "--workspace", tmp_path, "-q")
    assert (found, last_run(tmp_path).result) == (code, "stopped")
    assert "Traceback" not in output
    assert [status.status for status in last_run(tmp_path).stages] == ["skipped"] * 7
    assert forks("none", "run", recipe, "--workspace", tmp_path, "-q", "--until", "freeze")[0] == 0
    assert frozen(tmp_path) == frozen(unbroken)


def test_a_stage_that_raises_is_exit_4_without_traceback_and_keeps_what_was_done(forks, whole, tmp_path):
    recipe, _ = whole
    code, output = forks("raise", "run", recipe, "--workspace", tmp_path, "-q")
    assert code == 4
    assert "stage train failed: ZeroDivisionError: by a fault" in output and "Traceback" not in output
    run = last_run(tmp_path)
    assert run.result == "failed" and run.stages[0].status == "failed" and "ZeroDivisionError" in run.stages[0].error
    assert [name.endswith(".partial") for name in leftovers(tmp_path)] == [True]
    assert "Traceback" in forks("raise", "--debug", "run", recipe, "--workspace", tmp_path, "-q")[1]


def test_a_full_disk_while_training_is_said_and_training_goes_on_later(forks, whole, tmp_path):
    recipe, unbroken = whole
    code, output = forks("file-size=9000", "run", recipe, "--workspace", tmp_path, "-q")
    assert code == 4
    assert "stage train stopped: File too large" in output and "next: raise the limit" in output and "Traceback" not in output
    run = last_run(tmp_path)
    assert run.result == "failed"
    assert not list(tmp_path.rglob("*.resume")) and not [path for path in tmp_path.rglob(".*") if path.suffix != ".lock"]
    assert forks("none", "run", recipe, "--workspace", tmp_path, "-q", "--until", "freeze")[0] == 0
    assert frozen(tmp_path) == frozen(unbroken)


def test_a_disk_that_fills_up_while_training_leaves_a_run_that_says_so(forks, whole, tmp_path):
    recipe, unbroken = whole
    code, output = forks("full-disk=3", "run", recipe, "--workspace", tmp_path, "-q")
    assert code == 4
    assert "stage train stopped: No space left on device" in output and "next: free space on the disk" in output
    run = last_run(tmp_path)
    assert (run.result, [status.status for status in run.stages]) == ("failed", ["failed"] + ["skipped"] * 6)
    assert run.stages[0].error in output
    report = " ".join(forks("none", "report", "faults", "--workspace", tmp_path)[1].split())
    assert "next: mend stage train and run again: train: " in report and "\\x0a" not in report
    assert forks("none", "run", recipe, "--workspace", tmp_path, "-q", "--until", "freeze")[0] == 0
    assert frozen(tmp_path) == frozen(unbroken)


def test_a_disk_too_full_for_run_json_is_one_clear_error(forks, whole, tmp_path):
    recipe, _ = whole
    code, output = forks("file-size=500", "run", recipe, "--workspace", tmp_path, "-q")
    assert code == 4
    assert "cannot write the run's folder: File too large" in output and "Traceback" not in output
    assert not list(tmp_path.rglob("run.json"))


@pytest.mark.parametrize("folder", ["", "engines", "logs"])
def test_a_folder_without_write_permission_is_one_clear_error(forks, whole, tmp_path, folder):
    recipe, _ = whole
    locked = tmp_path / "workspace" / folder
    locked.mkdir(parents=True)
    locked.chmod(0o555)
    try:
        code, output = forks("permissions", "run", recipe, "--workspace", tmp_path / "workspace", "-q")
    finally:
        locked.chmod(0o755)
    assert code == 4, output
    assert "Permission denied" in output or "not writable" in output
    assert "next: choose another --workspace" in output and "Traceback" not in output
    assert not list((tmp_path / "workspace").rglob("*.partial"))


def test_stages_that_were_finished_before_a_kill_are_taken_from_the_store(forks, whole, tmp_path):
    recipe, unbroken = whole
    assert forks("measured-not-judged", "run", recipe, "--workspace", tmp_path, "-q")[0] == KILLED
    code, output = forks("none", "run", recipe, "--workspace", tmp_path, "-q")
    assert code == 0, output
    assert [status.status for status in last_run(tmp_path).stages] == ["cached"] * 6 + ["ok"]
    assert results(tmp_path) == results(unbroken)


def test_every_row_of_the_reliability_page_is_a_test():
    root = Path(__file__).resolve().parents[1]
    named = set(re.findall(r"`(test_\w+)`", (root.parent / "docs" / "reliability.md").read_text()))
    written = {name for path in root.rglob("test_*.py") for name in re.findall(r"^def (test_\w+)", path.read_text(), flags=re.M)}
    assert len(named) >= 15 and named <= written


def test_a_killed_run_reads_killed_with_the_command_that_goes_on_with_it(forks, whole, tmp_path):
    recipe, _ = whole
    words = ("--set", "train.threads=1", "--until", "freeze")
    assert forks("dense-epoch-written", "run", recipe, "--workspace", tmp_path, "-q", *words)[0] == KILLED
    state = json.loads((all_runs(tmp_path, "faults")[-1] / "run.json").read_text())
    assert state["result"] == "running" and state["stages"] == []
    go_on = f"sparsegate run {recipe} --set train.threads=1 --workspace {tmp_path} --until freeze"
    code, output = forks("none", "runs", "list", "--workspace", tmp_path)
    assert code == 0 and "killed" in output and f"go on with it: {go_on}" in output
    code, output = forks("none", "report", "faults", "--workspace", tmp_path)
    assert code == 0 and output.startswith("KILLED  faults/") and go_on in " ".join(output.split())
    code, output = forks("none", *go_on.split()[1:], "-q")
    assert code == 0, output
    assert [read(folder / "run.json", Run).result for folder in all_runs(tmp_path, "faults")] == ["running", "stopped"]
    code, output = forks("none", "runs", "list", "--workspace", tmp_path)
    assert [line.split()[1] for line in output.splitlines()] == ["killed", "stopped"]  # it was gone on with: no command
