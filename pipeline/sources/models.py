"""Models by kind: a row per kind says how its module is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pipeline.errors import InputError, MissingPackageError
from pipeline.sources.base import ModelSource
from pipeline.sources.code import call
from pipeline.sources.state import load_into, load_state


def model_source(section: Mapping[str, Any], base: Path) -> ModelSource:
    """The model of a recipe's `model` section.

    Args:
        section: The section with defaults filled in.
        base: Folder of the recipe.

    Raises:
        InputError: a file that is not there. What the model's own code does wrong is raised by `build`.
    """
    names = tuple(section.get("inputs") or ("x",)), tuple(section.get("heads") or ("label",))
    if section.get("onnx"):
        return _onnx(base / section["onnx"], *names)
    kind = next((kind for kind in KINDS if section.get(kind)), None)
    if kind is None:
        raise InputError(f"give one of {', '.join(KINDS)}, onnx", where="model")
    checkpoint = base / section["checkpoint"] if section.get("checkpoint") else None
    if checkpoint is not None and not checkpoint.is_file():
        raise InputError(
            f"there is no checkpoint {checkpoint}", where="model.checkpoint", hint="paths in a recipe start at the recipe's folder"
        )

    def build() -> Any:
        model = _module(KINDS[kind](str(section[kind]), base, dict(section.get("args") or {})), f"model.{kind}: {section[kind]}")
        if checkpoint is not None:
            load_into(model, load_state(checkpoint), where=str(checkpoint))
        return model

    return ModelSource(build=build, input_names=names[0], heads=names[1], trained=checkpoint is not None)


def _module(found: Any, where: str) -> Any:
    from torch.nn import Module

    if not isinstance(found, Module):
        raise InputError(f"expected a torch.nn.Module, got {type(found).__name__}", where=where, hint="return the model, not its class")
    return found.to("cpu")


def _python(name: str, base: Path, args: dict[str, Any]) -> Any:
    return call(name, base, **args)


def _timm(name: str, base: Path, args: dict[str, Any]) -> Any:
    try:
        import timm
    except ImportError:
        raise MissingPackageError("timm", extra="train", purpose=f"the model {name}") from None
    if not timm.is_model(name):
        raise _no_such("timm", name, timm.list_models())
    return _made(lambda: timm.create_model(name, **args), "timm", name)


def _torchvision(name: str, base: Path, args: dict[str, Any]) -> Any:
    try:
        from torchvision import models
    except ImportError:
        raise MissingPackageError("torchvision", extra="train", purpose=f"the model {name}") from None
    if name not in models.list_models():
        raise _no_such("torchvision", name, models.list_models())
    return _made(lambda: models.get_model(name, **args), "torchvision", name)


KINDS: dict[str, Callable[[str, Path, dict[str, Any]], Any]] = {"python": _python, "timm": _timm, "torchvision": _torchvision}
"""Kind -> what makes the module from its name, the recipe's folder and `args`."""


def _made(make: Callable[[], Any], kind: str, name: str) -> Any:
    try:
        return make()
    except (TypeError, ValueError, RuntimeError, KeyError, AssertionError, OSError) as error:
        raise InputError(f"{kind} cannot make {name} with these args: {error}", where=f"model.{kind}", hint="check model.args") from error


def _no_such(kind: str, name: str, known: list[str]) -> InputError:
    from difflib import get_close_matches

    near = get_close_matches(name, known, n=3)
    return InputError(f"{kind} has no model {name!r}", where=f"model.{kind}", hint=f"did you mean {', '.join(near)}?" if near else None)


def _onnx(path: Path, inputs: tuple[str, ...], heads: tuple[str, ...]) -> ModelSource:
    if not path.is_file():
        raise InputError(f"there is no ONNX file {path}", where="model.onnx", hint="paths in a recipe start at the recipe's folder")
    if path.stat().st_size == 0:
        raise InputError("the ONNX file is empty", where=str(path), hint="export the model again")

    def build() -> Any:
        raise InputError("an onnx model has no torch module: it enters the chain at export", where=str(path))

    return ModelSource(build=build, input_names=inputs, heads=heads, trained=True, onnx=path)
