"""Sparse or dense: what a kernel's name says, by one ordered table of tokens."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

import msgspec

from pipeline.codes import Level

TacticClass = Literal["sparse", "dense", "unknown"]


class KernelRow(msgspec.Struct, frozen=True):
    """One test of the table: the first row whose pattern is found in the name decides."""

    pattern: str
    says: TacticClass
    level: Level
    why: str


KERNEL_ROWS: tuple[KernelRow, ...] = (
    KernelRow(r"_cusparselt$", "unknown", Level.SAID, "cuSPARSELt's own kernels, not a TensorRT tactic"),
    KernelRow(r"spconv", "unknown", Level.SAID, "a point-cloud library: sparse data, not 2:4 weights"),
    KernelRow(r"(?<![a-z])(?:non|not)[_-]?(?:sparse|sptensor|spmma)", "dense", Level.INFERRED, "the name itself denies the token"),
    KernelRow(
        r"^(?!.*(?:sptensor|spmma|sp_mma)).*sparse[_-]?(?:embedding|scatter|gather|to_dense|attention|segment|softmax)",
        "unknown",
        Level.INFERRED,
        "sparse indices, tables or masks: another sparsity than that of 2:4 weights",
    ),
    KernelRow(r"sparse|sptensor|spmma|sp_mma|spgemm", "sparse", Level.SEEN, "2:4 kernels of every architecture carry one of these tokens"),
    KernelRow(r"(?:\.\.\.|…)$|[\ufffd\0]", "unknown", Level.OWN, "a cut or damaged name: what is missing may be the token"),
    KernelRow(r"^(?:__myl|__myelin|\s*$)", "unknown", Level.SEEN, "Myelin's generated kernels and stubs do not name their math"),
    KernelRow(
        r"xmma|cutlass|cudnn|cublas|implicit_gemm|_avdt_dense_|turing_|ampere_|hopper_",
        "dense",
        Level.SEEN,
        "a known kernel family without a sparse token",
    ),
)
"""In this order. `scudnn` is covered by `cudnn`."""

_COMPILED = tuple((re.compile(row.pattern, re.IGNORECASE), row.says) for row in KERNEL_ROWS)


@lru_cache(maxsize=4096)
def classify(kernel_name: str | None) -> TacticClass:
    """The class of a tactic by its kernel's name; `unknown` where the name does not tell.

    Args:
        kernel_name: As TensorRT prints it; None or empty where it prints none.
    """
    name = kernel_name or ""
    for pattern, says in _COMPILED:
        if pattern.search(name):
            return says
    return "unknown"
