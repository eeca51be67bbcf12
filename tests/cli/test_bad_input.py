"""Bad input gets one clear message on standard error and exit code 2: no traceback, nothing half-written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.cli import main
from pipeline.errors import ExitCode

ROOT = Path(__file__).resolve().parents[2]


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as stopped:
        main(list(words))
    return int(stopped.value.code or 0), capsys.readouterr().err


def absent(path: Path) -> None:
    pass


def empty(path: Path) -> None:
    path.write_bytes(b"")


def binary(path: Path) -> None:
    path.write_bytes(bytes(range(256)) * 8)


def folder(path: Path) -> None:
    path.mkdir()


FILES: dict[str, Callable[[Path], None]] = {"missing": absent, "empty": empty, "binary": binary, "folder": folder}
COMMANDS = {
    "recipe": ("run", "in.yaml"),
    "validate": ("validate", "in.yaml"),
    "onnx": ("check", "in.onnx"),
    "prune": ("prune", "in.onnx", "-o", "out.onnx"),
    "log": ("tactics", "in.log"),
    "run": ("report", "in.run"),
    "gate": ("gate", "in.run"),
    "explain": ("explain", "in.run", "layer"),
    "diff": ("diff", "in.log", "in.log"),
    "bench": ("bench", "in.onnx"),
}


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_that_cannot_be_used_is_one_message_and_exit_code_2(command, kind, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = COMMANDS[command]
    FILES[kind](tmp_path / words[1])
    code, message = run(capsys, *words)
    assert code == ExitCode.USAGE, message
    assert words[1] in message
    assert "Traceback" not in message
    assert len(message.strip().splitlines()) <= 6, message
    left = {path.name for path in tmp_path.iterdir()}
    assert left <= {words[1], "logs", "engines"} and not any(path.is_file() for path in tmp_path.glob("*/**/*")), left


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("rnu",), "did you mean 'run'"),
        (("run", "recipes/quickstart.yaml", "--until", "tain"), "stages: train"),
        (("run", "recipes/quickstart.yaml", "--set", "train.dense.epochz=3"), "epochs"),
        (("run", "recipes/quickstart.yaml", "--set", "train.dense.epochs=many"), "train.dense.epochs"),
        (("run", "recipes/quickstart.yaml", "--from", "measure", "--until", "train"), "stop after train before it comes to measure"),
        (("tactics", "recipes/samples/trt104_verbose.log", "--build", "7"), "there is no build 7"),
        (("tactics", "recipes/samples/trt104_verbose.log", "--build", "-1"), "there is no build -1"),
        (("run",), "Missing argument"),
        (("report", "no-such-recipe"), "no run"),
        (("schema", "nothing"), "nothing"),
    ],
)
def test_wrong_usage_says_what_is_right(words, says, tmp_path, monkeypatch, capsys):
    words = tuple(str(ROOT / word) if word.startswith("recipes/") else word for word in words)
    monkeypatch.chdir(tmp_path)
    code, message = run(capsys, *words)
    assert code == ExitCode.USAGE
    assert says in message
    assert "Traceback" not in message


def test_a_recipe_with_several_faults_names_each_with_its_line(tmp_path, capsys):
    recipe = tmp_path / "r.yaml"
    recipe.write_text("name: x\nmodle: {python: a.py:b}\ndata: {digits: true}\ntrain:\n  dense: {epochs: -1}\n")
    code, message = run(capsys, "validate", str(recipe))
    assert code == ExitCode.USAGE
    assert f"{recipe}:2:1" in message and "model" in message
    assert f"{recipe}:5:" in message


def test_a_truncated_recipe_is_refused(tmp_path, capsys):
    whole = (ROOT / "recipes" / "quickstart.yaml").read_text()
    recipe = tmp_path / "r.yaml"
    recipe.write_text(whole[: whole.index("heads") if "heads" in whole else whole.index("dense: {") + 12])
    code, message = run(capsys, "validate", str(recipe))
    assert code == ExitCode.USAGE
    assert f"{recipe}:" in message


def test_a_truncated_onnx_file_is_refused(quickstart_run, tmp_path, capsys):
    data = (quickstart_run.stage_folder("export") / "sparse.onnx").read_bytes()
    model = tmp_path / "cut.onnx"
    model.write_bytes(data[: len(data) // 2])
    code, message = run(capsys, "check", str(model))
    assert code == ExitCode.USAGE
    assert "cut.onnx" in message


def test_a_truncated_checkpoint_is_refused(quickstart_run, tmp_path, capsys):
    data = (quickstart_run.stage_folder("train") / "dense.safetensors").read_bytes()
    (tmp_path / "cut.safetensors").write_bytes(data[: len(data) // 2])
    overrides = ["--set", f"model.checkpoint={tmp_path / 'cut.safetensors'}"]
    code, message = run(capsys, "run", str(quickstart_run.recipe), *overrides, "--workspace", str(tmp_path), "--quiet")
    assert code == ExitCode.USAGE
    assert "cut.safetensors" in message


def test_a_wrong_command_leaves_no_run_behind(tmp_path, capsys):
    words = ("run", str(ROOT / "recipes" / "quickstart.yaml"), "--from", "gate", "--workspace", str(tmp_path), "--quiet")
    assert run(capsys, *words)[0] == ExitCode.USAGE
    assert not list(tmp_path.glob("logs/*/*"))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("check", "m.onnx", "--estimate", "--require", "*"), "without --estimate"),
        (("check", "m.onnx", "--gpu", "A30"), "--gpu belongs to the estimate"),
        (("check", "m.onnx", "--tensorrt", "8602"), "8.6.2"),
        (("bench", "m.onnx", "--seconds", "nan"), ""),
    ],
)
def test_options_that_cannot_be_followed_are_refused(words, says, quickstart_run, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.onnx").write_bytes((quickstart_run.stage_folder("export") / "sparse.onnx").read_bytes())
    code, message = run(capsys, *words)
    assert code == ExitCode.USAGE, message
    assert says in message


def test_an_unforeseen_error_is_no_failed_rule_and_debug_shows_it_anywhere_on_the_line(monkeypatch, capsys, tmp_path):
    from pipeline import api

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a fault")

    monkeypatch.setattr(api, "read_log", broken)
    code, message = run(capsys, "tactics", "x.log")
    assert code == ExitCode.STAGE
    assert "ZeroDivisionError: a fault" in message and "--debug" in message
    code, message = run(capsys, "tactics", "x.log", "--debug")
    assert code == ExitCode.STAGE
    assert "Traceback" in message and "in broken" in message and "ZeroDivisionError: a fault" in message


@pytest.mark.parametrize("words", [["--help"], ["tactics", "recipes/samples/trt104_verbose.log"]])
def test_a_closed_pipe_reads_as_one_and_not_as_a_failed_rule(words):
    done = subprocess.Popen([sys.executable, "-m", "pipeline", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT)
    done.stdout.close()
    assert done.wait(30) == 141
    assert done.stderr.read() == b""


def test_a_sweep_with_a_wrong_point_is_refused_before_it_runs(tmp_path, capsys):
    recipe = tmp_path / "r.yaml"
    text = (ROOT / "recipes" / "quickstart.yaml").read_text().replace("quickstart/", f"{ROOT}/recipes/quickstart/")
    recipe.write_text(text + "\nsweep: {export.batch.opt: [8, x]}\n")
    for command in ("validate", "run"):
        code, message = run(capsys, command, str(recipe))
        assert code == ExitCode.USAGE
        assert "export.batch.opt" in message


def made_run(workspace: Path, recipe: str) -> None:
    folder = workspace / "logs" / recipe / "1"
    folder.mkdir(parents=True)
    (folder / "run.json").write_text("{}")


@pytest.mark.parametrize("name", ["", "  "])
@pytest.mark.parametrize("command", [("gate",), ("report",), ("explain", "layer"), ("diff", "")])
def test_an_empty_name_picks_no_run(command, name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    made_run(tmp_path, "vit")
    first, *rest = command
    code, message = run(capsys, first, name, *rest)
    assert code == ExitCode.USAGE
    assert "a run's name is empty" in message and "recipes with runs: vit" in message


def test_a_name_is_no_pattern(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    made_run(tmp_path, "vit")
    code, message = run(capsys, "report", "v*")
    assert code == ExitCode.USAGE
    assert "no run 'v*'" in message


@pytest.mark.parametrize("name", ["typo", ""])
def test_a_recipe_without_runs_is_told_from_a_workspace_without_runs(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    made_run(tmp_path, "vit")
    code, message = run(capsys, "runs", "list", name)
    assert code == ExitCode.USAGE
    assert f"no recipe with runs is called {name!r}" in message and "recipes with runs: vit" in message


def test_debug_shows_where_and_leaves_the_exit_code(capsys):
    code, message = run(capsys, "--debug", "report", "nope")
    assert code == ExitCode.USAGE
    assert "Traceback" in message and "sparsegate: no run 'nope'" in message
    assert "Traceback" not in run(capsys, "report", "nope")[1]


LOG = "recipes/samples/trt104_verbose.log"


@pytest.mark.parametrize(
    ("line", "says"),
    [(f"tactics {LOG} >&-", "standard output is closed"), ("tactics - <&-", "standard input is closed")],
)
def test_a_closed_stream_is_one_message_and_exit_code_2(line, says):
    done = subprocess.run(["sh", "-c", f"{sys.executable} -m pipeline {line}"], stderr=subprocess.PIPE, text=True, cwd=ROOT, check=False)
    assert done.returncode == ExitCode.USAGE, done.stderr
    assert says in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("style", ["text", "json"])
def test_a_name_that_the_encoding_lacks_is_escaped_as_json_reads_it(style, tmp_path):
    name = "caf\u00e9/\u5c42\U0001f600"
    log = tmp_path / "b.log"
    log.write_bytes((ROOT / LOG).read_bytes().replace(b"stage0/block3", name.encode()))
    words = [sys.executable, "-m", "pipeline", "tactics", str(log), "--format", style]
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    done = subprocess.run(words, capture_output=True, cwd=ROOT, env=environment, check=False)
    assert done.returncode == ExitCode.PASS, done.stderr
    assert b"caf\xe9/\\u5c42" in done.stdout
    if style == "json":
        assert name in json.dumps(json.loads(done.stdout.decode("latin-1")), ensure_ascii=False)
