"""ONNX -> engines: one protocol, four backends. Importing this package imports none of them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from pipeline.errors import InputError

if TYPE_CHECKING:
    from pipeline.builders.base import Backend

BACKENDS: dict[str, str] = {
    "onnxruntime": "pipeline.builders.onnxruntime",
    "tensorrt": "pipeline.builders.tensorrt.backend",
    "trtexec": "pipeline.builders.trtexec.backend",
    "tensorrt-rtx": "pipeline.builders.tensorrt_rtx",
}
"""Backend -> module; the module's `backend(options)` makes one."""

__all__ = ["BACKENDS", "backend", "describe"]


def backend(name: str, options: Mapping[str, object]) -> Backend:
    """The backend `name`, set up from the recipe's `build` section.

    Args:
        name: A key of `BACKENDS`.
        options: The section as a plain mapping; keys that a backend does not use are left alone.

    Raises:
        InputError: no such backend, or an option that it cannot follow.
        MissingPackageError: the backend's package is not installed.
    """
    if name not in BACKENDS:
        raise InputError(f"no backend {name!r}", where="build.backend", hint=f"one of: {', '.join(BACKENDS)}")
    made: Backend = import_module(BACKENDS[name]).backend(options)
    return made


def describe(name: str, options: Mapping[str, object]) -> dict[str, str]:
    """What decides the engines that backend `name` builds on this machine: versions and hardware, read without loading its library."""
    return backend(name, options).describe()
