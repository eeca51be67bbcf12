"""Which lines of a block time a tactic: one row of columns for each, whatever the version's form.

| form | versions | decoded by |
|---|---|---|
| `Tactic Name: N Tactic: 0x... Time: t` | 8.6 and later | numpy |
| `L Set Tactic Name: N Tactic: 0x...`, then `Tactic: 0x... Time: t` | 8.4, 8.5 | numpy, the name's place by line |
| `L (R) Set Tactic Name: N`, then `Tactic: -123 time t` | 7.x | line by line |
| `Tactic: 0x... Time: t`, `Tactic: 1002 Time: t` | where no name is printed | numpy; a decimal id line by line |

A line that is not exactly of its form, or whose name may stand in a line that is read the slow way, is left to the slow way too.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec
import numpy as np

from pipeline.tactics.columns import ID_DIGITS, Lines
from pipeline.tactics.lookup import NEW
from pipeline.tactics.words import word

(SLOW, TACTIC, TIME, STARS, DASHES, EQUALS, CHOSE, FASTEST, NOTHING) = range(9)
"""Kinds of line."""
TACTIC_HEAD = len("Tactic Name: ")
_RUNNER = b"--------------- Timing Runner: "
SET_NAME = b"Set Tactic Name: "
_ID_TAIL = len(" Tactic: 0x") + ID_DIGITS
_PLAIN = re.compile(rb"Tactic: (0x[0-9a-fA-F]{1,16}|-?\d{1,19}) [Tt]ime:? (\d{1,12}\.?\d{0,18}(?:[eE]-?\d{1,2})?)")
_NUMBER_BITS = (1 << 64) - 1

IsName = Callable[[tuple[bytes, bool], bytes, bytes], bool]
"""Whether a message is `L Set Tactic Name: N`, perhaps with an id; told (L, whether there is an id), N and the message."""


class Timed(msgspec.Struct):
    """The block's timed tactics, in order."""

    line: np.ndarray
    """int64 [n], index of the line in the block."""
    start: np.ndarray
    """int64 [n], where the kernel's name is in the block; start and end are 0 where the log has none."""
    end: np.ndarray
    kernel: np.ndarray
    """int32 [n], the number of its name; `NEW` until it was looked up."""
    id: np.ndarray
    """uint64 [n]."""
    ms: np.ndarray
    """float64 [n], as Python's float() reads the text."""
    odd: dict[int, str] = {}
    """Index -> id as printed, where that is not `0x` and sixteen lower-case digits."""

    def kept(self, keep: np.ndarray) -> Timed:
        """Those of a mask."""
        if keep.all():
            return self
        place = (np.cumsum(keep) - 1).tolist() if self.odd else []
        odd = {place[i]: text for i, text in self.odd.items() if keep[i]}
        return Timed(self.line[keep], self.start[keep], self.end[keep], self.kernel[keep], self.id[keep], self.ms[keep], odd)

    def before(self, lines: np.ndarray) -> np.ndarray:
        """How many timed tactics stand before each of the given lines."""
        return np.searchsorted(self.line, lines)

    def before_line(self, line: int) -> int:
        """How many timed tactics stand before one line."""
        return int(np.searchsorted(self.line, line))


def decode(block: bytes, lines: Lines, kinds: np.ndarray) -> Timed:
    """The lines of the kinds TACTIC and TIME that are exactly of their form; the others of these kinds become SLOW.

    A line of the kind TIME has no name yet: `named_before` finds it.
    """
    at = np.flatnonzero((kinds == TACTIC) | (kinds == TIME))
    whole = kinds[at] == TACTIC
    size, ok, ms = lines.times(at)
    id_start = lines.ends[at] - size - (len(" Time: ") + ID_DIGITS)
    ids, hexadecimal = lines.ids(id_start)
    begin = lines.starts[at] + lines.width
    name_start, name_end = begin + TACTIC_HEAD, id_start - len(" Tactic: 0x")
    after_name = (lines.at(name_end) == word(b" Tactic:")) & (name_end > name_start) & (lines.at(name_start - 8) == word(b"c Name: "))
    ok &= hexadecimal & (lines.at(id_start - 8) == word(b"ctic: 0x")) & np.where(whole, after_name, id_start == begin + len("Tactic: 0x"))
    odd: dict[int, str] = {}
    for i in np.flatnonzero(~(ok | whole)).tolist():
        match = _PLAIN.fullmatch(block, int(begin[i]), int(lines.ends[at[i]]))
        if match:
            text = match[1].decode().lower()
            odd[i] = text
            ids[i] = int(text, 16 if text.startswith("0x") else 10) & _NUMBER_BITS
            ms[i], ok[i] = float(match[2]), True
    kinds[at[~ok]] = SLOW
    return Timed(at, np.where(whole, name_start, 0), np.where(whole, name_end, 0), np.full(len(at), NEW, np.int32), ids, ms, odd).kept(ok)


def named_before(block: bytes, lines: Lines, kinds: np.ndarray, timed: Timed, is_name: IsName, *, waiting: bool) -> Timed:
    """Give the tactics of the kind TIME the name of the line before, where that is one.

    Their kind becomes TACTIC, that of the lines with the name NOTHING. SLOW becomes the kind of those that are for the slow way.

    Args:
        block: The block of `lines`.
        lines: Its lines.
        kinds: uint8 [lines], changed in place.
        timed: Tactics of the block; the places of their names are filled in.
        is_name: Checks a line that seems to have a name.
        waiting: Whether a name from before the block waits for its time.

    Returns:
        The tactics that stay.
    """
    own = np.flatnonzero(kinds[timed.line] == TIME)
    at = timed.line[own]
    _name(block, lines, kinds, timed, own, is_name)
    relevant = np.flatnonzero((kinds != NOTHING) & (kinds != FASTEST))
    before = np.searchsorted(relevant, at) - 1
    safe = np.where(before < 0, not waiting, kinds[relevant[before]] != SLOW)  # else that line may have named this tactic
    safe |= timed.end[own] > 0
    kinds[at] = np.where(safe, TACTIC, SLOW)
    stay = np.ones(len(timed.line), bool)
    stay[own] = safe
    return timed.kept(stay)


def _name(block: bytes, lines: Lines, kinds: np.ndarray, timed: Timed, own: np.ndarray, is_name: IsName) -> None:
    """Where the line before a time is `L Set Tactic Name: N` of the same tactic."""
    own = own[timed.line[own] > 0]
    heads = timed.line[own] - 1
    picked = (kinds[heads] == SLOW) & lines.hot[heads]
    own, heads = own[picked], heads[picked]
    if not len(own):
        return
    begin, stop = lines.starts[heads] + lines.width, lines.ends[heads]
    told, hexadecimal = lines.ids(stop - ID_DIGITS)
    has_id = hexadecimal & (lines.at(stop - _ID_TAIL) == word(b" Tactic:")) & (lines.at(stop - _ID_TAIL + 3) == word(b"ctic: 0x"))
    same = told == timed.id[own]
    dashes = np.flatnonzero(kinds == DASHES)
    if not len(dashes):
        return
    last = np.searchsorted(dashes, heads) - 1
    has_id &= last >= 0  # the layer that is timed is told by the last runner's line
    runners = lines.starts[dashes[last]] + lines.width + len(_RUNNER)
    columns = (own, heads, begin, stop, has_id, same, runners)
    for i, head, a, b, id_told, id_same, runner in zip(*(column.tolist() for column in columns)):
        if not id_told or not id_same or i in timed.odd:  # a name without an id is given by the order of all lines
            continue
        found = block.rfind(SET_NAME, a, b)
        name_start, name_end = found + len(SET_NAME), b - _ID_TAIL if id_told else b
        if found < 0 or not block.startswith(block[a:found] + b"(", runner):  # of another layer than the one that is timed
            continue
        if name_end <= name_start or not is_name((block[a:found], id_told), block[name_start:name_end], block[a:b]):
            continue
        timed.start[i], timed.end[i] = name_start, name_end
        kinds[head] = NOTHING
