"""One layer's timing tables condensed: counts by class, best sparse and best dense, the final tactic's combination."""

from __future__ import annotations

import msgspec

from pipeline.records.tactics import Best, BestTime, Candidates, Tactic
from pipeline.tactics.tables import Tables


class Won(msgspec.Struct, frozen=True):
    """The choice of one combination."""

    row: int
    index: int | None
    """The timed tactic that was chosen; None where its line is missing."""


class LayerTimes(msgspec.Struct):
    """What the tables say of one layer."""

    candidates: Candidates | None
    best: Best | None = None
    tuned_ms: float | None = None
    name_of_final: str | None = None
    runner_of_final: str | None = None
    choice: Tactic | None = None
    choice_line: int | None = None
    sparse_line: int | None = None
    dense_line: int | None = None
    best_anywhere: dict[str, tuple[float, int]] = {}
    """Class -> (ms, row) over all combinations."""
    final_row: int | None = None
    formats: dict[int, str | None] = {}
    winner_classes: list[str] = []


def layer_times(tables: Tables, rows: list[int], final_id: str | None) -> LayerTimes | None:
    """Condense the combinations `rows` of one layer; None where it has none.

    Args:
        tables: The build's tables.
        rows: The layer's combinations.
        final_id: The tactic that the engine runs, as the dump or layer info prints it.
    """
    if not rows:
        return None
    counts = {"sparse": 0, "dense": 0, "unknown": 0}
    best: dict[tuple[str, int], int] = {}
    anywhere: dict[str, int] = {}
    for row in rows:
        for i in tables.span(row):
            kind = tables.class_at(i)
            counts[kind] += 1
            if (kind, row) not in best or tables.ms[i] < tables.ms[best[kind, row]]:
                best[kind, row] = i
            if kind not in anywhere or tables.ms[i] < tables.ms[anywhere[kind]]:
                anywhere[kind] = i
    times = LayerTimes(Candidates(**counts) if any(counts.values()) else None)
    times.formats = {row: _format(tables, row) for row in rows}
    if times.candidates is None:
        return times
    row_of = {i: row for row in rows for i in tables.span(row)}
    times.best_anywhere = {kind: (tables.ms[i], row_of[i]) for kind, i in anywhere.items()}
    times.sparse_line = tables.line[anywhere["sparse"]] if "sparse" in anywhere else None
    times.dense_line = tables.line[anywhere["dense"]] if "dense" in anywhere else None
    winners = [Won(row, _find(tables, row, tables.winner_id(row))) for row in rows if tables.chosen[row]]
    final = _final(tables, rows, winners, final_id)
    if final is not None:
        times.final_row, times.tuned_ms = row_of[final], tables.ms[final]
        times.name_of_final, times.runner_of_final = tables.kernel_at(final), tables.runners.names[tables.runner[final]]
    times.winner_classes = ["unknown" if won.index is None else tables.class_at(won.index) for won in winners]
    if final_id is None:
        _choose(times, tables, rows, winners)
    times.best = _best(times, tables, best, anywhere, row_of)
    return times


def _format(tables: Tables, row: int) -> str | None:
    return tables.formats.names[tables.format[row]] if tables.format[row] >= 0 else None


def _find(tables: Tables, row: int, id_: str | None) -> int | None:
    """The fastest timed tactic of a combination with this id."""
    found = [i for i in tables.span(row) if tables.tactic_id(i) == id_]
    return min(found, key=lambda i: tables.ms[i]) if found else None


def _final(tables: Tables, rows: list[int], winners: list[Won], final_id: str | None) -> int | None:
    """The timed tactic that the engine runs: among the winners if one has its id, else among all that were timed."""
    if final_id is None:
        return None
    won = [w.index for w in winners if w.index is not None and tables.tactic_id(w.index) == final_id]
    timed = won or [i for row in rows if (i := _find(tables, row, final_id)) is not None]
    return min(timed, key=lambda i: tables.ms[i]) if timed else None


def _choose(times: LayerTimes, tables: Tables, rows: list[int], winners: list[Won]) -> None:
    """Without dump: the class is known only if every combination chose, and all chose one class."""
    complete = all(tables.chosen[row] for row in rows if len(tables.span(row)))
    classes = set(times.winner_classes)
    if not complete or len(classes) != 1 or "unknown" in classes:
        return
    indices = [won.index for won in winners if won.index is not None]
    names = {tables.kernel_at(i) for i in indices}
    ids = {tables.tactic_id(i) for i in indices}
    runners = {tables.runners.names[tables.runner[i]] for i in indices}
    times.choice = Tactic(
        name=names.pop() if len(names) == 1 else None,
        kind=tables.class_at(indices[0]),
        id=ids.pop() if len(ids) == 1 else None,
        runner=runners.pop() if len(runners) == 1 else None,
        how="choice",
    )
    times.choice_line = tables.at[winners[-1].row]
    if len(winners) == 1:
        times.final_row, times.tuned_ms = winners[0].row, tables.ms[indices[0]]


def _best(
    times: LayerTimes, tables: Tables, best: dict[tuple[str, int], int], anywhere: dict[str, int], row_of: dict[int, int]
) -> Best | None:
    known = [i for kind, i in anywhere.items() if kind != "unknown"]
    if not known:
        return None
    row = times.final_row
    if row is None:
        row = row_of[min(anywhere.values(), key=lambda i: tables.ms[i])]
    picked: dict[str, int | None] = {kind: best.get((kind, row), anywhere.get(kind)) for kind in ("sparse", "dense")}
    here = all(i is not None and row_of[i] == row for i in picked.values())
    times_of = {kind: None if i is None else BestTime(ms=tables.ms[i], format=_format(tables, row_of[i])) for kind, i in picked.items()}
    return Best(sparse=times_of["sparse"], dense=times_of["dense"], comparable=here and _format(tables, row) is not None)
