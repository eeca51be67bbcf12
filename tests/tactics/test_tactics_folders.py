"""Folders as input: what cannot be read in them is told, what is something else is passed over, and each file is read once."""

from __future__ import annotations

import gzip
import json
import os
import random
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard

from pipeline import tactics
from pipeline.errors import InputError
from pipeline.report import tactics_csv, tactics_md, tactics_text
from pipeline.tactics import folders, reader
from pipeline.tactics.reader import _read_log as read_log

ROOT = Path(__file__).parent.parent.parent
LOG = (
    "&&&& RUNNING TensorRT.trtexec [TensorRT v100300] # trtexec --onnx=n.onnx --sparsity=enable\n"
    "[I] [TRT] (Sparsity) Found 2 layer(s) eligible to use sparse tactics: a, b\n"
    "[I] [TRT] (Sparsity) Chose 1 layer(s) using sparse tactics:, a\n"
    "&&&& PASSED TensorRT.trtexec [TensorRT v100300] # trtexec --onnx=n.onnx --sparsity=enable\n"
)
DAMAGED = {
    "cut.log.gz": (gzip.compress(LOG.encode())[:-12], "ended before"),
    "cut.log.zst": (zstandard.compress(LOG.encode())[:-4], "ended before"),
    "wrong.log.gz": (b"\x1f\x8b" + b"0" * 50, "cannot read the file"),
    "cut_layers.json": (b'{"Layers": [{"Name": "a", "LayerType": "Conv', "not readable JSON"),
    "cut_profile.json": (b'[{"count": 10}, {"name": "a", "averageMs": 0.1}, {"na', "not readable JSON"),
    "docker.json": (b'{"log":"[I] [TRT] x\\n"}\n{"log":"[I] [TRT] y\\n"}\n', "not readable JSON"),
    "net.plan": (b"ftrt" + bytes(100), "needs the package 'tensorrt'"),
}
UNRELATED = {
    "notes.txt": b"nothing here\n",
    "empty.log": b"",
    "picture.png": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20,
    "net.onnx": b"\x08\x07\x12\x07pytorch" + bytes(2000),
    "other.json": b'{"a": 1}',
    "cut_other.json": b'{"a": ',
    "training.jsonl": b'{"loss": 1}\n{"loss": 2}\n',
    "report.json": b'{"schema": "sparsegate.tactics/1"}',
    "notes.txt.gz": gzip.compress(b"nothing here\n"),
}


@pytest.fixture
def folder(tmp_path):
    inside = tmp_path / "logs"
    (inside / "deep" / "deeper").mkdir(parents=True)
    (inside / "deep" / "deeper" / "build.log").write_text(LOG)
    return inside


def read(folder):
    return tactics.read([str(folder)])


def command(*arguments, code):
    done = subprocess.run(
        [sys.executable, "-m", "pipeline", "tactics", *map(str, arguments)], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


def test_what_cannot_be_read_is_told_and_what_is_something_else_is_not(folder):
    for name, data in [*((name, data) for name, (data, _) in DAMAGED.items()), *UNRELATED.items()]:
        (folder / name).write_bytes(data)
    report = read(folder)
    assert [build.selected for build in report.builds] == [["a"]]
    assert len(report.sources) == 1
    assert [one.path for one in report.skipped] == sorted(str(folder / name) for name in DAMAGED)
    for one in report.skipped:
        assert DAMAGED[Path(one.path).name][1] in one.why
        assert one.hint
        assert not one.read


def test_a_stream_that_unpacks_to_more_than_its_bound_is_told(folder, monkeypatch):
    monkeypatch.setattr("pipeline.tactics.inputs.MAX_TEXT_BYTES", 1 << 20)
    monkeypatch.setattr("pipeline.tactics.inputs.BLOCK_BYTES", 1 << 16)
    (folder / "bomb.gz").write_bytes(gzip.compress((b"x" * 99 + b"\n") * 20_000))
    (one,) = read(folder).skipped
    assert one.path.endswith("bomb.gz")
    assert "unpacks to more than" in one.why


@pytest.mark.parametrize("render", [tactics_text.render, tactics_md.render])
def test_a_reader_sees_each_skipped_file(folder, render):
    for i in range(14):
        (folder / f"x{i:02}.log.gz").write_bytes(DAMAGED["cut.log.gz"][0])
    lines = render(read(folder)).replace("\\", "").splitlines()
    told = [line for line in lines if "skipped " in line]
    assert sum("ended before" in line for line in told) == tactics_text.MAX_SKIPPED
    assert any("4 more skipped files" in line for line in told)


def test_the_command_tells_people_on_stdout_and_programs_on_stderr(folder):
    (folder / "cut.log.gz").write_bytes(DAMAGED["cut.log.gz"][0])
    assert "cut.log.gz: cannot read" in command(folder, code=0).stdout
    table = command(folder, "--format", "csv", code=0)
    assert table.stdout == tactics_csv.render(read(folder))
    assert "cut.log.gz: cannot read" in table.stderr
    data = command(folder, "--format", "json", code=0)
    assert [Path(one["path"]).name for one in json.loads(data.stdout)["skipped"]] == ["cut.log.gz"]
    assert "cut.log.gz: cannot read" in data.stderr


def test_a_folder_in_which_all_is_damaged_is_an_error_that_names_the_first_files(tmp_path):
    for name, (data, _) in DAMAGED.items():
        (tmp_path / name).write_bytes(data)
    said = command(tmp_path, code=2).stderr
    assert "no TensorRT build found" in said
    assert said.count("\n  /") == 5
    assert "and 2 more" in said
    assert "cut.log.gz: cannot read the file" in said


@pytest.mark.parametrize("name", ["weights.bin", "net.onnx", "picture.png"])
def test_binary_files_of_a_folder_are_not_read_as_text(folder, monkeypatch, name):
    weights = random.Random(0).randbytes(40_000)
    onnx = b"".join(b"\x0a\x1c\x0a\x05input\x12\x06output\x1a\x05conv1\x22\x04Conv" for _ in range(100))
    data = {"weights.bin": b"".join(bytes([byte, 0]) for byte in weights), "net.onnx": onnx, "picture.png": b"\x89PNG\r\n" + weights}
    (folder / name).write_bytes(data[name])
    opened = []
    monkeypatch.setattr(reader, "_read_log", lambda number, file: opened.append(file.path) or read_log(number, file))
    assert len(read(folder).builds) == 1
    assert [Path(path).name for path in opened] == ["build.log"]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text.replace("\n", "\r\n\0\0\0").encode(),
        lambda text: "".join(f"\x1b[38;5;14m{line}\x1b[0m\n" for line in text.splitlines()).encode(),
        lambda text: (text + "größer" * 500).encode("latin-1"),
        lambda text: (text + "сборка" * 500).encode("utf-16"),
        lambda text: ("a\b\b\b\a" * 300 + "\n" + text).encode(),
        lambda text: text.encode() + bytes(5000),
    ],
    ids=["NULs", "colours", "latin-1", "utf-16", "backspaces", "NULs at the end"],
)
def test_a_spoilt_log_is_still_text(folder, spoil):
    (folder / "spoilt.log").write_bytes(spoil(LOG))
    assert len(read(folder).builds) == 2


def test_an_empty_folder_is_an_error(tmp_path):
    with pytest.raises(InputError, match="no TensorRT build found"):
        read(tmp_path)


def test_pipes_sockets_and_loops_of_links_do_not_hold_the_reader_up(folder, monkeypatch):
    os.mkfifo(folder / "pipe.log")
    monkeypatch.chdir(folder)  # a socket's path is short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket.log")
        (folder / "deep" / "loop").symlink_to(folder)
        (folder / "itself.log").symlink_to("itself.log")
        said = command(folder, "--format", "json", code=0)
    report = json.loads(said.stdout)
    assert len(report["builds"]) == 1
    assert [(Path(one["path"]).name, one["why"]) for one in report["skipped"]] == [("itself.log", "a link to no file that can be read")]


def test_a_link_to_a_folder_elsewhere_is_told_and_one_within_is_not(folder, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (folder / "data").symlink_to(tmp_path / "elsewhere")
    (folder / "latest").symlink_to("deep")
    report = read(folder)
    assert len(report.builds) == 1
    assert [one.path for one in report.skipped] == [str(folder / "data")]


@pytest.mark.parametrize("link", [os.link, os.symlink])
def test_a_file_of_two_names_is_one_build_by_its_own_name(folder, link):
    real = folder / "deep" / "deeper" / "build.log"
    link(real, folder / "again.log")
    (source,) = read(folder).sources
    assert source.path in (str(real), str(folder / "again.log"))
    assert link is os.link or source.path == str(real)


def test_a_file_that_is_given_twice_is_read_once_in_the_place_of_its_name(folder):
    real = str(folder / "deep" / "deeper" / "build.log")
    (folder / "zzz.log").write_text(LOG)
    for given in ([real, real], [str(folder), real], [real, str(folder)], [str(folder), str(folder)]):
        report = tactics.read(given)
        assert len(report.builds) == len({source.path for source in report.sources}) == (1 if given == [real, real] else 2)
    assert [source.path for source in tactics.read([str(folder), real]).sources] == [str(folder / "zzz.log"), real]


def test_a_copy_is_another_build(folder):
    (folder / "copy.log").write_text(LOG)
    assert len(read(folder).builds) == 2


def deny(monkeypatch, folder):
    scandir = os.scandir

    def refuse(path):
        if Path(path) == folder:
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)


def test_a_folder_within_that_may_not_be_opened_is_told(folder, monkeypatch):
    (folder / "private").mkdir()
    deny(monkeypatch, folder / "private")
    (one,) = read(folder).skipped
    assert one.path == str(folder / "private")
    assert "Permission denied" in one.why


def test_a_named_folder_that_may_not_be_opened_is_an_error(folder, monkeypatch):
    deny(monkeypatch, folder)
    with pytest.raises(InputError, match="cannot read the folder: Permission denied"):
        read(folder)


def test_a_folder_whose_files_may_only_be_listed_tells_of_each(folder, monkeypatch):
    """Read permission without that to enter: every look at what is in it is refused."""
    (folder / "locked").mkdir()
    (folder / "locked" / "second.log").write_text(LOG)
    (folder / "locked" / "within").mkdir()
    stat, lstat = Path.stat, Path.lstat

    def refusing(look):
        def refuse(path, **options):
            if path.parent == folder / "locked":
                raise PermissionError(13, "Permission denied", str(path))
            return look(path, **options)

        return refuse

    monkeypatch.setattr(Path, "stat", refusing(stat))
    monkeypatch.setattr(Path, "lstat", refusing(lstat))
    report = read(folder)
    assert len(report.builds) == 1
    assert [(Path(one.path).name, one.why) for one in report.skipped] == [("second.log", "cannot read the file: Permission denied")]


def test_a_folder_of_too_many_files_is_refused(folder, monkeypatch):
    monkeypatch.setattr(folders, "MAX_FOLDER_FILES", 3)
    for i in range(3):
        (folder / f"{i}.txt").touch()
    with pytest.raises(InputError, match="more than 3 files"):
        read(folder)


def test_a_named_file_without_a_build_is_told_beside_one_that_has_one(folder, tmp_path):
    (tmp_path / "wrong.txt").write_text("nothing here\n")
    (tmp_path / "empty.log").touch()
    report = tactics.read([str(folder), str(tmp_path / "wrong.txt"), str(tmp_path / "empty.log")])
    assert [(Path(one.path).name, one.why, one.read) for one in report.skipped] == [
        ("empty.log", "the file is empty", True),
        ("wrong.txt", "no TensorRT build found", True),
    ]
    assert len(report.sources) == 1


def test_an_empty_file_is_called_empty(tmp_path):
    (tmp_path / "empty.log").touch()
    assert "empty.log: the file is empty" in command(tmp_path / "empty.log", code=2).stderr


def test_json_lines_are_told_from_a_damaged_document(tmp_path):
    for name, hint in (("docker.json", "each line is JSON of its own"), ("cut_layers.json", "cut or damaged")):
        (tmp_path / name).write_bytes(DAMAGED[name][0])
        with pytest.raises(InputError) as caught:
            tactics.read([str(tmp_path / name)])
        assert hint in caught.value.hint
