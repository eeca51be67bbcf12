"""Peak rates and memory bandwidth of GPUs, dense and sparse, by type and accumulator, as their makers publish them.

Vendors print sparse peaks first. On GeForce, fp16 (and fp8) with fp32 accumulation runs at half the rate of fp16 accumulation; data
centre and workstation boards run both at one rate. Jetson's headline TOPS are sparse INT8 of GPU and DLA together: here stands
the GPU's own part, dense INT8 half of it, fp16 half of INT8. A table of one's own is a JSON list of the same fields.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from pipeline.errors import InputError
from pipeline.paths import unreadable


class Peak(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Peak rate of one type: 10^12 operations per second, a multiplication and an addition counting two."""

    dtype: str
    """`fp16` (bf16 runs at the rate with fp32 accumulation), `int8`, `fp8`."""
    accumulate: str
    """`fp16`, `fp32` or `int32`."""
    dense: float
    sparse: float | None = None
    """None: the GPU has no sparse tensor cores."""


class Gpu(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One GPU."""

    name: str
    sm: str
    """Compute capability."""
    gb_per_s: float
    """Memory bandwidth, 10^9 bytes per second."""
    peaks: list[Peak]
    source: str


def _rates(fp16: float, int8: float, *, fp8: float | None = None, half_rate: bool = False, sparse: bool = True) -> list[Peak]:
    """Peaks from the dense rates with fp16 accumulation; sparse is twice dense, fp32 accumulation half where `half_rate`."""
    twice = 2.0 if sparse else None
    slow = 0.5 if half_rate else 1.0
    rows = [("fp16", "fp32", fp16 * slow), ("fp16", "fp16", fp16), ("int8", "int32", int8)]
    rows += [("fp8", "fp32", fp8 * slow), ("fp8", "fp16", fp8)] if fp8 else []
    return [Peak(dtype, accumulate, dense, dense * twice if twice else None) for dtype, accumulate, dense in rows]


_GA102 = "NVIDIA Ampere GA102 GPU Architecture whitepaper v2"
_ADA = "NVIDIA Ada GPU Architecture whitepaper v2"
_RTX_BLACKWELL = "NVIDIA RTX Blackwell GPU Architecture whitepaper"
_ORIN = "NVIDIA Jetson AGX Orin Series Technical Brief; Jetson Orin modules data sheets"

GPUS: tuple[Gpu, ...] = (
    Gpu(name="T4", sm="7.5", gb_per_s=320, peaks=_rates(65, 130, sparse=False), source="NVIDIA T4 data sheet: no sparse tensor cores"),
    Gpu(name="A100-SXM-80GB", sm="8.0", gb_per_s=2039, peaks=_rates(312, 624), source="NVIDIA A100 data sheet"),
    Gpu(name="A100-SXM-40GB", sm="8.0", gb_per_s=1555, peaks=_rates(312, 624), source="NVIDIA A100 data sheet"),
    Gpu(name="A30", sm="8.0", gb_per_s=933, peaks=_rates(165, 330), source="NVIDIA A30 data sheet"),
    Gpu(name="A10", sm="8.6", gb_per_s=600, peaks=_rates(125, 250), source="NVIDIA A10 data sheet"),
    Gpu(name="A40", sm="8.6", gb_per_s=696, peaks=_rates(149.7, 299.3), source="NVIDIA A40 data sheet"),
    Gpu(name="RTX-A6000", sm="8.6", gb_per_s=768, peaks=_rates(154.8, 309.7), source=f"{_GA102}, appendix C"),
    Gpu(name="RTX-3090", sm="8.6", gb_per_s=936, peaks=_rates(142, 284, half_rate=True), source=f"{_GA102}, appendix A"),
    Gpu(name="RTX-3070", sm="8.6", gb_per_s=448, peaks=_rates(81.3, 162.6, half_rate=True), source=f"{_GA102}, appendix A"),
    Gpu(name="Orin-AGX-64GB", sm="8.7", gb_per_s=204.8, peaks=_rates(42.5, 85), source=f"{_ORIN}: GPU 170 of 275 sparse INT8 TOPS"),
    Gpu(name="Orin-NX-16GB", sm="8.7", gb_per_s=102.4, peaks=_rates(15, 30), source=f"{_ORIN}: GPU 60 of 100 sparse INT8 TOPS"),
    Gpu(name="Orin-Nano-8GB", sm="8.7", gb_per_s=68, peaks=_rates(10, 20), source=f"{_ORIN}: 40 sparse INT8 TOPS, no DLA"),
    Gpu(name="L4", sm="8.9", gb_per_s=300, peaks=_rates(121, 242.5, fp8=242.5), source="NVIDIA L4 data sheet (prints sparse figures)"),
    Gpu(name="L40S", sm="8.9", gb_per_s=864, peaks=_rates(362, 733, fp8=733), source="NVIDIA L40S data sheet"),
    Gpu(name="RTX-4090", sm="8.9", gb_per_s=1008, peaks=_rates(330.3, 660.6, fp8=660.6, half_rate=True), source=f"{_ADA}, appendix A"),
    Gpu(name="H100-SXM", sm="9.0", gb_per_s=3350, peaks=_rates(989.4, 1978.9, fp8=1978.9), source="NVIDIA H100 data sheet"),
    Gpu(name="H100-PCIe", sm="9.0", gb_per_s=2000, peaks=_rates(756, 1513, fp8=1513), source="NVIDIA H100 data sheet"),
    Gpu(name="H200-SXM", sm="9.0", gb_per_s=4800, peaks=_rates(989.4, 1978.9, fp8=1978.9), source="NVIDIA H200 data sheet"),
    Gpu(name="RTX-5090", sm="12.0", gb_per_s=1792, peaks=_rates(419, 838, fp8=838, half_rate=True), source=f"{_RTX_BLACKWELL}, appendix A"),
)
"""Only GPUs whose figures a public document of NVIDIA states."""


def known_gpus(own: Path | None = None) -> dict[str, Gpu]:
    """The table by lower-case name, with the rows of a user's file over it.

    Raises:
        InputError: the file cannot be read, or a row is not of the table's form.
    """
    rows = list(GPUS)
    if own is not None:
        try:
            rows += msgspec.json.decode(own.read_bytes(), type=list[Gpu])
        except OSError as error:
            raise unreadable(own, error, "the GPU table") from None
        except msgspec.DecodeError as error:
            hint = "a JSON list of {name, sm, gb_per_s, peaks: [[dtype, accumulate, dense, sparse]], source}"
            raise InputError(f"not a table of GPUs: {error}", where=str(own), hint=hint) from None
    return {row.name.lower(): row for row in rows}


def pick_gpus(names: list[str], own: Path | None = None) -> list[Gpu]:
    """The named GPUs; all of the user's file, or of the table, where none is named.

    Raises:
        InputError: no GPU of that name; says which there are.
    """
    table = known_gpus(own)
    unknown = [name for name in names if name.lower() not in table]
    if unknown:
        raise InputError(
            f"no GPU {unknown[0]!r} in the table", hint=f"known: {', '.join(row.name for row in table.values())}; or --gpu-table FILE"
        )
    return [table[name.lower()] for name in names] or list(table.values())
