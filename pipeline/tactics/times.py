"""One layer's timing tables together: counts by class, best sparse and best dense, the final tactic's combination."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from pipeline.records.tactics import Best, BestTime, Candidates, Tactic
from pipeline.tactics.combinations import LAYER, STRIDE, Combinations, number_of
from pipeline.tactics.condense import ABSENT, CLASSES, Condensed

SPARSE, DENSE, UNKNOWN = range(len(CLASSES))


class LayerTimes(msgspec.Struct):
    """What the tables say of one layer."""

    candidates: Candidates | None
    rows: Sequence[int] = []
    """The layer's combinations, in the order of the log."""
    whole: bool = True
    """False where the log may lack some of its timed tactics: then what is not here proves nothing."""
    best: Best | None = None
    tuned_ms: float | None = None
    name_of_final: str | None = None
    runner_of_final: str | None = None
    runner: str | None = None
    choice: Tactic | None = None
    choice_line: int | None = None
    sparse_line: int | None = None
    dense_line: int | None = None
    best_anywhere: dict[str, tuple[float, int]] = {}
    """Class -> (ms, row) over all combinations."""
    final_row: int | None = None


class _Layer(msgspec.Struct):
    """One layer's rows, and the fastest timed tactic of each class over all of them as (index, row)."""

    tables: Combinations
    condensed: Condensed
    rows: Sequence[int]
    anywhere: list[tuple[int, int] | None]

    def ms(self, index: int) -> float:
        return self.tables.ms[index]


def layer_times(
    tables: Combinations, condensed: Condensed, rows: Sequence[int], final_id: str | None, final_name: str | None
) -> LayerTimes | None:
    """Bring the combinations `rows` of one layer together; None where it has none.

    Args:
        tables: The build's tables.
        condensed: The same tables, condensed.
        rows: The layer's combinations.
        final_id: The tactic that the engine runs, as the dump or layer info prints it.
        final_name: Its kernel, where given there.
    """
    if not rows:
        return None
    times = LayerTimes(None, rows)
    number = tables.rows[rows[0] * STRIDE + LAYER]
    times.whole = number not in condensed.partly_seen
    counts, fastest = condensed.counts[number], condensed.fastest[number]
    if not any(counts):
        return times
    times.candidates = Candidates(sparse=counts[SPARSE], dense=counts[DENSE], unknown=counts[UNKNOWN])
    anywhere = [None if index == ABSENT else (index, condensed.row_of(index)) for index in fastest]
    layer = _Layer(tables, condensed, rows, anywhere)
    times.best_anywhere = {name: (layer.ms(found[0]), found[1]) for name, found in zip(CLASSES, anywhere) if found}
    times.sparse_line, times.dense_line = (tables.line[found[0]] if found else None for found in anywhere[:2])
    times.runner = tables.runner_at(next(found[0] for found in anywhere if found))
    final = _final(layer, final_id, final_name)
    if final is not None:
        index, times.final_row = final
        times.tuned_ms, times.name_of_final, times.runner_of_final = layer.ms(index), tables.kernel_at(index), tables.runner_at(index)
    elif final_id is None and final_name is None and times.whole:
        _choose(times, layer)
    times.best = _best(times, layer)
    return times


def _final(layer: _Layer, final_id: str | None, final_name: str | None) -> tuple[int, int] | None:
    """The timed tactic that the engine runs: a combination's choice if one is it, else the fastest that was timed."""
    if final_id is None and final_name is None:
        return None

    tables, winner = layer.tables, layer.condensed.winner
    of: Sequence[int] = tables.kernel if final_id is None else tables.id
    wanted = tables.kernels.numbers.get(final_name or "") if final_id is None else number_of(final_id)
    found = [(index, row) for row in layer.rows if (index := winner[row]) != ABSENT and of[index] == wanted]
    found = found or [(i, row) for row in layer.rows for i in tables.span(row) if of[i] == wanted]
    return min(found, key=lambda pair: layer.ms(pair[0])) if found else None


def _choose(times: LayerTimes, layer: _Layer) -> None:
    """Without dump: the class is known only if every combination chose, and all chose one class."""
    tables = layer.tables
    used = [row for row in layer.rows if tables.chosen(row) or len(tables.span(row))]
    winners = [layer.condensed.winner[row] for row in used]
    if not used or ABSENT in winners or not all(tables.chosen(row) for row in used):
        return
    classes = {tables.class_at(i) for i in winners}
    if len(classes) != 1 or "unknown" in classes:
        return
    times.choice = Tactic(
        name=_only({tables.kernel_at(i) for i in winners}),
        kind=tables.class_at(winners[0]),
        id=_only({tables.tactic_id(i) for i in winners}),
        runner=_only({tables.runner_at(i) for i in winners}),
        how="choice",
    )
    times.choice_line = tables.line_of(used[-1])
    if len(used) == 1:
        times.final_row, times.tuned_ms = used[0], layer.ms(winners[0])


def _only(values: set[str | None] | set[str]) -> str | None:
    return next(iter(values)) if len(values) == 1 else None


def _best(times: LayerTimes, layer: _Layer) -> Best | None:
    """Within the final tactic's combination, else within that of the fastest; a class that it lacks is taken from all."""
    if not any(layer.anywhere[:2]):
        return None
    row = times.final_row
    if row is None:
        row = min((found for found in layer.anywhere if found), key=lambda found: layer.ms(found[0]))[1]
    here = [layer.condensed.best_of(row, kind) for kind in (SPARSE, DENSE)]
    picked = [(index, row) if index != ABSENT else found for index, found in zip(here, layer.anywhere)]
    sparse, dense = (
        None if found is None else BestTime(ms=layer.ms(found[0]), format=layer.tables.format_of(found[1])) for found in picked
    )
    comparable = all(found is not None and found[1] == row for found in picked) and layer.tables.format_of(row) is not None
    return Best(sparse=sparse, dense=dense, comparable=comparable)
