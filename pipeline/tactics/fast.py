"""The way through the bulk of a verbose log: whole, clean timing lines, a block of the file at a time.

Nearly all of a verbose log is a handful of line forms behind one fixed prefix. Here such lines are told by a few bytes at
a fixed column, and the ids and times of a block's tactics are decoded together, by numpy. Every other line - and every
line that is not exactly of its form, or that is followed by one without prefix, which might be its continuation - goes
the slow way through `lines` and `streams`, in order. Both ways give the same tables: a test holds it. They differ where a
prefix is damaged before its last digit: its end and length are what is looked at here, so such a line is still read.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from pipeline.tactics.actions import Actions
from pipeline.tactics.columns import SIZES, WINDOW, Lines
from pipeline.tactics.forms import LONGEST, find_form
from pipeline.tactics.lines import TORN_SIGNS, torn
from pipeline.tactics.lookup import NEW, ROWS_TOGETHER, Lookup
from pipeline.tactics.names import is_damaged
from pipeline.tactics.prefixes import head
from pipeline.tactics.raw_lists import CUT_FROM_LINES, Widths
from pipeline.tactics.tables import Tables
from pipeline.tactics.timed import CHOSE, DASHES, EQUALS, FASTEST, NOTHING, SLOW, STARS, TACTIC, TIME, Timed, decode, named_before
from pipeline.tactics.walk import Walk
from pipeline.tactics.words import Keys, Scratch, places

KEYS = Keys(
    {
        b"Tactic N": TACTIC,
        b"Tactic: ": TIME,
        b"********": STARS,
        b"--------": DASHES,
        b"========": EQUALS,
        b">>>>>>>>": CHOSE,
        b"Fastest ": FASTEST,
        b"Skipping": NOTHING,
    }
)
"""The first eight bytes of a message."""
_SAMPLE = re.compile(rb"-{9,} Timing Runner: |={9,} Computing costs for ")
_GRAPHIC = re.compile(rb"[!-~]+")
_TORN = re.compile("|".join(map(re.escape, TORN_SIGNS)).encode())
_RUNNER, _COMPLETED = b"--------------- Timing Runner: ", b" profiling completed in "
_LONGEST_END = len(_COMPLETED) + 12 + len(" seconds. Fastest Tactic: 0x0123456789abcdef Time: ") + max(SIZES)
"""Of ` profiling completed in t seconds. Fastest Tactic: T Time: t`: the end of another such line does not fit in."""
NO_NAME, NOT_ONE = -1, -2
"""Numbers of kernels' names: no name or a damaged one; text of two lines in one, which is no name."""
_MEMO = 200_000

SlowWay = Callable[[int, bytes, bool], None]


class Hot:
    """The columns at which one producer's verbose messages can be told."""

    def __init__(self, prefix: bytes) -> None:
        self.width = len(prefix)
        fixed = re.search(rb"[^\d]*$", prefix)
        self.tail = fixed.group() if fixed else b""

    @classmethod
    def of(cls, block: bytes) -> Hot | None:
        """Learn them from the first timing line of a block; None where it has none, or its lines name processes."""
        sample = _SAMPLE.search(block)
        if sample is None:
            return None
        line = block[block.rfind(b"\n", 0, sample.start()) + 1 : block.find(b"\n", sample.start())]
        found = head(line.decode("utf-8", "replace"))
        prefix = line.decode("utf-8", "replace")[: found.end].encode()
        if found.process or len(prefix) < 4 or not line.startswith(prefix) or prefix[:1].isspace():
            return None
        return cls(prefix)


class FastWay:
    """Reads blocks of one file into the tables of the build at hand.

    Args:
        slow: Reads one physical line by its number the slow way; told whether the next line is sure not to continue it.
        tables: The tables of the build at hand, None while none is open; asked again after each line that went the slow way.
    """

    def __init__(self, slow: SlowWay, tables: Callable[[], Tables | None]) -> None:
        self.slow = slow
        self.tables = tables
        self.hot: Hot | None = None
        self.widths = Widths()
        """Of the lines that were seen here."""
        self._scratch = Scratch()
        self._know(Tables())
        self._around: dict[tuple[bytes, bool], bool] = {}

    def _know(self, tables: Tables) -> None:
        """Numbers of names are kept for one build's tables."""
        self.actions = Actions(tables)
        self.kernels = Lookup(lambda name: NOT_ONE if b" " in name else tables.kernel_number(name.decode("utf-8", "replace")))

    def forget(self) -> None:
        """Give back the memory that only reading needs."""
        self._scratch = Scratch()
        self._know(Tables())

    def learn(self, block: bytes) -> bool:
        """Whether the block has a prefix that this way can read behind."""
        self.hot = self.hot or Hot.of(block)
        return self.hot is not None

    def hold(self, block: bytes) -> None:
        """Take in the block of which parts are then read."""
        self._scratch.hold(block)

    def read(self, block: bytes, begin: int, end: int, first: int) -> tuple[int, int]:
        """Read all lines of a part of the block that is held, but for the last, whose continuation is not in sight.

        Args:
            block: The block.
            begin: Where the part begins.
            end: Where it ends, behind a line feed.
            first: Number of the first line.

        Returns:
            How many lines were read, and up to where: the rest, where a build ended, is for the slow way.
        """
        assert self.hot is not None
        tables = self.tables()
        if tables is None:
            return 0, begin
        if tables is not self.actions.tables or max(len(self.actions), len(self.kernels.numbers)) > _MEMO:
            self._know(tables)
        lines = Lines(self._scratch, begin, end, self.hot.width, self.hot.tail)
        self._see_widths(block, lines, first)
        kinds = _classify(block, lines)[:-1]
        timed = self._named(block, lines, decode(block, lines, kinds))
        joined = timed.kernel == NOT_ONE
        if joined.any():
            kinds[timed.line[joined]] = SLOW
            timed = timed.kept(~joined)
        if (kinds == TIME).any():
            timed = self._named(block, lines, named_before(block, lines, kinds, timed, self._is_name, waiting=tables.pending))
        kinds[_of_no_runner(block, lines, kinds)] = SLOW
        done = Walk(self, tables, block, lines, kinds, timed, first).run()
        return done, int(lines.starts[done])

    def _see_widths(self, block: bytes, lines: Lines, first: int) -> None:
        """What the longest lines of a block tell; the slow way may see some of them too."""
        longest = lines.longest
        if longest < self.widths.longest or (longest == self.widths.longest and len(self.widths.fullest) >= CUT_FROM_LINES):
            return
        for i in np.flatnonzero(lines.ends - lines.starts == longest).tolist():
            self.widths.see(longest, first + i, block[lines.starts[i] : lines.ends[i]].decode("utf-8", "replace"))
            if len(self.widths.fullest) >= CUT_FROM_LINES:
                break

    def _named(self, block: bytes, lines: Lines, timed: Timed) -> Timed:
        """Look up the names that were found since."""
        new = (timed.kernel == NEW) & (timed.end > 0)
        if new.any():
            timed.kernel[new] = self.kernels.of(block, lines, timed.start[new], timed.end[new])
        return timed

    def _is_name(self, around: tuple[bytes, bool], kernel: bytes, message: bytes) -> bool:
        """Whether a message is `L Set Tactic Name: N`; what stands around the name is checked once."""
        known = self._around.get(around)
        if known is None:
            text = message.decode("utf-8", "replace")
            found = find_form(text)
            known = found is not None and found[0] == "set-name" and head(text).end == 0 and torn(text) == [text]
            known = known and found is not None and not is_damaged(found[1]["layer"])
            if len(self._around) < _MEMO:
                self._around[around] = known
        named = known and (kernel in self.kernels.numbers or _GRAPHIC.fullmatch(kernel) is not None)
        if named and not around[1]:
            self.actions.tables.by_order = True
        return named

    def move(self, tables: Tables, timed: Timed, since: int, keep: np.ndarray, first: int) -> None:
        """Append timed tactics of the block, from `since` on, to the tables' columns: those of the mask `keep`."""
        at = np.flatnonzero(keep) + since
        begin = len(tables.id)
        if timed.odd:
            tables.odd_ids.update((begin + place, timed.odd[i]) for place, i in enumerate(at.tolist()) if i in timed.odd)
        cut = slice(since, since + len(keep)) if len(at) == len(keep) else at
        tables.kernel.frombytes(np.maximum(timed.kernel[cut], NO_NAME).tobytes())
        tables.ms.frombytes(timed.ms[cut].tobytes())
        tables.id.frombytes(timed.id[cut].tobytes())
        tables.line.frombytes((timed.line[cut] + first).astype("uint32").tobytes())


def _classify(block: bytes, lines: Lines) -> np.ndarray:
    """The kind of each line (uint8); SLOW also for a line whose next one may be its continuation."""
    kinds = lines.keyed(KEYS)
    other = lines.hot & (kinds == SLOW)
    kinds[lines.following(kinds == NOTHING, b" tactic ")] = SLOW
    kinds[lines.with_id(kinds == NOTHING)] = SLOW
    kinds[lines.ending(other, b"this config, skipping")] = NOTHING
    long = lines.ends - lines.starts > lines.width + LONGEST
    kinds[long & ((kinds == FASTEST) | (kinds == NOTHING) & other)] = SLOW
    kinds[kinds == FASTEST] = NOTHING
    kinds[lines.completed(other)] = FASTEST
    dashes = kinds == DASHES
    kinds[dashes] = SLOW
    named = lines.following(dashes, b"Timing R", place=16)
    kinds[named[lines.bytes[lines.ends[named] - 1] == ord(")")]] = DASHES
    kinds[_torn(block, lines, np.flatnonzero(kinds == NOTHING))] = SLOW
    foreign = ~lines.hot
    kinds[:-1][foreign[1:]] = SLOW
    return kinds


def _of_no_runner(block: bytes, lines: Lines, kinds: np.ndarray) -> np.ndarray:
    """Lines `L (R) profiling completed ...` that do not end what the `Timing Runner: L (R)` before them began, or are too long for it."""
    at = np.flatnonzero(kinds == FASTEST)
    structure = np.flatnonzero((kinds != TACTIC) & (kinds != NOTHING))
    before = structure[np.searchsorted(structure, at) - 1]
    runner, start = lines.starts[before] + lines.width + len(_RUNNER), lines.starts[at] + lines.width
    size = lines.ends[before] - runner
    good = (kinds[before] == DASHES) & (before < at) & (size > 0) & (lines.ends[at] - start - size <= _LONGEST_END)
    at, runner, start, size = at[good], runner[good], start[good], size[good]
    names, whole = lines.texts(runner, runner + size)
    same = (names == lines.texts(start, start + size)[0]).all(axis=1) & lines.holding(start + size, _COMPLETED)
    for i in np.flatnonzero(same & ~whole).tolist():
        same[i] = block[runner[i] : runner[i] + size[i]] == block[start[i] : start[i] + size[i]]
    other: np.ndarray = kinds == FASTEST
    other[at[same]] = False
    return other


def _torn(block: bytes, lines: Lines, at: np.ndarray) -> list[int]:
    """Those of some lines that seem to be two: nothing else would look at the whole of a line that says nothing."""
    if not len(at):
        return []
    if block.find(b"&", int(lines.starts[at[0]]), int(lines.ends[at[-1]])) < 0:  # of the signs, `] [` and `[TensorRT] ` are left
        at = np.concatenate([_seem_torn(lines, at[i : i + ROWS_TOGETHER]) for i in range(0, len(at), ROWS_TOGETHER)])
    begin, end = lines.starts[at] + lines.width, lines.ends[at]
    return [i for i, a, b in zip(at.tolist(), begin.tolist(), end.tolist()) if _TORN.search(block, a, b)]


def _seem_torn(lines: Lines, at: np.ndarray) -> np.ndarray:
    """Those of some lines that hold a bracket as in the prefix of another, or are too long to be looked at here."""
    begin, end = lines.starts[at] + lines.width, lines.ends[at]
    long = np.flatnonzero(end - begin > WINDOW)
    of_piece = np.concatenate((np.arange(len(at)), long))
    starts = np.concatenate((np.maximum(begin, end - WINDOW), begin[long]))
    pieces, whole = lines.texts(starts, np.concatenate((end, begin[long] + WINDOW)))
    seem = np.concatenate((of_piece[_bracketed(pieces)], of_piece[~whole], np.flatnonzero(end - begin > 2 * WINDOW - 16)))
    found: np.ndarray = at[np.unique(seem)]
    return found


def _bracketed(rows: np.ndarray) -> np.ndarray:
    """Indices of the rows of text that hold `[T`, or `]` and `[` with a character between."""
    text = rows.reshape(-1).view(np.uint8)
    opens = places(text == ord("["))
    signs = (text[np.minimum(opens + 1, len(text) - 1)] == ord("T")) | (text[np.maximum(opens - 2, 0)] == ord("]"))
    found: np.ndarray = opens[signs] // (rows.shape[1] * 8)
    return found
