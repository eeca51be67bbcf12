"""`sparsegate doctor` as text: the answer per backend first, then what is missing with the command that brings it."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.records.survey import Survey


def lines(survey: Survey) -> Iterator[str]:
    """One line per fact, readable without colour."""
    yield f"{survey.cpu}, {survey.cores} cores, {survey.os}, Python {survey.python}"
    for gpu in survey.gpus:
        yield f"GPU {gpu['name']}, compute capability {gpu['compute_capability']}, driver {gpu['driver']}"
    if not survey.gpus:
        yield "no NVIDIA GPU that NVML can see"
    for backend in survey.backends:
        yield ""
        yield f"{backend.name}: {'ready' if backend.ready else 'not ready'}: can {backend.could}"
        for need in backend.needs:
            yield f"  {'has    ' if need.found else 'missing'}  {need.what}" + (f" {need.found}" if need.found else "")
            if not need.found:
                yield f"           next: {need.install}"
    if survey.target:
        yield ""
        yield "target:"
        yield from (f"  {name}: {value}" for name, value in survey.target.items())
    ready = [backend.name for backend in survey.backends if backend.ready]
    yield ""
    yield f"next: sparsegate run recipes/quickstart.yaml (backend {ready[0]})" if ready else "next: pip install sparsegate"
