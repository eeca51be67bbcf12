"""The state after a finished epoch, on disk: an interrupted phase goes on from it."""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pipeline.records.io import replacing
from pipeline.training.history import EpochRow

if TYPE_CHECKING:
    from torch import Tensor

FORMAT = 1
SUFFIX = ".resume"


class State(msgspec.Struct):
    """Everything that the next epoch depends on: random numbers need no state, each epoch has its own seed."""

    epoch: int
    """Finished epochs."""
    model: dict[str, Tensor]
    optimizer: dict[str, Any]
    scaler: dict[str, Any]
    rows: list[EpochRow]
    best: dict[str, Tensor] | None = None
    best_epoch: int = 0


def fingerprint(**facts: Any) -> str:
    """sha256 of what a phase was started with: a state of another start is not taken up."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()


def digest(state: Mapping[str, Tensor]) -> str:
    """sha256 over names and bits of a state dict."""
    import torch

    found = hashlib.sha256()
    for name, value in state.items():
        found.update(f"{name} {value.dtype} {tuple(value.shape)}\n".encode())
        found.update(value.detach().to("cpu").contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return found.hexdigest()


def file_of(folder: Path, phase: str) -> Path:
    """Where a phase keeps its state."""
    return folder / f"{phase}{SUFFIX}"


def save(path: Path, state: State, start: str) -> None:
    """Write a state in one step."""
    import torch

    content = {
        "format": FORMAT,
        "start": start,
        "epoch": state.epoch,
        "model": state.model,
        "optimizer": state.optimizer,
        "scaler": state.scaler,
        "rows": msgspec.to_builtins(state.rows),
        "best": state.best,
        "best_epoch": state.best_epoch,
    }
    with replacing(path) as file:
        torch.save(content, file)


def load(path: Path, start: str) -> State | None:
    """The state of an interrupted phase; None when there is none, it is unreadable, or it began from something else."""
    import torch

    if not path.is_file():
        return None
    try:
        content: Mapping[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        if content["format"] != FORMAT or content["start"] != start:
            return None
        return State(
            epoch=content["epoch"],
            model=content["model"],
            optimizer=content["optimizer"],
            scaler=content["scaler"],
            rows=msgspec.convert(content["rows"], list[EpochRow]),
            best=content["best"],
            best_epoch=content["best_epoch"],
        )
    except (pickle.UnpicklingError, RuntimeError, EOFError, KeyError, TypeError, ValueError, OSError):
        return None


def clear(folder: Path) -> None:
    """Remove the states of finished phases, and temporary files of writes that were cut off."""
    for path in [*folder.glob(f"*{SUFFIX}"), *folder.glob(f".*{SUFFIX}.*")]:
        path.unlink(missing_ok=True)
