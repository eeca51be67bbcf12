"""A stretch of structure lines at once: what `Tables` does line by line, told by how each line leaves the state.

The state of the tables (costs line, layer, format, whether a combination is open, where it began) before a line is what
the last line left that sets it. So each of them is a column that is filled forward, and the combinations, their choices
and the timed tactics that belong to none follow from the columns. A test holds it against `Tables`' own methods.
"""

from __future__ import annotations

from array import array

import msgspec
import numpy as np

from pipeline.tactics.combinations import CHOSEN, FORMAT, IGNORED, LAYER, LINE, NONE, START, STRIDE, WINNER
from pipeline.tactics.tables import Tables
from pipeline.tactics.timed import CHOSE, DASHES, EQUALS, FASTEST, NOTHING, STARS

_NONE, _IGNORED = np.uint64(NONE), np.uint64(IGNORED)


class Events(msgspec.Struct):
    """Lines of structure in order, and how far the timed tactics reach before each of them."""

    kind: np.ndarray
    """uint8 [n]: STARS, DASHES, EQUALS, NOTHING (a reformat's heading), CHOSE or FASTEST."""
    number: np.ndarray
    """uint64 [n]: the layer or format; of CHOSE the id."""
    runner: np.ndarray
    """uint64 [n]: of DASHES."""
    line: np.ndarray
    """int64 [n], in the file."""
    reached: np.ndarray
    """int64 [n + 2]: timed tactics of the block before the first line, before each line, and before what follows the last."""

    odd: dict[int, str]
    """Index -> id of a choice as printed, where that is not `0x` and sixteen lower-case digits."""

    def until(self, end: int) -> Events:
        """The first of them; what follows the last is then the next line."""
        return self._at(np.arange(end), np.arange(end + 2))

    def without(self, left_out: np.ndarray) -> Events:
        """Those that are not in a mask."""
        at = np.flatnonzero(~left_out)
        return self._at(at, np.concatenate(([0], at + 1, [len(left_out) + 1])))

    def _at(self, at: np.ndarray, reached: np.ndarray) -> Events:
        place = {i: place for place, i in enumerate(at.tolist())} if self.odd else {}
        odd = {place[i]: text for i, text in self.odd.items() if i in place}
        return Events(self.kind[at], self.number[at], self.runner[at], self.line[at], self.reached[reached], odd)


def _fill(carried: int, sets: np.ndarray, values: np.ndarray) -> np.ndarray:
    """A column of the state [n + 1], before each line and behind the last: what the lines of a mask set it to."""
    last = np.zeros(len(sets) + 1, np.int64)
    last[1:][sets] = sets.nonzero()[0] + 1
    states = np.empty(len(sets) + 1, values.dtype)
    states[0] = carried
    states[1:] = values
    return states[np.maximum.accumulate(last)]


def _put(rows: np.ndarray, at: np.ndarray, *columns: np.ndarray) -> None:
    """Write new combinations: layer, format, first timed tactic and line of each."""
    for place, column in zip((LAYER, FORMAT, START, LINE), columns, strict=True):
        rows[at, place] = column


def take(tables: Tables, events: Events, timed_line: np.ndarray) -> tuple[int, np.ndarray]:
    """Take a stretch of lines into the tables.

    Args:
        tables: They hold the state before, and are given the state behind.
        events: The lines.
        timed_line: int64, the line in the file of each timed tactic of the block.

    Returns:
        How many lines were taken: fewer than all where one names the layer of tables that lack it; and which of the timed
        tactics that were reached belong to no reformat: bool.
    """
    costs, layer = _layers(tables, events)
    completed = events.kind == FASTEST
    nameless = completed & (layer[:-1] == _NONE)
    if nameless.any():
        return take(tables, events.until(int(nameless.argmax())), timed_line)
    said = np.append(True, ~completed)
    return len(completed), _combine(tables, events.without(completed), costs[said], layer[said], timed_line)


def _layers(tables: Tables, events: Events) -> tuple[np.ndarray, np.ndarray]:
    """The states [n + 1] of the layer that a costs line names, and of the layer that is timed."""
    kind, number = events.kind, events.number
    dashes, equals = kind == DASHES, kind == EQUALS
    named = _fill(tables.costing, equals, number)[1:]
    other = dashes & (number != named) & (number != _IGNORED)
    costs = _fill(tables.costing, equals | other, np.where(other, _NONE, number))
    return costs, _fill(tables.at[0], kind != FASTEST, np.where(dashes | (kind == NOTHING), number, _NONE))


def _combine(tables: Tables, events: Events, costs: np.ndarray, layer: np.ndarray, timed_line: np.ndarray) -> np.ndarray:
    """Append the combinations of lines of which none is FASTEST, and leave the state behind them."""
    kind, number = events.kind, events.number
    stars, dashes, chose = kind == STARS, kind == DASHES, kind == CHOSE
    timed = np.diff(events.reached)
    counted = np.where(layer == _IGNORED, 0, timed)
    cursor = tables.cursor + counted.cumsum()
    was_open = np.append(tables.open, stars | dashes)
    is_open = was_open | (counted > 0)
    alone = ~was_open & is_open  # tactics of a combination whose first line is missing
    other_layer = dashes & (number != layer[:-1])
    begins = stars | other_layer | (dashes & ~is_open[:-1])
    begun = _fill(tables.rows[START - STRIDE] if len(tables) else 0, begins, cursor[:-1])[:-1]
    renames = other_layer & is_open[:-1] & (begun == cursor[:-1])  # the combination's own line comes before its layer's name
    adds = (begins & ~renames) | (chose & ~is_open[:-1])
    lost = other_layer & ~renames & (layer[:-1] != _NONE)  # lines between two layers are missing
    format_ = _fill(tables.at[1], ~dashes | lost, np.where(stars, number, _NONE))

    at = (alone[:-1].astype(np.int64) + adds).cumsum()  # the combination of each line; 0 is the last one of before
    ends = np.append(0, at)
    rows = np.zeros((1 + ends[-1] + alone[-1], STRIDE), np.uint64)
    if len(tables):
        rows[0] = tables.rows[-STRIDE:]
    _put(rows, ends[alone] + 1, layer[alone], format_[alone], (cursor - counted)[alone], timed_line[events.reached[:-1][alone]])
    of_row = np.where(stars, costs[1:], np.where(chose, layer[:-1], layer[1:]))[adds]
    format_of_row = np.where(chose, format_[:-1], format_[1:])[adds]
    _put(rows, at[adds], of_row, format_of_row, cursor[:-1][adds], events.line[adds])
    rows[at[renames], LAYER] = number[renames]
    rows[ends[was_open & (counted > 0) & (layer == _NONE)], LAYER] = NONE
    rows[at[chose], WINNER] = number[chose]
    rows[at[chose], CHOSEN] = 1
    tables.odd_winners.update((len(tables) - 1 + int(at[i]), text) for i, text in events.odd.items())
    if len(tables):
        tables.rows[-STRIDE:] = array("Q", rows[0].tobytes())
    tables.rows.frombytes(rows[1:].tobytes())

    runner = events.runner[dashes]
    changed = runner != np.append(np.uint64(tables.runner[-1]), runner[:-1])
    tables.stretch.frombytes(cursor[:-1][dashes][changed].astype(np.uint32).tobytes())
    tables.runner.frombytes(runner[changed].astype(np.uint32).tobytes())
    tables.headless = tables.headless or (not tables.headed and bool((kind == EQUALS).any()))
    tables.costing, tables.at = int(costs[-1]), (int(layer[-1]), int(format_[-1]))
    tables.open, tables.cursor = bool(is_open[-1]), int(cursor[-1])
    keep: np.ndarray = (layer != _IGNORED).repeat(timed)
    return keep
