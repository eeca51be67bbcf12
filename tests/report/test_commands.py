"""The commands that reports propose work as they stand: they keep the workspace, the overrides, and names that a shell would split."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import crafted_run as c
import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from pipeline import commands, report
from pipeline.cli import group
from pipeline.codes import DIAGNOSES
from pipeline.records import io
from pipeline.records.check import Target
from pipeline.records.run import RunProcess
from pipeline.report.check_next import next_step as check_next
from pipeline.report.words import wrapped
from pipeline.verdict import story


def laid(workspace: Path, **changes):
    """A run's folder below a workspace, and its evidence."""
    run = c.run(recipe_path="my recipes/a.yaml", overrides=["data.root=/a b", "gate.alpha=0.1"], **changes)
    folder = workspace / "logs" / run.recipe / run.id
    io.write(folder / "run.json", run)
    return replace(c.evidence(run=run), folder=folder)


def proposed(text: str) -> list[list[str]]:
    """The words of every command in a text."""
    return [shlex.split("sparsegate" + part.partition("; ")[0]) for part in text.split("sparsegate")[1:]]


@pytest.fixture
def away(tmp_path):
    return laid(tmp_path / "work space")


@pytest.mark.parametrize("row", DIAGNOSES, ids=lambda row: row.id)
def test_every_finding_keeps_recipe_overrides_and_workspace(away, row):
    for words in proposed(row.next.format(**commands.names(away))):
        if words[1] in ("run", "report", "explain", "gate"):
            assert words[words.index("--workspace") + 1] == str(away.folder.parents[2])
        if words[1] == "run":
            assert words[2:7] == ["my recipes/a.yaml", "--set", "data.root=/a b", "--set", "gate.alpha=0.1"]


@pytest.mark.parametrize("step", list(story.NEXT))
def test_every_next_step_of_a_story_keeps_them_too(away, step):
    for words in proposed(story.NEXT[step].format(**commands.names(away))):
        assert words[1] not in ("run", "report") or "--workspace" in words


def test_the_last_line_of_a_report_names_the_workspace_unless_it_is_the_current_folder(away, monkeypatch):
    there = f"--workspace {shlex.quote(str(away.folder.parents[2]))}"
    assert there in report.run_markdown(away).replace("\\_", "_")
    monkeypatch.chdir(away.folder.parents[2])
    assert "--workspace" not in report.run_markdown(away)


def test_a_copied_run_is_named_by_its_folder(away, tmp_path):
    copy = tmp_path / "copied"
    os.renames(away.folder, copy)
    assert commands.names(replace(away, folder=copy))["run"] == str(copy)


def test_a_recipe_is_found_from_another_folder_than_the_run_was_started_in(tmp_path):
    (tmp_path / "r.yaml").touch()
    run = c.run(recipe_path="r.yaml", started_in=str(tmp_path))
    assert commands.names(c.evidence(run=run))["recipe"].startswith(str(tmp_path / "r.yaml"))


def test_a_run_cut_short_is_continued_by_the_command_that_began_it(tmp_path):
    away = laid(tmp_path, limits=["--until", "export", "--force", "train"])
    (words,) = proposed(commands.again(away))
    assert words[2:] == [
        "my recipes/a.yaml", "--set", "data.root=/a b", "--set", "gate.alpha=0.1",
        "--workspace", str(tmp_path), "--until", "export", "--force", "train",
    ]  # fmt: skip


def test_hints_of_errors_are_filled_in():
    hint = "make it again: sparsegate run RECIPE --force build; or sparsegate runs prune"
    assert commands.filled(hint, recipe="a.yaml --set b=1", workspace=Path("/w")) == (
        "make it again: sparsegate run a.yaml --set b=1 --force build; or sparsegate runs prune --workspace /w"
    )


def test_gate_proposes_itself_with_everything_it_was_given(away, tmp_path):
    recipe = tmp_path / "strict.yaml"
    recipe.write_text(
        "name: s\nmodel: {onnx: m.onnx}\ndata: {digits: true}\n"
        "gate: {rules: [{kind: rungs, rung: selected, at_least: 1, layers: [nobody]}]}\n"
    )
    for stage in ("train", "export", "build", "tactics"):
        io.write(away.folder / "records" / f"{stage}.json", getattr(away, stage))
    words = ["gate", str(away.folder), "--recipe", str(recipe), "--workspace", str(tmp_path)]
    result = CliRunner().invoke(group, words)
    assert isinstance(result.exception, SystemExit), result.exception
    text = " ".join(result.output.split())
    assert f"sparsegate report crafted/{away.run.id} --workspace {shlex.quote(str(away.folder.parents[2]))} --format md" in text


@pytest.mark.parametrize(
    ("target", "kept"),
    [
        (Target(sm="8.0", typing="strong"), "--sm 8.0 --tensorrt 10.13 --typing strong"),
        (Target(tensorrt="8.6"), "--sm 8.6 --tensorrt 8.6"),
    ],
)
def test_check_keeps_what_was_said_of_the_target(target, kept):
    from test_check_names import checked  # a report of two 2:4 layers

    assert check_next(replace(checked(), target=target)).endswith(kept)


@pytest.mark.parametrize("width", [40, 80])
def test_a_proposed_command_stands_on_one_line(away, width):
    lines = report.run_text(replace(away, gate=None), width).splitlines()
    command = f"sparsegate gate {commands.names(away)['run']}"
    assert any(command in line for line in lines)


def test_prose_about_a_command_and_values_with_commas_are_no_obstacle():
    text = "set it: sparsegate run r.yaml --set a.b=1,2 --workspace 'w s', then (sparsegate explain tells each) go on for a while"
    lines = wrapped(text, 40)
    assert any(line.strip() == "sparsegate run r.yaml --set a.b=1,2 --workspace 'w s'," for line in lines)
    assert " ".join(" ".join(lines).split()) == text


def test_a_run_that_goes_on_is_waited_for_where_it_runs(away):
    made = RunProcess(pid=77, host="orin", boot="b", locked=True)
    running = replace(away, run=replace(away.run, result="running", process=made))
    last = " ".join(report.run_text(running, 80).split("\nnext: ")[-1].split())
    assert last.startswith("wait until it ends (process 77 on orin), then: sparsegate report ")


def test_a_run_that_was_told_to_stop_early_goes_on_without_that_limit(away):
    early = replace(away, run=replace(away.run, result="stopped", limits=["--until", "train"]))
    (words,) = proposed(report.run_text(early, 4000).split("\nnext: ")[-1])
    assert words[:3] == ["sparsegate", "run", "my recipes/a.yaml"] and "--until" not in words
