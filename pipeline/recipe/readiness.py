"""What a right recipe needs of this machine, found without running any of its code or importing anything heavy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pipeline.errors import SparsegateError
from pipeline.recipe.load import LoadedRecipe
from pipeline.sources import code

INSTALL = "pip install 'sparsegate[{extra}]'"


@dataclass(frozen=True)
class Need:
    """One thing that a run of the recipe needs."""

    of: str
    """The section that needs it."""
    what: str
    missing: str | None = None
    """Why it cannot be had; None where it is there."""
    hint: str | None = None


PACKAGES: tuple[tuple[str, str, str, Callable[[dict[str, Any]], object]], ...] = (
    ("train", "torch", "train", lambda s: not s["model"]["onnx"]),
    ("train", "lightning_fabric", "train", lambda s: not s["model"]["onnx"]),
    ("train", "modelopt", "train", lambda s: not s["model"]["onnx"]),
    ("train", "requests", "train", lambda s: not s["model"]["onnx"]),
    ("train", "huggingface_hub", "train", lambda s: not s["model"]["onnx"]),
    ("freeze", "safetensors", "train", lambda s: not s["model"]["onnx"]),
    ("export", "onnxscript", "train", lambda s: not s["model"]["onnx"]),
    ("export", "onnx", "", lambda s: True),
    ("export", "onnxruntime", "", lambda s: True),
    ("model", "timm", "train", lambda s: s["model"]["timm"]),
    ("model", "torchvision", "train", lambda s: s["model"]["torchvision"] or s["model"]["timm"]),
    ("data", "sklearn", "train", lambda s: s["data"]["digits"]),
    ("data", "PIL", "train", lambda s: s["data"]["imagefolder"]),
)
"""Section, import name, extra that brings it, whether these sections need it."""

PATHS: tuple[tuple[str, str], ...] = (("model", "onnx"), ("model", "checkpoint"), ("data", "npz"), ("data", "imagefolder"))
"""Sections and keys that name a file or folder."""


def _packages(loaded: LoadedRecipe) -> Iterator[Need]:
    for section, name, extra, wanted in PACKAGES:
        if wanted(loaded.sections):
            there = find_spec(name) is not None
            yield Need(
                section,
                f"package {name}",
                None if there else "not installed",
                INSTALL.format(extra=extra) if extra else "pip install sparsegate",
            )


def _files(loaded: LoadedRecipe) -> Iterator[Need]:
    for section, key in PATHS:
        if loaded.sections[section][key]:
            yield _path(section, loaded.base / loaded.sections[section][key])
    for section in ("model", "data"):
        for name in loaded.sections[section]["files"]:
            yield _path(section, loaded.base / name)
    if loaded.sections["data"]["slices"]["csv"]:
        yield _path("data", loaded.base / loaded.sections["data"]["slices"]["csv"])


def _path(section: str, path: Path) -> Need:
    return Need(section, str(path), None if path.exists() else "not there", "paths in a recipe start at the recipe's folder")


def _callables(loaded: LoadedRecipe) -> Iterator[Need]:
    data = loaded.sections["data"]
    for section, name in (("model", loaded.sections["model"]["python"]), ("data", data["python"]), ("data", data["slices"]["python"])):
        if name:
            yield Need(section, name, code.lacking(name, loaded.base), "the recipe says `path.py:callable`")


def _backend(loaded: LoadedRecipe) -> Iterator[Need]:
    from pipeline import builders

    section = loaded.sections["build"]
    try:
        facts = builders.describe(section["backend"], section)
    except SparsegateError as error:
        yield Need("build", f"backend {section['backend']}", str(error.what), error.hint)
    else:
        yield Need("build", f"backend {section['backend']} ({', '.join(f'{key} {value}' for key, value in facts.items())})")


def _gpu(loaded: LoadedRecipe) -> Iterator[Need]:
    from pipeline import machine

    if loaded.recipe.train.device == "cuda" and not loaded.recipe.model.onnx:
        found = machine.gpus()
        yield Need("train", "an NVIDIA GPU", None if found else "NVML finds none", "--set train.device=auto")


ROWS: tuple[Callable[[LoadedRecipe], Iterator[Need]], ...] = (_packages, _files, _callables, _gpu, _backend)
"""What is looked at, in order."""


def needs(loaded: LoadedRecipe) -> list[Need]:
    """Everything that a run of the recipe needs of this machine, and whether it is there."""
    return [need for row in ROWS for need in row(loaded)]


TUNES = frozenset({"tensorrt", "trtexec"})
"""Backends that run on a GPU: their engines are tuned for the opt shapes of their profiles, and energy is counted there."""


def warnings(loaded: LoadedRecipe) -> list[str]:
    """What is right and still likely not meant."""
    return [*_untuned(loaded), *_unmetered(loaded)]


def _unmetered(loaded: LoadedRecipe) -> list[str]:
    if not any(rule.kind == "energy" for rule in loaded.recipe.gate.rules):
        return []
    if loaded.recipe.build.backend not in TUNES:
        return [f"an energy rule stays inconclusive: {loaded.recipe.build.backend} counts no energy"]
    off = loaded.recipe.measure.energy_seconds == 0
    return ["an energy rule stays inconclusive: measure.energy_seconds is 0"] if off else []


def _untuned(loaded: LoadedRecipe) -> list[str]:
    from pipeline.builders.profiles import untuned_batches

    sections = loaded.sections
    if sections["build"]["backend"] not in TUNES:
        return []
    opt = sections["export"]["batch"]["opt"]
    measured = sections["measure"]["batches"] or [opt]
    profiles = sections["build"]["profiles"] or [{"": {"opt": [opt]}}]
    untuned = untuned_batches(profiles, measured)
    if not untuned:
        return []
    listed = ", ".join(map(str, untuned))
    tuning = "no optimization profile has it as its opt shape: TensorRT tunes for opt alone (build.profiles)"
    return [f"batch {listed} is measured, but {tuning}"]
