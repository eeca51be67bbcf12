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

from pipeline.tactics.columns import ID_DIGITS, Lines, word

(SLOW, TACTIC, TIME, STARS, DASHES, EQUALS, CHOSE, FASTEST, NOTHING) = range(9)
"""Kinds of line."""
TACTIC_HEAD = len("Tactic Name: ")
SET_NAME = b"Set Tactic Name: "
_ID_TAIL = len(" Tactic: 0x") + ID_DIGITS
_PLAIN = re.compile(rb"Tactic: (0x[0-9a-fA-F]{1,16}|-?\d{1,19}) [Tt]ime:? (\d{1,12}\.?\d{0,18}(?:[eE]-?\d{1,2})?)")
_NUMBER_BITS = (1 << 64) - 1

IsName = Callable[[bytes, bytes, bytes], bool]
"""Whether a message that holds `L `, `Set Tactic Name: ` and a kernel's name is exactly that; told L, the name and the message."""


class Timed(msgspec.Struct):
    """The block's timed tactics, in order."""

    line: np.ndarray
    """int64 [n], index of the line in the block."""
    name_start: np.ndarray
    """int64 [n], where the kernel's name is; start and end are 0 where none is known."""
    name_end: np.ndarray
    id: np.ndarray
    """uint64 [n]."""
    ms: np.ndarray
    """float64 [n], as Python's float() reads the text."""
    odd: dict[int, str] = {}
    """Index -> id as printed, where that is not `0x` and sixteen lower-case digits."""

    def kept(self, keep: np.ndarray) -> Timed:
        """Those of a mask; only for tactics of the one-line form, which has no odd ids."""
        return Timed(self.line[keep], self.name_start[keep], self.name_end[keep], self.id[keep], self.ms[keep])

    def before(self, lines: np.ndarray) -> np.ndarray:
        """How many timed tactics stand before each of the given lines."""
        return np.searchsorted(self.line, lines)

    def before_line(self, line: int) -> int:
        """How many timed tactics stand before one line."""
        return int(np.searchsorted(self.line, line))


def named(lines: Lines, kinds: np.ndarray) -> Timed:
    """The lines of the kind TACTIC that are of the one-line form; the others of that kind become SLOW."""
    at = np.flatnonzero(kinds == TACTIC)
    size, ok, ms = lines.times(at)
    stop = lines.ends[at] - size - len(" Time: ")
    name_end = stop - _ID_TAIL
    name_start = lines.starts[at] + lines.width + TACTIC_HEAD
    ok &= (name_end > name_start) & (lines.at(name_end) == word(b" Tactic:")) & (lines.at(name_end + 3) == word(b"ctic: 0x"))
    ids, hexadecimal = lines.ids(stop - ID_DIGITS)
    ok &= hexadecimal & (lines.at(name_start - 8) == word(b"c Name: "))
    kinds[at[~ok]] = SLOW
    return Timed(at[ok], name_start[ok], name_end[ok], ids[ok], ms[ok])


def on_their_own(block: bytes, lines: Lines, kinds: np.ndarray, is_name: IsName, *, waiting: bool) -> Timed:
    """The lines of the kind TIME, each with the name of the line before it where that is one.

    Their kind becomes TACTIC, that of the lines with the name NOTHING; the kind of those that are left to the slow way becomes SLOW.

    Args:
        block: The block of `lines`.
        lines: Its lines.
        kinds: uint8 [lines], changed in place.
        is_name: Checks a line that seems to have a name.
        waiting: Whether a name from before the block waits for its time.
    """
    at = np.flatnonzero(kinds == TIME)
    ids, ms, ok, odd = _decode(block, lines, at)
    kinds[at[~ok]] = SLOW
    start, end = _names(block, lines, kinds, at, ok, ids, odd, is_name)
    relevant = np.flatnonzero((kinds != NOTHING) & (kinds != FASTEST))
    before = np.searchsorted(relevant, at) - 1
    safe = np.where(before < 0, not waiting, kinds[relevant[before]] != SLOW)  # else that line may have named this tactic
    ok &= (end > 0) | safe
    kinds[at] = np.where(ok, TACTIC, SLOW)
    place = (np.cumsum(ok) - 1).tolist()
    return Timed(at[ok], start[ok], end[ok], ids[ok], ms[ok], {place[i]: text for i, text in odd.items() if ok[i]})


def _decode(block: bytes, lines: Lines, at: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[int, str]]:
    """Id and time of lines `Tactic: T Time: t`, whether they are so, and the ids that are printed otherwise."""
    size, ok, ms = lines.times(at)
    id_start = lines.ends[at] - size - len(" Time: ") - ID_DIGITS
    ids, hexadecimal = lines.ids(id_start)
    ok &= hexadecimal & (id_start == lines.starts[at] + lines.width + len("Tactic: 0x")) & (lines.at(id_start - 8) == word(b"ctic: 0x"))
    odd: dict[int, str] = {}
    for i in np.flatnonzero(~ok).tolist():
        match = _PLAIN.fullmatch(block, int(lines.starts[at[i]]) + lines.width, int(lines.ends[at[i]]))
        if match:
            text = match[1].decode().lower()
            odd[i] = text
            ids[i] = int(text, 16 if text.startswith("0x") else 10) & _NUMBER_BITS
            ms[i], ok[i] = float(match[2]), True
    return ids, ms, ok, odd


def _names(
    block: bytes,
    lines: Lines,
    kinds: np.ndarray,
    at: np.ndarray,
    ok: np.ndarray,
    ids: np.ndarray,
    odd: dict[int, str],
    is_name: IsName,
) -> tuple[np.ndarray, np.ndarray]:
    """Where the name of each time's kernel is, if the line before is `L Set Tactic Name: N` of the same tactic; else 0 and 0."""
    start, end = np.zeros(len(at), np.int64), np.zeros(len(at), np.int64)
    picked = np.flatnonzero(ok & (at > 0))
    picked = picked[(kinds[at[picked] - 1] == SLOW) & lines.hot[at[picked] - 1]]
    heads = at[picked] - 1
    begin, stop = lines.starts[heads] + lines.width, lines.ends[heads]
    told, hexadecimal = lines.ids(stop - ID_DIGITS)
    has_id = hexadecimal & (lines.at(stop - _ID_TAIL) == word(b" Tactic:")) & (lines.at(stop - _ID_TAIL + 3) == word(b"ctic: 0x"))
    same = told == ids[picked]
    for i, head, a, b, id_told, id_same in zip(
        picked.tolist(), heads.tolist(), begin.tolist(), stop.tolist(), has_id.tolist(), same.tolist()
    ):
        if id_told and (not id_same or i in odd):
            continue
        found = block.rfind(SET_NAME, a, b)
        name_start, name_end = found + len(SET_NAME), b - _ID_TAIL if id_told else b
        if found < 0 or name_end <= name_start or not is_name(block[a:found], block[name_start:name_end], block[a:b]):
            continue
        start[i], end[i] = name_start, name_end
        kinds[head] = NOTHING
    return start, end


def merge(one: Timed, other: Timed) -> tuple[Timed, list[int]]:
    """Two sets of timed tactics of a block as one, in the order of their lines; and that order, as indices of one set after the other."""
    line = np.concatenate((one.line, other.line))
    order = np.argsort(line, kind="stable")
    place = np.argsort(order)[len(one.line) :].tolist() if other.odd else []

    def both(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        joined: np.ndarray = np.concatenate((a, b))[order]
        return joined

    merged = Timed(
        line[order],
        both(one.name_start, other.name_start),
        both(one.name_end, other.name_end),
        both(one.id, other.id),
        both(one.ms, other.ms),
        {place[i]: text for i, text in other.odd.items()},
    )
    return merged, order.tolist()
