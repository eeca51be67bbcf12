"""What a GPU run leaves for machines without a GPU: logs, layer information and records, and how they are read again."""

from __future__ import annotations

import shutil
from pathlib import Path

from pipeline import api
from pipeline.records.engines import Engine, Engines
from pipeline.records.io import read, write
from pipeline.records.measurement import Measurement
from pipeline.records.tactics import TacticReport

KEPT = (".log", ".json", ".sh")
"""Files of an engine that are text; plans stay where they were built."""


def keep(folder: Path, bundle: Path, engines: list[Engine], backend: str, measured: Measurement | None = None) -> None:
    """Copy text files of a build into the bundle, write its record, and the tactic report that is read from the copies."""
    bundle.mkdir(parents=True, exist_ok=True)
    for file in folder.iterdir():
        if file.suffix in KEPT:
            shutil.copy(file, bundle / file.name)
    write(bundle / "engines.record", Engines(backend=backend, sparse_kernels=True, engines=engines))
    for engine in engines:
        write(bundle / f"{engine.name.replace('#', '-')}.tactics", tactics(bundle, engine))
    if measured is not None:
        write(bundle / "measurement.record", measured)


def tactics(bundle: Path, engine: Engine) -> TacticReport:
    """The tactic report of one engine, from the bundle's copies."""
    files = [bundle / artifact.path for artifact in (engine.log, engine.layer_info) if artifact]
    return api.read_log(*files)


def reread(bundle: Path) -> list[str]:
    """Read a bundle again; returns what no longer reads as it did on the GPU (empty: all as it was)."""
    different = []
    for engine in read(bundle / "engines.record", Engines).engines:
        stem = engine.name.replace("#", "-")
        then, now = read(bundle / f"{stem}.tactics", TacticReport), tactics(bundle, engine)
        for before, after in zip(then.builds, now.builds, strict=True):
            different += [
                f"{engine.name}: {field} was {getattr(before, field)}, is {getattr(after, field)}"
                for field in ("tensorrt", "sparsity", "eligible", "selected", "disputed", "result")
                if getattr(before, field) != getattr(after, field)
            ]
    return different
