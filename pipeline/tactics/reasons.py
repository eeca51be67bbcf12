"""Why a layer is not selected, or why that is not known: one rule for each code of `codes.REASONS`."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

import msgspec

from pipeline.records.rung import Rung
from pipeline.records.tactics import Reason, Region, Tactic
from pipeline.tactics.cache import Cache
from pipeline.tactics.times import LayerTimes

_PRECISION = re.compile(r"\b(Float|Half|BFloat16|BF16|Int8|FP8|FP4|Int4|FP16|FP32)\b")


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one layer when its reasons are sought."""

    eligible: Rung
    timed: Rung
    selected: Rung
    region: Region | None
    times: LayerTimes | None
    tactic: Tactic | None
    conflicts: list[str]
    skipped: int
    cache: Cache | None
    twin: str | None
    """An earlier layer with the same format combinations, where this one was not timed."""
    fp32_only: bool
    format_of: Callable[[int], str | None]
    """The formats of a combination row."""

    @property
    def asks_why(self) -> bool:
        """Whether the layer was eligible, or might have been, and is not known to be selected."""
        return self.selected is not Rung.YES and self.eligible in (Rung.YES, Rung.DISPUTED)


def _ms(value: float) -> str:
    return f"{value:.4g} ms"


def _dense_faster(case: Case) -> str | None:
    best = case.times.best if case.times else None
    if case.selected is not Rung.NO or best is None or not best.comparable or best.sparse is None or best.dense is None:
        return None
    sparse, dense = best.sparse.ms, best.dense.ms
    if dense > sparse or sparse <= 0:
        return None
    return f"dense {_ms(dense)}, sparse {_ms(sparse)} in the same formats: dense takes {(sparse - dense) / sparse:.1%} less"


def _elsewhere(case: Case) -> tuple[float, str | None, str | None] | None:
    """(ms, format, final format) of the best sparse tactic where it is of another combination than the final tactic's."""
    times = case.times
    if case.selected is not Rung.NO or times is None or "sparse" not in times.best_anywhere or times.final_row is None:
        return None
    ms, row = times.best_anywhere["sparse"]
    best = times.best
    if row == times.final_row or (best is not None and best.comparable and times.tuned_ms is not None and ms >= times.tuned_ms):
        return None
    return ms, case.format_of(row), case.format_of(times.final_row)


@lru_cache(maxsize=4096)
def precision_of(format_: str | None) -> str | None:
    """The first data type of a format combination."""
    match = _PRECISION.search(format_ or "")
    return match.group() if match else None


def _other_precision(case: Case) -> str | None:
    found = _elsewhere(case)
    if found is None:
        return None
    ms, theirs, final = found
    a, b = precision_of(theirs), precision_of(final)
    if a is None or b is None or a == b:
        return None
    assert case.times is not None
    tuned = f" ({_ms(case.times.tuned_ms)})" if case.times.tuned_ms is not None else ""
    return f"the engine runs it in {b}{tuned}; the fastest sparse tactic ({_ms(ms)}) is of {a}"


def _format_cost(case: Case) -> str | None:
    found = _elsewhere(case)
    if found is None:
        return None
    ms, theirs, final = found
    if theirs is None or final is None or precision_of(theirs) != precision_of(final):
        return None
    assert case.times is not None
    tuned = f" ({_ms(case.times.tuned_ms)})" if case.times.tuned_ms is not None else ""
    return f"the engine uses {final}{tuned}; the fastest sparse tactic ({_ms(ms)}) was timed for {theirs}"


def _no_sparse_candidate(case: Case) -> str | None:
    counts = case.times.candidates if case.times else None
    if not case.asks_why or case.timed is not Rung.NO or counts is None:
        return None
    return f"{counts.dense} tactic(s) were timed, all dense"


def _repeat(case: Case) -> str | None:
    if not case.asks_why or case.cache != "repeat":
        return None
    return f"repeat of {case.twin}" if case.twin else "equal to a layer timed before; the log does not say which"


def _cached(case: Case) -> str | None:
    return "its times come from the timing cache that was loaded" if case.asks_why and case.cache == "global" else None


def _skipped(case: Case) -> str | None:
    return f"{case.skipped} tactic(s) skipped for memory or by an exception" if case.skipped and case.selected is not Rung.YES else None


def _names_unknown(case: Case) -> str | None:
    if case.selected is Rung.YES or case.eligible is Rung.NO:
        return None
    counts = case.times.candidates if case.times else None
    if counts is not None and counts.unknown and not counts.sparse:
        return f"{counts.unknown} of {counts.unknown + counts.dense} timed tactics have no name that tells their class"
    if case.tactic is not None and case.tactic.kind == "unknown" and case.selected in (Rung.UNKNOWN, Rung.DISPUTED):
        return f"the engine's tactic {case.tactic.name or case.tactic.id} does not tell its class"
    return None


def _disagree(case: Case) -> str | None:
    if not case.conflicts and Rung.DISPUTED not in (case.eligible, case.selected):
        return None
    return ", ".join(dict.fromkeys(case.conflicts)) or "see the conflicts"


def _fp32(case: Case) -> str | None:
    return "the build allows FP32 only" if case.fp32_only and case.eligible is Rung.NO else None


def _in_region(region: str, text: str) -> Callable[[Case], str | None]:
    return lambda case: text if case.region == region and case.selected is not Rung.YES else None


RULES: tuple[tuple[str, Callable[[Case], str | None]], ...] = (
    ("sources-disagree", _disagree),
    ("dense-faster", _dense_faster),
    ("other-precision-won", _other_precision),
    ("format-or-reformat-cost", _format_cost),
    ("no-sparse-candidate", _no_sparse_candidate),
    ("repeat-of", _repeat),
    ("timed-from-cache", _cached),
    ("tactics-skipped", _skipped),
    ("myelin-region", _in_region("myelin", "compiled by Myelin as a whole")),
    ("dla", _in_region("dla", "on the deep learning accelerator")),
    ("plugin", _in_region("plugin", "a plugin's own kernel")),
    ("fp32-only-build", _fp32),
    ("names-unknown", _names_unknown),
)
"""Code -> what it says of this layer, or None. In the order in which they are shown."""


def explain(case: Case) -> list[Reason]:
    """The reasons that hold for one layer."""
    return [Reason(code=code, text=text) for code, rule in RULES if (text := rule(case)) is not None]
