"""`reproduce.sh`: the very commands of a build, for a person to run again."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from pipeline.builders.trtexec.hops import argv

HEAD = """#!/bin/sh
# What built {engine}, with trtexec of TensorRT {version}. The files named below must be on the target.
set -eu
"""


def write_script(file: Path, *, engine: str, version: str, prefix: Sequence[str], command: Sequence[str]) -> None:
    """Write an executable script that runs `command` behind `prefix`."""
    lines = [HEAD.format(engine=engine, version=version)]
    if prefix:
        lines.append(f"# on the target: {shlex.join(command)}".replace("\n", "\n# ") + "\n")
    lines.append(shlex.join(argv(prefix, command)) + "\n")
    file.write_text("".join(lines), encoding="utf-8")
    file.chmod(0o755)
