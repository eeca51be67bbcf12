"""A path that leads nowhere is answered with the one that was meant, an empty one with exit code 2."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import click
import pytest

from pipeline.cli import COMMANDS, main, options
from pipeline.errors import ExitCode, InputError
from pipeline.paths import missing, near, unreadable


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as stopped:
        main(list(words))
    return int(stopped.value.code or 0), capsys.readouterr().err


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("logs/vit/20261201T000000Z-0000/run.json", "models/vit.onnx", "models/resnet.onnx", "build.log", "my recipe.yaml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}")
    return tmp_path


READERS = {
    "check": ("check", "{}"),
    "estimate": ("check", "{}", "--estimate"),
    "prune": ("prune", "{}", "-o", "out.onnx"),
    "tactics": ("tactics", "{}"),
    "onnx": ("tactics", "build.log", "--onnx", "{}"),
    "run": ("run", "{}"),
    "validate": ("validate", "{}"),
    "diff": ("diff", "{}", "build.log"),
    "bench": ("bench", "models/vit.onnx", "{}"),
    "inputs": ("bench", "models/vit.onnx", "--inputs", "{}"),
}


@pytest.mark.parametrize("given", ["models/resnt.onnx", "model/resnet.onnx", "mdoels/resnett.onnx"])
@pytest.mark.parametrize("reader", READERS)
def test_a_mistyped_path_is_answered_with_the_one_that_was_meant(reader, given, here, capsys):
    code, message = run(capsys, *(word.format(given) for word in READERS[reader]))
    assert code == ExitCode.USAGE
    assert given in message and "did you mean models/resnet.onnx?" in message


@pytest.mark.parametrize("command", [("report",), ("gate",), ("explain", "layer"), ("diff", "build.log")])
@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("vti", "vit"),
        ("vit/20261201T000000Z-0001", "vit/20261201T000000Z-0000"),
        ("lgos/vit/20261201T000000Z-0000", "logs/vit/20261201T000000Z-0000"),
    ],
)
def test_a_mistyped_run_is_answered_with_the_one_that_was_meant(command, given, meant, here, capsys):
    first, *rest = command
    code, message = run(capsys, first, given, *rest)
    assert code == ExitCode.USAGE
    assert f"run {given!r}" in message and f"did you mean {meant}?" in message and "recipes with runs: vit" in message


@pytest.mark.parametrize(("given", "step"), [("nowhere/a.log", "ls -l ."), ("models/x", "ls -l models"), ("/nowhere/a.log", "ls -l /")])
def test_where_nothing_is_called_alike_the_next_step_is_to_look(given, step, here, capsys):
    code, message = run(capsys, "tactics", given)
    assert code == ExitCode.USAGE
    assert message.rstrip().endswith(f"next: see what is there: {step}")


def test_a_folder_and_a_path_below_a_file_have_a_next_step(here, capsys):
    assert "next: name a file in that folder: ls models" in run(capsys, "check", "models")[1]
    assert "next: see what is there: ls -l ." in run(capsys, "check", "build.log/model.onnx")[1]


def test_a_name_with_spaces_is_quoted_so_that_it_can_be_given_as_it_stands(here):
    assert missing(Path("my_recipe.yaml")) == "did you mean 'my recipe.yaml'?"


def test_a_link_that_leads_nowhere_is_not_proposed(here):
    (here / "other.bin").symlink_to("gone")
    assert near(Path("other.bin")) is None and near(Path("othr.bin")) is None


def test_a_path_too_long_to_be_looked_up_is_answered_too(here, capsys):
    code, message = run(capsys, "check", "x" * 5000)
    assert code == ExitCode.USAGE
    assert "File name too long" in message and near(Path("x" * 5000)) is None


def test_what_else_the_system_refuses_has_a_next_step_too():
    error = unreadable("a b.log", PermissionError(13, os.strerror(13)))
    assert isinstance(error, InputError)
    assert (error.what, error.hint) == ("cannot read the file: Permission denied", "see what it is: ls -ld 'a b.log'")


def parameters() -> Iterator[tuple[str, click.Parameter]]:
    for name in COMMANDS:
        command = import_module(f"pipeline.cli.{name}").command
        for part in command.commands.values() if isinstance(command, click.Group) else [command]:
            yield from ((f"{name}: {param.name}", param) for param in part.params)


def test_no_command_takes_an_empty_path_for_the_current_folder():
    paths = {name: param.type for name, param in parameters() if isinstance(param.type, click.Path)}
    assert len(paths) >= 15
    assert [name for name, kind in paths.items() if not isinstance(kind, options.GivenPath)] == []


@pytest.mark.parametrize("reader", READERS)
def test_an_empty_path_is_refused(reader, here, capsys):
    code, message = run(capsys, *(word.format("") for word in READERS[reader]))
    assert code == ExitCode.USAGE
    assert "empty" in message


def test_an_empty_workspace_is_refused_and_an_empty_variable_is_none(here, monkeypatch, capsys):
    assert run(capsys, "runs", "list", "--workspace", "")[0] == ExitCode.USAGE
    monkeypatch.setenv("SPARSEGATE_WORKSPACE", "")
    assert "no runs yet" in run(capsys, "runs", "list", "nothing", "--workspace", "models")[1]
