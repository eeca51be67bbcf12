"""How large is it? Bytes of weights by way of holding them, and of the files of an arm; each figure says which question it answers.

2:4 packed: of every 4 values the 2 kept ones, and a 2-bit index for each (PTX ISA, `mma.sp` with `sp::ordered_metadata`). Only
layers that are 2:4 where their operator reads them are counted packed, all others dense. CSR and COO as in SciPy's docs.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from math import ceil, prod
from pathlib import Path

from pipeline.errors import InputError
from pipeline.pattern import GROUP, KEEP
from pipeline.records.check import CheckedLayer
from pipeline.records.measurement import Size

ITEM_BYTES: dict[str, int] = {
    "float64": 8,
    "float32": 4,
    "int32": 4,
    "float16": 2,
    "bfloat16": 2,
    "int8": 1,
    "uint8": 1,
    "float8_e4m3fn": 1,
    "float8e4m3fn": 1,
    "float8_e5m2": 1,
    "float8e5m2": 1,
}
"""Bytes of one value, by the names that numpy, ml_dtypes and ONNX use."""

INDEX_BITS = 2
"""Of a kept value within its group."""
CHUNK = 1 << 20


def dense_bytes(count: int, dtype: str) -> int:
    """Bytes of `count` values held one after another.

    >>> dense_bytes(16, "float16")
    32
    """
    return count * _item(dtype)


def packed_bytes(count: int, dtype: str) -> int:
    """Bytes of `count` values held 2:4: half of the values, and 2 bits of metadata for each kept one.

    In fp16 that is 9/16 of dense, in int8 5/8, in fp32 17/32:

    >>> packed_bytes(4096 * 4096, "float16") / dense_bytes(4096 * 4096, "float16") == 9 / 16
    True
    >>> [packed_bytes(16, dtype) / dense_bytes(16, dtype) for dtype in ("int8", "float32")]
    [0.625, 0.53125]

    A 1x4 matrix in fp16: two values of 2 bytes, and 4 bits:

    >>> packed_bytes(4, "float16")
    5
    """
    kept = ceil(count * KEEP / GROUP)
    return kept * _item(dtype) + ceil(kept * INDEX_BITS / 8)


def csr_bytes(rows: int, nonzeros: int, dtype: str, index_bytes: int = 4) -> int:
    """Bytes of a matrix in compressed rows: each value with its column, and where each row begins.

    70 % zeros in fp16 with 4-byte indices take nearly as much as dense, with 2-byte indices 60 %:

    >>> round(csr_bytes(1000, 300_000, "float16") / dense_bytes(1_000_000, "float16"), 4)
    0.902
    >>> round(csr_bytes(1000, 300_000, "float16", index_bytes=2) / dense_bytes(1_000_000, "float16"), 4)
    0.601

    The 2x3 matrix [[1, 0, 0], [0, 2, 3]] in fp32: 3 values, 3 columns, 3 row starts:

    >>> csr_bytes(2, 3, "float32")
    36
    """
    return nonzeros * (_item(dtype) + index_bytes) + (rows + 1) * index_bytes


def coo_bytes(nonzeros: int, dtype: str, index_bytes: int = 4) -> int:
    """Bytes of a matrix as (row, column, value) triples.

    >>> coo_bytes(3, "float32")
    36
    """
    return nonzeros * (_item(dtype) + 2 * index_bytes)


def _item(dtype: str) -> int:
    if dtype not in ITEM_BYTES:
        raise InputError(f"the bytes of a value of type {dtype!r} are not known", hint=f"known: {', '.join(ITEM_BYTES)}")
    return ITEM_BYTES[dtype]


def archive_bytes(files: Sequence[Path]) -> int:
    """Bytes of the files after deflate at level 6, as a zip or gz archive would hold them, headers apart; in bounded memory."""
    total = 0
    for path in files:
        squeeze = zlib.compressobj(6)
        with path.open("rb") as file:
            while chunk := file.read(CHUNK):
                total += len(squeeze.compress(chunk))
        total += len(squeeze.flush())
    return total


def weight_sizes(arm: str, layers: Iterable[CheckedLayer]) -> list[Size]:
    """Weights of the checked layers held in four ways; a weight that several operators read counts once, one of unknown type never."""
    known = _once(layers)
    ways = {
        "weights": ("weights of the checked layers, every value held", lambda item: dense_bytes(_count(item), _dtype(item))),
        "packed": ("the same, 2:4 layers as a sparse kernel holds them: half of the values and 2-bit metadata", _packed),
        "csr32": ("the same as compressed rows with 4-byte indices", _csr),
        "coo32": ("the same as row, column, value with 4-byte indices", lambda item: coo_bytes(_nonzeros(item), _dtype(item))),
    }
    return [Size(arm=arm, name=name, bytes=sum(map(held, known)), question=question) for name, (question, held) in ways.items() if known]


def _once(layers: Iterable[CheckedLayer]) -> list[CheckedLayer]:
    found: dict[str, CheckedLayer] = {}
    for item in layers:
        if item.weight and item.shape and _dtype(item) in ITEM_BYTES:
            first = found.get(item.weight)
            # read along two axes, a weight can be packed only where it is 2:4 along both
            found[item.weight] = item if first is None or first.two_four else first
    return list(found.values())


def _dtype(item: CheckedLayer) -> str:
    """The type that a kernel holds: of the quantised values behind Q/DQ, else the operand's own."""
    return item.quantized or item.dtype or ""


def _count(item: CheckedLayer) -> int:
    return prod(item.shape or [])


def _nonzeros(item: CheckedLayer) -> int:
    return round(_count(item) * (1 - item.zero_fraction))


def _packed(item: CheckedLayer) -> int:
    return packed_bytes(_count(item), _dtype(item)) if item.two_four else dense_bytes(_count(item), _dtype(item))


def _csr(item: CheckedLayer) -> int:
    return csr_bytes((item.shape or [0])[0], _nonzeros(item), _dtype(item))


DEVICE: dict[str, str] = {
    "weights": "weights",
    "activation": "activations",
    "scratch": "workspace",
    "device_persistent": "persistent state",
}
"""Keys of a tactic record's memory -> use of device memory; the builder prints bytes."""


def device_memory(said: Mapping[str, str]) -> dict[str, int]:
    """Bytes on the device by use, from what a build's log says.

    >>> device_memory({"scratch": "4194304", "host_persistent": "100", "weights": "1024 bytes", "peak_host": "12 MiB"})
    {'weights': 1024, 'workspace': 4194304}
    """
    figures = {use: said[key].removesuffix(" bytes") for key, use in DEVICE.items() if key in said}
    return {use: int(figure) for use, figure in figures.items() if figure.isdecimal()}


def arm_sizes(
    arm: str,
    layers: Iterable[CheckedLayer],
    *,
    model: Sequence[Path],
    plan: Path | None = None,
    state_dict: Path | None = None,
    memory: dict[str, int] | None = None,
) -> list[Size]:
    """Every size of one arm that is known.

    Args:
        arm: The arm's name.
        layers: The ONNX check of the arm's model.
        model: The ONNX file, and its external data.
        plan: The built engine.
        state_dict: The checkpoint that the model was exported from.
        memory: Bytes on the device by use, such as `weights` or `activations`, where a log or the engine says them.
    """
    sizes = [
        Size(arm=arm, name="file", bytes=sum(path.stat().st_size for path in model), question="the ONNX model on disk"),
        Size(arm=arm, name="archive", bytes=archive_bytes(model), question="the ONNX model compressed (deflate), as it is sent"),
    ]
    if state_dict is not None:
        sizes.append(Size(arm=arm, name="state_dict", bytes=state_dict.stat().st_size, question="the checkpoint on disk"))
    sizes += weight_sizes(arm, layers)
    if plan is not None:
        sizes.append(Size(arm=arm, name="plan", bytes=plan.stat().st_size, question="the built engine on disk"))
    for use, found in (memory or {}).items():
        sizes.append(Size(arm=arm, name=f"device {use}", bytes=found, question=f"device memory for {use}, as the builder reports it"))
    return sizes
