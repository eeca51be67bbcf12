"""The part of `measure` that asks whether engines compute what their ONNX files say: see `builders.parity`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.errors import StageError
from pipeline.records.arms import OnnxArms
from pipeline.records.engines import Engine, Engines
from pipeline.records.measurement import EngineParity
from pipeline.stages.base import Work

if TYPE_CHECKING:
    from pipeline.builders.base import Backend, Session

TWIN_OF = {"sparse": "twin"}
"""Arm -> the arm of the same weights that serves as its oracle."""


def compare(backend: Backend, engines: Engines, work: Work) -> list[EngineParity]:
    """Every first build against ONNX Runtime and, for the sparse arm, its twin; nothing where the backend is ONNX Runtime itself."""
    from pipeline.builders import parity

    if backend.flag_is_inert or not work.section("measure")["parity"]:
        return []
    section = work.section("build")
    first = {engine.arm: engine for engine in engines.engines if engine.repeat == 1}
    rows: list[EngineParity] = []
    for arm, engine in first.items():
        work.progress(f"parity {arm}", 0)
        with _loaded(backend, engine, first, work) as (session, oracles):
            rows += parity.engine_parity(
                arm,
                session,
                oracles,
                types=engine.inputs,
                profiles=engine.profiles or engines.profiles,
                tolerance=parity.tolerance_of(str(engine.options["precision"]), tf32=section["tf32"], on_gpu=True),
                strict_nans=section["strict_nans"],
                fixed=_fixed(engine, work),
                seed=work.seed,
            )
    return rows


def _fixed(engine: Engine, work: Work) -> dict[str, list[int]]:
    """Shapes of the file's inputs that have no dynamic axis: optimization profiles need not name them."""
    from pipeline.builders.model_io import inputs_of

    exported = work.record("export", OnnxArms).named(engine.onnx_arm)
    shapes = inputs_of(work.file("export", exported.model))
    return {
        name: [extent for extent in shape if isinstance(extent, int)]
        for name, shape in shapes.items()
        if all(isinstance(extent, int) and extent >= 0 for extent in shape)
    }


@contextmanager
def _loaded(backend: Backend, engine: Engine, first: Mapping[str, Engine], work: Work) -> Iterator[tuple[Session, dict[str, Session]]]:
    """The engine and its oracles, closed at the end."""
    folder = work.upstream["build"].folder
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sparsegate-oracle-")))

        def opened(session: Session) -> Session:
            stack.callback(session.close)
            return session

        session = opened(backend.load(engine, folder))
        oracles = {}
        if (twin := first.get(TWIN_OF.get(engine.arm, ""))) is not None:
            oracles[twin.arm] = opened(backend.load(twin, folder))
        try:
            oracles["onnxruntime"] = opened(_onnx_runtime(engine, work, scratch))
        except StageError:  # it has no kernel for some types (BF16): the twin is the oracle that is left
            work.progress(f"parity {engine.arm}", 0, None, "ONNX Runtime does not run the file")
        yield session, oracles


def _onnx_runtime(engine: Engine, work: Work, scratch: Path) -> Session:
    from pipeline import builders
    from pipeline.builders.base import ArmRequest

    exported = work.record("export", OnnxArms).named(engine.onnx_arm)
    oracle = builders.backend("onnxruntime", {"threads": work.section("build")["threads"]})
    request = ArmRequest(
        arm=engine.arm,
        repeat=1,
        onnx=work.file("export", exported.model),
        onnx_arm=engine.onnx_arm,
        sparse_weights=False,
        precision=exported.precision,
        profiles=[],
    )
    return oracle.load(oracle.build(request, scratch), scratch)
