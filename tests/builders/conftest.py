"""The stand-in trtexec and the emulated ssh and docker, as programs on a folder of their own."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

RECIPE = Path(__file__).resolve().parents[2] / "recipes" / "quickstart.yaml"
LIGHT = (
    "train.dense.epochs=0",
    "train.finetune.epochs=0",
    "train.masks.proposer=sparsegate",
    "data.args={select: 64, test: 64}",
    "gate.rules=[{kind: latency, over: dense, at_most: 1.1}, {kind: quality, over: dense, drop_at_most: 0.5}]",
)
"""The quickstart's network, untrained and on fewer samples: what is proven here is the way of its files, not its accuracy."""
STANDIN = Path(__file__).parent / "standin" / "trtexec.py"
PROGRAMS = {
    # what ssh does to its command: the words are joined with blanks, and a shell reads the result
    "ssh": 'while [ "${1#-}" != "$1" ]; do case "$1" in -[bcDEeFIiJLlmOopQRSWw]) shift 2;; *) shift;; esac; done; shift; exec sh -c "$*"',
    # what docker exec does: the words are passed on; without -i standard input stays outside
    "docker": 'shift; i=no; while [ "${1#-}" != "$1" ]; do [ "$1" = -i ] && i=yes; shift; done; shift; '
    '[ $i = yes ] && exec "$@"; exec "$@" < /dev/null',
}


@pytest.fixture(scope="session", autouse=True)
def known_models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The stand-in reads each ONNX file once, and knows it again by its bytes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STANDIN_CACHE", str(tmp_path_factory.mktemp("standin")))
        patch.setenv("STANDIN_SITE", sysconfig.get_path("purelib"))
        yield


@dataclass(frozen=True)
class Exported:
    """The quickstart's network in a workspace, as far as its ONNX files."""

    workspace: Path
    recipe: Path
    overrides: tuple[str, ...]
    evidence: Any
    folder: Path
    """Where the ONNX files are."""


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """Train and export once for this folder: for the chain, for TensorRT-RTX, and for ONNX Runtime's kernels."""
    from pipeline.run import run

    workspace = tmp_path_factory.mktemp("exported") / "workspace"
    evidence = run(RECIPE, overrides=LIGHT, workspace=workspace, last="export")
    status = next(status for status in evidence.run.stages if status.stage == "export")
    return Exported(workspace, RECIPE, LIGHT, evidence, workspace / "engines" / "quickstart" / status.folder)


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with `trtexec` (the stand-in), `ssh` and `docker`."""
    folder = tmp_path / "bin"
    folder.mkdir()
    lines = {"trtexec": f'exec "{sys.executable}" -S "{STANDIN}" "$@"', **PROGRAMS}
    for name, line in lines.items():
        file = folder / name
        file.write_text(f"#!/bin/sh\n{line}\n")
        file.chmod(0o755)
    return folder


@pytest.fixture
def standin(programs: Path, monkeypatch: pytest.MonkeyPatch):
    """Sets the stand-in's version and behaviour; returns options that name it."""

    def choose(version: str = "10.3.0", mode: str = "", **options: object) -> dict[str, object]:
        monkeypatch.setenv("STANDIN_VERSION", version)
        monkeypatch.setenv("STANDIN_MODE", mode)
        return {"trtexec": str(programs / "trtexec"), **options}

    return choose
