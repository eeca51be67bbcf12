"""The store keeps whole outputs only, knows them by what made them, and notices changed bytes."""

from __future__ import annotations

import hashlib
import multiprocessing as mp
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import StageError, TamperedError
from pipeline.records.tactics import TacticReport
from pipeline.run import store as store_module
from pipeline.run.store import OUTPUT_FILE, Store, key_of

PARTS = {"stage": "tactics", "revision": 1}


def work(folder: Path) -> TacticReport:
    (folder / "deep").mkdir(exist_ok=True)
    (folder / "deep" / "weights.bin").write_bytes(b"\x01\x02")
    return TacticReport(why_not="made")


def never(folder: Path) -> TacticReport:
    raise AssertionError("the stage ran although its output is stored")


json_values = st.recursive(st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4), lambda x: st.lists(x, max_size=3))


@given(st.dictionaries(st.text(max_size=5), json_values, max_size=5))
def test_a_key_does_not_depend_on_the_order_of_its_parts(parts):
    assert key_of(parts) == key_of(dict(reversed(list(parts.items()))))


def test_a_key_is_the_sha256_of_canonical_json():
    assert key_of({"b": 1, "a": [None]}) == hashlib.sha256(b'{"a":[null],"b":1}').hexdigest()


def test_a_stored_output_is_not_made_again(tmp_path):
    first = Store(tmp_path).make("tactics", PARTS, work)
    second = Store(tmp_path).make("tactics", PARTS, never)
    assert (first.cached, second.cached) == (False, True)
    assert first.output.digest == second.output.digest
    assert [file.path for file in second.output.files] == ["deep/weights.bin", "record.json"]


def test_other_parts_are_another_output(tmp_path):
    store = Store(tmp_path)
    assert store.make("tactics", PARTS, work).folder != store.make("tactics", {**PARTS, "revision": 2}, work).folder


def test_force_makes_it_again_in_the_same_place(tmp_path):
    store = Store(tmp_path)
    first = store.make("tactics", PARTS, work)
    again = store.make("tactics", PARTS, work, force=True)
    assert again.folder == first.folder
    assert not again.cached


def test_a_stage_that_raises_leaves_no_output_but_its_partial_to_go_on_from(tmp_path):
    def stops_halfway(folder: Path) -> TacticReport:
        (folder / "epoch1").write_text("done")
        raise StageError("out of patience")

    def goes_on(folder: Path) -> TacticReport:
        assert (folder / "epoch1").read_text() == "done"
        return TacticReport()

    store = Store(tmp_path)
    with pytest.raises(StageError):
        store.make("tactics", PARTS, stops_halfway)
    assert not list(tmp_path.glob(f"*/{OUTPUT_FILE}"))
    assert not store.make("tactics", PARTS, goes_on).cached
    assert not list(tmp_path.glob("*.partial"))


def unnamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The `.partial` of a run that ended when its output was whole."""

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Store, "_named", killed)
        with pytest.raises(KeyboardInterrupt):
            Store(tmp_path).make("tactics", PARTS, work)
    return next(tmp_path.glob("*.partial"))


def test_an_output_that_was_whole_when_its_run_was_killed_is_taken_as_it_is(tmp_path, monkeypatch):
    partial = unnamed(tmp_path, monkeypatch)
    stored = Store(tmp_path).make("tactics", PARTS, never)
    assert (stored.folder.name, stored.cached) == (partial.name.removesuffix(".partial"), False)
    assert Store(tmp_path).make("tactics", PARTS, never).cached
    assert not partial.exists()


@pytest.mark.parametrize("damage", ["deep/weights.bin", "record.json", "output.json"])
def test_an_output_that_is_not_whole_is_made_again(tmp_path, monkeypatch, damage):
    (unnamed(tmp_path, monkeypatch) / damage).write_bytes(b"{}")
    calls = []
    Store(tmp_path).make("tactics", PARTS, lambda folder: calls.append(folder) or work(folder))
    assert len(calls) == 1
    assert Store(tmp_path).make("tactics", PARTS, never).cached


def test_a_write_that_a_kill_cut_off_does_not_become_part_of_an_output(tmp_path):
    partial = Store(tmp_path).folder("tactics", key_of(PARTS)).with_suffix(".partial")
    (partial / "deep").mkdir(parents=True)
    (partial / "deep" / ".weights.bin.x3f").write_bytes(b"cut")
    stored = Store(tmp_path).make("tactics", PARTS, work)
    assert [file.path for file in stored.output.files] == ["deep/weights.bin", "record.json"]


@pytest.mark.parametrize("damage", ["change", "remove"])
def test_changed_bytes_stop_the_run_and_name_file_and_stage(tmp_path, damage):
    stored = Store(tmp_path).make("tactics", PARTS, work)
    victim = stored.folder / "deep" / "weights.bin"
    victim.write_bytes(b"\x01\x03") if damage == "change" else victim.unlink()
    with pytest.raises(TamperedError) as caught:
        Store(tmp_path).make("tactics", PARTS, never)
    assert "weights.bin" in str(caught.value)
    assert "stage tactics" in str(caught.value)
    assert "--force tactics" in str(caught.value)


def test_a_changed_output_can_be_made_again_by_force(tmp_path):
    stored = Store(tmp_path).make("tactics", PARTS, work)
    (stored.folder / "record.json").write_text("{}")
    assert Store(tmp_path).make("tactics", PARTS, work, force=True).record_bytes() != b"{}"


def _slow_worker(root: str, ran: str) -> None:
    def slow(folder: Path) -> TacticReport:
        with Path(ran).open("a") as file:
            file.write("ran\n")
        time.sleep(0.3)
        return work(folder)

    Store(Path(root)).make("tactics", PARTS, slow)


def test_two_processes_at_once_do_the_work_once(tmp_path):
    ran = tmp_path / "ran"
    context = mp.get_context("spawn")
    workers = [context.Process(target=_slow_worker, args=(str(tmp_path / "store"), str(ran))) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(30)
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert ran.read_text() == "ran\n"


def test_a_full_disk_is_said_before_work_begins(tmp_path, monkeypatch):
    monkeypatch.setattr(store_module, "FREE_BYTES", 1 << 62)
    with pytest.raises(StageError, match="MiB are free"):
        Store(tmp_path).make("tactics", PARTS, never)


def test_a_store_that_cannot_be_made_is_a_clear_error(tmp_path):
    (tmp_path / "engines").write_text("a file in the way")
    with pytest.raises(StageError, match="cannot make the store's folder"):
        Store(tmp_path / "engines" / "recipe").make("tactics", PARTS, never)
