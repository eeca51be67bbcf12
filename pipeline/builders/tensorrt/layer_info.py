"""Layer information of a built plan, from TensorRT's engine inspector."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def write(trt: Any, logger: Any, plan: Path, target: Path) -> list[str]:
    """Load the plan once and write its detailed layer information as JSON.

    Returns:
        Notes: why there is none, where the plan cannot be loaded on the machine that built it.
    """
    runtime = trt.Runtime(logger)
    engine = runtime.deserialize_cuda_engine(plan.read_bytes())
    if engine is None:
        return ["the plan could not be loaded after the build: no layer information"]
    inspector = engine.create_engine_inspector()
    text = inspector.get_engine_information(trt.LayerInformationFormat.JSON)
    target.write_text(text, encoding="utf-8")
    return []
