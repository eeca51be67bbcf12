"""docs/journeys.md: first screens of what people come with, made by running the commands (`python tests/report/journey_docs.py`)."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "report")]

import crafted_run as c  # noqa: E402
import journey_models as models  # noqa: E402
from click.testing import CliRunner  # noqa: E402
from msgspec.structs import replace  # noqa: E402

from pipeline.cli import group  # noqa: E402
from pipeline.records import io  # noqa: E402
from pipeline.records.run import StageStatus  # noqa: E402

DOC = ROOT / "docs" / "journeys.md"
HEAD = """# First screens

What people come with, the command, and what it prints. The logs, models and runs are small synthetic ones that
`tests/report/journey_docs.py` makes; it also writes this page, by running the commands.
"""

JOURNEYS: list[tuple[str, str, str, int | None]] = [
    ("Here is my trtexec log. Which layers went sparse?", "tactics build.log", "Nothing but the base package is needed.", None),
    (
        "I have a dense ONNX model and a GPU in mind. Will 2:4 pay before I spend weeks on training?",
        "check dense.onnx --estimate --batch 32 --gpu A30",
        "An upper bound from shapes, then the probe: prune by magnitude, build sparse and twin on the GPU, measure interleaved.",
        None,
    ),
    ("", "prune dense.onnx -o probe.onnx", "", None),
    (
        "Is this checkpoint still sparse, and will TensorRT see it?",
        "report grown",
        "A run whose weights grew back between training and freezing.",
        24,
    ),
    (
        "Everything is 2:4 in Netron and TensorRT lists nothing as eligible.",
        "check turned.onnx --sm 8.6 --tensorrt 10.13",
        "The mask lies along another axis than the one that the operator sums over.",
        None,
    ),
    (
        "We upgraded TensorRT and lost 25 %.",
        "diff old.json new.json",
        "Two tactic reports; build logs, layer-info files and runs do as well.",
        None,
    ),
    ("The kernel is faster, our service is not.", "report request", "6 ms of 20 are in layers that could go sparse.", None),
    ("", "explain request tail", "", None),
]
"""Question, command, a word about it, lines shown (all when None)."""


def make_files(folder: Path) -> None:
    """Everything that the commands name."""
    shutil.copy(ROOT / "tests" / "data" / "tactics" / "trt86_verbose_dense_won.log", folder / "build.log")
    models.small_network(folder / "dense.onnx")
    models.matmul(folder / "turned.onnx", axis=1)
    failed = StageStatus(stage="freeze", status="failed", error="body.weight: 3 of 147456 groups grew back")
    run = c.run(recipe="grown", result="failed", stages=[failed])
    later = dict.fromkeys(("freeze", "export", "build", "tactics", "measure"))
    c.write_run(folder / "logs" / "grown" / run.id, c.evidence(run=run, **later))
    items = {"stem": (c.STEM, 0.10, 0.11), "body": (c.BODY, 0.30, 0.30), "tail": (c.TAIL, 0.20, 0.34)}
    before = [replace(c.engine_layer(item), profile_ms=old) for item, old, _ in items.values()]
    after = [replace(c.engine_layer(item), profile_ms=new) for item, _, new in items.values()]
    after[2] = replace(c.dense_won(), profile_ms=0.34)
    io.write(folder / "old.json", c.tactic_report(c.build("sparse", *before, tensorrt="8.6.1")))
    io.write(folder / "new.json", c.tactic_report(c.build("sparse", *after, tensorrt="10.13.0")))
    times = [
        c.layer_time(arm, item, *[ms] * 5)
        for arm, body in (("sparse", 4.0), ("twin", 6.0), ("dense", 6.0))
        for item, ms in ((c.BODY, body), (c.STEM, 14.0))
    ]
    ratios = [c.ratio(0.85, 0.84, 0.86), c.ratio(1.0, 0.98, 1.02, metric="host_latency")]
    run = c.run(recipe="request", result="stopped")
    c.write_run(folder / "logs" / "request" / run.id, c.evidence(run=run, measure=c.measurement(layers=times, ratios=ratios)))


@contextmanager
def workspace() -> Iterator[Path]:
    """A folder of one's own with the files, as the current one."""
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        make_files(Path(name))
        os.chdir(name)
        try:
            yield Path(name)
        finally:
            os.chdir(here)


def output(command: str) -> str:
    """What a command prints into a pipe."""
    result = CliRunner(env={"COLUMNS": "", "SPARSEGATE_WORKSPACE": ""}).invoke(group, command.split())
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.stdout


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    with workspace():
        for question, command, words, shown in JOURNEYS:
            lines = output(command).rstrip("\n").split("\n")
            if shown is not None and len(lines) > shown:
                last = max(number for number, line in enumerate(lines) if line.startswith("next: "))
                lines = [*lines[:shown], "...", *lines[last:]]
            parts += [f"## {question}\n"] if question else []
            parts += [f"{words}\n"] if words else []
            parts.append("```console\n$ sparsegate " + command + "\n" + "\n".join(lines) + "\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    DOC.write_text(page())
