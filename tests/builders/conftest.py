"""The stand-in trtexec and the emulated ssh and docker, as programs on a folder of their own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

STANDIN = Path(__file__).parent / "standin" / "trtexec.py"
PROGRAMS = {
    # what ssh does to its command: the words are joined with blanks, and a shell reads the result
    "ssh": 'while [ "${1#-}" != "$1" ]; do case "$1" in -[bcDEeFIiJLlmOopQRSWw]) shift 2;; *) shift;; esac; done; shift; exec sh -c "$*"',
    # what docker exec does: the words are passed on; without -i standard input stays outside
    "docker": 'shift; i=no; while [ "${1#-}" != "$1" ]; do [ "$1" = -i ] && i=yes; shift; done; shift; '
    '[ $i = yes ] && exec "$@"; exec "$@" < /dev/null',
}


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with `trtexec` (the stand-in), `ssh` and `docker`."""
    folder = tmp_path / "bin"
    folder.mkdir()
    lines = {"trtexec": f'exec "{sys.executable}" "{STANDIN}" "$@"', **PROGRAMS}
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
