"""The two libraries behind one path: TensorRT, and TensorRT-RTX that builds ahead of time without a GPU."""

from __future__ import annotations

from importlib import import_module, metadata
from typing import Any

import msgspec

from pipeline.builders.versions import Version, parse_version
from pipeline.errors import InputError, MissingPackageError


class Library(msgspec.Struct, frozen=True, kw_only=True):
    """How a library differs on the way from network to serialized bytes; all else is one path."""

    name: str
    module: str
    distribution: str
    extra: str
    api: Version | None
    """The TensorRT version whose API it has, where its own version number says nothing about that."""
    timing_cache: bool
    """Whether timing caches hold anything."""
    compute_capabilities: bool
    """Whether a plan is made for named compute capabilities instead of the GPU at hand."""
    deserializes: bool
    """Whether the building machine can load the plan: layer info comes from the loaded engine."""
    polygraphy_environment: dict[str, str]
    """What Polygraphy must see when it is imported."""


TENSORRT = Library(
    name="tensorrt",
    module="tensorrt",
    distribution="tensorrt",
    extra="tensorrt",
    api=None,
    timing_cache=True,
    compute_capabilities=False,
    deserializes=True,
    polygraphy_environment={"POLYGRAPHY_USE_TENSORRT_RTX": "0"},
)
RTX = Library(
    name="tensorrt-rtx",
    module="tensorrt_rtx",
    distribution="tensorrt-rtx",
    extra="rtx",
    api=(11, 4),
    timing_cache=False,
    compute_capabilities=True,
    deserializes=False,
    polygraphy_environment={"POLYGRAPHY_USE_TENSORRT_RTX": "1"},
)
LIBRARIES = {library.name: library for library in (TENSORRT, RTX)}


def load(library: Library) -> Any:
    """Import the library.

    Raises:
        MissingPackageError: it is not installed.
        InputError: its Python package is, but a library that it links to is not.
    """
    try:
        return import_module(library.module)
    except ModuleNotFoundError:
        raise MissingPackageError(library.module, extra=library.extra, purpose=f"the {library.name} backend") from None
    except (ImportError, OSError) as error:
        raise InputError(
            f"{library.module} cannot be imported: {error}",
            hint="the Python package and the libraries must be of one version; sparsegate doctor says what is there",
        ) from None


def api_version(library: Library, trt: Any) -> Version:
    """The TensorRT version whose names and flags `trt` has."""
    return library.api or parse_version(str(trt.__version__))


def installed(library: Library) -> str | None:
    """Version of the installed package, without importing it; None where it is not installed.

    TensorRT is installed under several names: the wheel for one CUDA version, or the container's own package.
    """
    names = [library.distribution, *(f"{library.distribution}-{cuda}" for cuda in ("cu13", "cu12"))]
    for name in names:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return None
