"""The latest run is the one that began last, whatever the clock says; no two runs share a folder."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pipeline.run import all_runs, find, workspace
from pipeline.run.workspace import new_run, next_id

NOW = 1_796_083_200 * 10**9


def begin(folder: Path, recipe: str = "net") -> Path:
    made = new_run(folder, recipe)
    (made / "run.json").touch()
    return made


def set_clock(monkeypatch: pytest.MonkeyPatch, nanoseconds: int) -> None:
    monkeypatch.setattr(workspace.time, "time_ns", lambda: nanoseconds)


def test_runs_begun_within_one_second_are_listed_in_their_order(tmp_path):
    begun = [begin(tmp_path) for _ in range(20)]
    assert all_runs(tmp_path) == begun
    assert find("net", tmp_path) == begun[-1]


@pytest.mark.parametrize("back", [0, 1, 3600 * 10**9, 40 * 365 * 86400 * 10**9])
def test_a_clock_that_was_set_back_makes_no_older_run_the_latest(back, tmp_path, monkeypatch):
    set_clock(monkeypatch, NOW)
    before = [begin(tmp_path, "net"), begin(tmp_path, "other")]
    set_clock(monkeypatch, NOW - back)
    begun = [*before, begin(tmp_path, "net"), begin(tmp_path, "net")]
    assert all_runs(tmp_path) == begun
    assert find("net", tmp_path) == begun[-1]


@pytest.mark.parametrize("part", ["0000", "8000", "ffff"])
@pytest.mark.parametrize("later", [0, 10**9 // 2, 2 * 10**9])
def test_ids_of_earlier_versions_keep_their_place(part, later, tmp_path, monkeypatch):
    """They ended in four random hex digits."""
    old = tmp_path / "logs" / "net" / f"20261201T000000Z-{part}"
    old.mkdir(parents=True)
    (old / "run.json").touch()
    set_clock(monkeypatch, NOW + later)
    begun = begin(tmp_path)
    assert all_runs(tmp_path) == [old, begun]


def test_an_id_is_the_time_in_utc(tmp_path, monkeypatch):
    set_clock(monkeypatch, NOW + 5 * 10**8)
    assert next_id(tmp_path) == "20261201T000000Z-8000"


def test_a_folder_whose_name_is_no_id_moves_no_clock(tmp_path, monkeypatch):
    for name in ("copy", "20991301T000000Z-0000", "20990101T000000Z-0000.bak", "sweep-20990101T000000Z-0000.json"):
        (tmp_path / "logs" / "net" / name).mkdir(parents=True)
    set_clock(monkeypatch, NOW)
    assert next_id(tmp_path) == "20261201T000000Z-0000"


@pytest.mark.parametrize("broken", ["logs", "logs/net"])
def test_a_place_that_is_no_folder_is_an_error_and_not_another_runs(broken, tmp_path):
    (tmp_path / broken).parent.mkdir(exist_ok=True)
    (tmp_path / broken).symlink_to("nowhere")
    with pytest.raises(FileExistsError):
        new_run(tmp_path, "net")


def test_runs_begun_at_once_get_a_folder_each(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: new_run(tmp_path, "net"), range(64)))
    assert len(set(made)) == 64
    assert all(re.fullmatch(r"\d{8}T\d{6}Z-[0-9a-f]{4}", folder.name) for folder in made)
