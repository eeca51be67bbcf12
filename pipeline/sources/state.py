"""State dicts on disk: safetensors written and read, torch files read with weights_only=True, never a free pickle."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.errors import InputError, MissingPackageError
from pipeline.paths import unreadable
from pipeline.records.io import write_bytes

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

ZIP, PICKLE = b"PK\x03\x04", b"\x80"
WRAPPERS = ("state_dict", "model_state_dict", "model", "state_dict_ema", "model_ema")
"""Keys under which training programs keep the weights beside an optimizer and counters."""
REMEDY = "write it again, as safetensors or with torch.save(model.state_dict(), path)"


def load_state(path: str | Path) -> dict[str, Tensor]:
    """Read a checkpoint's tensors, on the CPU.

    A torch file may hold the state dict itself, or keep it under one of `WRAPPERS`; a `module.` before every key
    (DataParallel) is taken off.

    Raises:
        InputError: missing, empty, truncated, of an unknown format, or a pickle that would run code.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            head = file.read(8)
        size = path.stat().st_size
    except OSError as error:
        raise unreadable(path, error, "the checkpoint") from None
    if size == 0:
        raise InputError("the checkpoint is empty", where=str(path), hint=REMEDY)
    if head.startswith((ZIP, PICKLE)):
        return _unwrapped(_load_torch(path), path)
    return _load_safetensors(path, head, size)


def _load_safetensors(path: Path, head: bytes, size: int) -> dict[str, Tensor]:
    try:
        from safetensors import SafetensorError
        from safetensors.torch import load_file
    except ImportError:
        raise MissingPackageError("safetensors", extra="train", purpose="reading a checkpoint") from None
    header = int.from_bytes(head, "little") if len(head) == 8 else 0
    if not 2 <= header <= 100_000_000:
        raise InputError("neither safetensors nor a torch checkpoint", where=str(path), hint=REMEDY)
    if header + 8 > size:
        raise InputError(
            f"a truncated safetensors file (its header needs {header + 8} bytes, the file has {size})", where=str(path), hint=REMEDY
        )
    _check_extent(path, header, size)
    try:
        return dict(load_file(path, device="cpu"))
    except (SafetensorError, ValueError, OSError, KeyError) as error:
        raise InputError(f"not a readable safetensors file ({error})", where=str(path), hint=REMEDY) from None


def _check_extent(path: Path, header: int, size: int) -> None:
    """Tell a truncated file from a foreign one: both are one error to the library."""
    with path.open("rb") as file:
        file.seek(8)
        text = file.read(header)
    try:
        entries = json.loads(text)
        ends = [int(entry["data_offsets"][1]) for name, entry in entries.items() if name != "__metadata__"]
    except (ValueError, TypeError, KeyError, AttributeError, IndexError):
        raise InputError("neither safetensors nor a torch checkpoint", where=str(path), hint=REMEDY) from None
    needed = 8 + header + max(ends, default=0)
    if size < needed:
        raise InputError(f"a truncated safetensors file ({needed} bytes are announced, {size} are there)", where=str(path), hint=REMEDY)


def _load_torch(path: Path) -> Any:
    try:
        import torch
    except ImportError:
        raise MissingPackageError("torch", extra="train", purpose="reading a torch checkpoint") from None
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise InputError("it is not plain tensors: loading it could run code, or it is damaged", where=str(path), hint=REMEDY) from None
    except (RuntimeError, EOFError, OSError, ValueError, KeyError, AttributeError, TypeError, IndexError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"a truncated or damaged torch checkpoint ({first})", where=str(path), hint=REMEDY) from None


def _unwrapped(found: Any, path: Path) -> dict[str, Tensor]:
    from torch import Tensor

    if isinstance(found, Mapping):
        inner = [found[key] for key in WRAPPERS if isinstance(found.get(key), Mapping)]
        found = inner[0] if inner else found
    if not isinstance(found, Mapping) or not found or not all(isinstance(value, Tensor) for value in found.values()):
        raise InputError("the torch file holds no state dict (name -> tensor)", where=str(path), hint=REMEDY)
    state = {str(key): value for key, value in found.items()}
    if all(key.startswith("module.") for key in state):
        state = {key.removeprefix("module."): value for key, value in state.items()}
    return state


def save_state(path: str | Path, state: Mapping[str, Tensor]) -> Path:
    """Write tensors as safetensors, in one step, and return the path: a reader sees the old file or the new one.

    Tied tensors are written once each under their own names, contiguous, from the CPU. The same state gives the same bytes.
    """
    from safetensors.torch import save

    path = Path(path)
    plain = {key: state[key].detach().to("cpu").contiguous().clone() for key in sorted(state)}
    write_bytes(path, save(plain))
    return path


def load_into(model: Module, state: Mapping[str, Tensor], *, where: str) -> None:
    """Put a state dict into a model, strictly.

    Raises:
        InputError: names or shapes do not fit; a modelopt checkpoint (its raw weights are dense) is named as such.
    """
    wanted = model.state_dict()
    masks = [key for key in state if key.endswith("._weight_mask")]
    if masks:
        raise InputError(
            f"a modelopt checkpoint with {len(masks)} masks apart from its weights: the weights themselves are dense",
            where=where,
            hint="restore it with modelopt.torch.opt.restore, call modelopt.torch.sparsity.export, and save that model's state_dict",
        )
    wrong = [f"{key} is missing" for key in wanted if key not in state]
    wrong += [f"{key} is not in the model" for key in state if key not in wanted]
    wrong += [
        f"{key} has shape {tuple(state[key].shape)}, the model's {tuple(wanted[key].shape)}"
        for key in wanted
        if key in state and state[key].shape != wanted[key].shape
    ]
    if wrong:
        more = f", and {len(wrong) - 5} more" if len(wrong) > 5 else ""
        raise InputError(f"the checkpoint does not fit the model: {'; '.join(wrong[:5])}{more}", where=where, hint="check model.args")
    model.load_state_dict(dict(state), strict=True)
