"""Runs in a process of its own (Polygraphy must be told of TensorRT-RTX before it is imported): graphs in, JSON out."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from rtx_graphs import BAD, GOOD, Graph

from pipeline.builders.model_io import inputs_of
from pipeline.builders.options import read_options
from pipeline.builders.profiles import check_profiles
from pipeline.builders.tensorrt.logger import LogFile
from pipeline.builders.tensorrt.plan import build_plan
from pipeline.builders.tensorrt.request import PlanRequest
from pipeline.errors import SparsegateError

CAPABILITIES = ["8.6", "8.9", "12.0"]


def attempt(graph: Graph, folder: Path, stem: str, *, sparse: bool, stopped: bool = False) -> dict[str, Any]:
    file = folder / f"{stem[:-1]}.onnx"
    if not file.exists():  # both builds get the same bytes
        graph.write(file)
    events: list[str] = []
    options = read_options({"compute_capabilities": CAPABILITIES, **graph.options})
    request = PlanRequest(
        library="tensorrt-rtx",
        onnx=str(file),
        stem=stem,
        folder=str(folder),
        sparse=sparse,
        precision=graph.precision,
        profiles=graph.profiles,
        options=options,
    )
    log = LogFile(folder / f"{stem}.log", verbose=True)
    try:
        check_profiles(graph.profiles, inputs_of(file)) if file.stat().st_size else None
        result = build_plan(request, log, lambda phase, depth, done, total: events.append(f"{depth} {phase}"), lambda: stopped)
    except SparsegateError as error:
        return {"error": str(error)}
    finally:
        log.close()
    return {
        "sha256": hashlib.sha256((folder / f"{stem}.plan").read_bytes()).hexdigest(),
        "flags": result.flags,
        "phases": len(set(events)),
        "depths": sorted({event[0] for event in events}),
        "sparsity_lines": sum("spars" in line.lower() for line in (folder / f"{stem}.log").read_text().splitlines() if "[TRT]" in line),
        "files": sorted(path.suffix for path in folder.glob(f"{stem}.*")),
        "environment": result.environment,
    }


def main() -> None:
    folder = Path(sys.argv[1])
    extra = {
        name: Graph(lambda path, source=source: path.write_bytes(Path(source).read_bytes()) and None, **more)
        for name, source, more in json.loads(sys.argv[2])
    }
    answers: dict[str, Any] = {}
    for index, (name, graph) in enumerate({**extra, **GOOD, **BAD}.items()):
        answers[name] = {
            "sparse": attempt(graph, folder, f"graph{index}a", sparse=True),
            "twin": attempt(graph, folder, f"graph{index}b", sparse=False) if graph.error is None else None,
        }
    answers["stopped"] = attempt(GOOD["conv of 512 channels"], folder, "stoppeda", sparse=True, stopped=True)
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
