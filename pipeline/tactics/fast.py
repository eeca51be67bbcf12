"""The way through the bulk of a verbose log: whole, clean timing lines, a block of the file at a time.

Nearly all of a verbose log is a handful of line forms behind one fixed prefix. Here such lines are told by a few bytes at
a fixed column, and the ids and times of a block's tactics are decoded together, by numpy. Every other line - and every
line that is not exactly of its form, or that is followed by one without prefix, which might be its continuation - goes
the slow way through `lines` and `streams`, in order. Both ways give the same tables: a test holds it.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterator

import numpy as np

from pipeline.tactics.columns import Lines, Timed
from pipeline.tactics.names import is_damaged
from pipeline.tactics.prefixes import EMBEDDED, head
from pipeline.tactics.tables import IGNORED, NONE, REFORMAT, Tables

(SLOW, TACTIC, TIME, STARS, DASHES, EQUALS, CHOSE, FASTEST, NOTHING) = range(9)

KEYS = {
    b"Tactic N": TACTIC,
    b"Tactic: ": TIME,
    b"********": STARS,
    b"--------": DASHES,
    b"========": EQUALS,
    b">>>>>>>>": CHOSE,
    b"Fastest ": FASTEST,
    b"Skipping": NOTHING,
}
"""The first eight bytes of a message."""
TACTIC_HEAD = len("Tactic Name: ")
CHOSE_HEAD = b">>>>>>>>>>>>>>> Chose Runner Type: "
_SAMPLE = re.compile(rb"-{9,} Timing Runner: |={9,} Computing costs for ")
_TIME = re.compile(rb"Tactic: (?:0x[0-9a-f]{16}|-?\d+) [Tt]ime:? \d+\.?\d*(?:e-?\d+)?")
_STRUCTURAL = re.compile(
    r"(?P<costs>={9,} Computing costs for ?(?P<cost_layer>.*))|"
    r"(?P<combination>\*{9,} Autotuning format combination: ?(?P<format>.*?) ?\*{15})|"
    r"(?P<reformat>\*{9,} Autotuning Reformat: ?.*\*{15})|"
    r"(?P<runner>-{9,} Timing Runner: (?P<layer>.*) \((?P<name>[^()]*)\))"
)
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
        self.longest = 0
        """Length of the longest line that was seen here."""
        self.memo: dict[bytes, tuple[int, int, int]] = {}
        self._kernels: dict[bytes, int] = {}
        self._memo_of: Tables | None = None
        self._known_of: tuple[Tables | None, array[int] | None] = (None, None)

    def learn(self, block: bytes) -> bool:
        """Whether the block has a prefix that this way can read behind."""
        self.hot = self.hot or Hot.of(block)
        return self.hot is not None

    def read(self, block: bytes, first: int) -> tuple[int, int]:
        """Read all lines of a block but the last, whose continuation is not in sight.

        Args:
            block: Whole lines.
            first: Number of the first line.

        Returns:
            How many lines and bytes were read: the rest, where a build ended, is for the slow way.
        """
        assert self.hot is not None
        if self.tables() is None:
            return 0, 0
        lines = Lines(block, self.hot.width, self.hot.tail)
        self.longest = max(self.longest, lines.longest)
        kinds = _classify(lines)
        timed = lines.timed(kinds == TACTIC, TACTIC_HEAD)
        names = [block[a:b] for a, b in zip(timed.name_start.tolist(), timed.name_end.tolist())]
        kinds[timed.refused] = SLOW
        numbers = self._numbered(names)
        if numbers is None and (torn := self._torn(names)):
            kinds[timed.line[torn]] = SLOW
            timed = timed.without(torn)
            gone = set(torn)
            names = [name for i, name in enumerate(names) if i not in gone]
        last = len(kinds) - 1
        self._known_of = (self._memo_of, numbers)
        walk = _Walk(self, block, lines, kinds[:last], timed, names, first)
        done = walk.run()
        return done, int(lines.starts[done])

    def _numbered(self, names: list[bytes]) -> array[int] | None:
        """The kernels' numbers; None where one is new."""
        try:
            return array("i", map(self._kernels.__getitem__, names))
        except KeyError:
            return None

    def _torn(self, names: list[bytes]) -> list[int]:
        """Which of the names hold a blank: they are made of two lines in one. Names that are numbered have none."""
        bad = {name for name in set(names) - self._kernels.keys() if b" " in name}
        return [i for i, name in enumerate(names) if name in bad] if bad else []

    def use(self, tables: Tables) -> None:
        """Numbers of names are kept for one build's tables."""
        if tables is not self._memo_of or len(self.memo) > _MEMO or len(self._kernels) > _MEMO:
            self._memo_of, self.memo, self._kernels = tables, {}, {}

    def move(self, tables: Tables, every: list[bytes], timed: Timed, since: int, until: int, first: int) -> None:
        """Append a stretch of the block's timed tactics to the tables' columns."""
        if since == until:
            return
        whole, numbers = self._known_of
        if numbers is not None and whole is tables:
            kernels: array[int] | None = numbers[since:until]
        else:
            kernels = self._numbered(every[since:until])
        if kernels is None:
            for name in every[since:until]:
                if name not in self._kernels:
                    self._kernels[name] = tables.kernel_number(name.decode("utf-8", "replace"))
            kernels = array("i", map(self._kernels.__getitem__, every[since:until]))
        tables.kernel.extend(kernels)
        tables.ms.frombytes(timed.ms[since:until].tobytes())
        tables.id.frombytes(timed.id[since:until].tobytes())
        tables.line.frombytes((timed.line[since:until] + first).astype("uint32").tobytes())

    def compile(self, message: bytes, tables: Tables) -> tuple[int, int, int]:
        """What a line of structure does to the tables; kept, since most such lines come again."""
        text = message.decode("utf-8", "replace")
        match = _STRUCTURAL.fullmatch(text)
        action = (SLOW, 0, 0)
        if match is None or is_damaged(text) or ("] [" in text and EMBEDDED.search(text)):
            pass
        elif match["costs"]:
            layer = match["cost_layer"].strip()
            action = (EQUALS, tables.layers.number(layer) if layer else NONE, 0)
        elif match["combination"]:
            action = (STARS, tables.formats.number(match["format"]), 0)
        elif match["reformat"]:
            action = (NOTHING, 0, 0)
        elif REFORMAT.match(match["layer"]) or REFORMAT.match(match["name"]):
            action = (DASHES, IGNORED, 0)
        else:
            action = (DASHES, tables.layers.number(match["layer"]), tables.runners.number(match["name"]))
        self.memo[message] = action
        return action


def _classify(lines: Lines) -> np.ndarray:
    """The kind of each line (uint8); SLOW also for a line whose next one may be its continuation."""
    kinds = lines.keyed(KEYS)
    other = lines.hot & (kinds == SLOW)
    kinds[lines.following(kinds == NOTHING, b" tactic ")] = SLOW
    kinds[lines.with_id(kinds == NOTHING)] = SLOW
    kinds[lines.completed(other)] = FASTEST
    kinds[lines.ending(other, b"this config, skipping")] = NOTHING
    dashes = kinds == DASHES
    kinds[dashes] = SLOW
    named = lines.following(dashes, b"Timing R", place=16)
    kinds[named[lines.bytes[lines.ends[named] - 1] == ord(")")]] = DASHES
    foreign = ~lines.hot
    kinds[:-1][foreign[1:]] = SLOW
    return kinds


class _Walk:
    """One block's lines of structure, in order. This is `Tables`' own logic with its state in local names."""

    def __init__(self, way: FastWay, block: bytes, lines: Lines, kinds: np.ndarray, timed: Timed, names: list[bytes], first: int) -> None:
        self.way, self.block, self.timed, self.names, self.first = way, block, timed, names, first
        picked = (kinds != TACTIC) & (kinds != NOTHING)
        at = picked.nonzero()[0]
        named = (kinds[at][1:] == FASTEST) & (kinds[at][:-1] == DASHES)  # their layer's name has just been read
        at = np.delete(at, named.nonzero()[0] + 1)
        self.last = len(kinds)
        self.at = at.tolist()
        self.kinds = kinds[at].tolist()
        self.reached = timed.before(at).tolist()
        self.total = timed.before_line(self.last)
        self.start = lines.starts[at].tolist()
        self.end = lines.ends[at].tolist()
        self.width = lines.width
        self.winners = lines.choices(at, kinds[at] == CHOSE, CHOSE_HEAD)

    def run(self) -> int:
        """Take all lines; returns how many were read before a build ended."""
        moved = index = 0
        while True:
            tables = self.way.tables()
            if tables is None:
                return self.at[index - 1] + 1 if index else 0
            self.way.use(tables)
            index, reached = self._stretch(tables, index, moved)
            self.way.move(tables, self.names, self.timed, moved, reached, self.first)
            moved = reached
            if index == len(self.at):
                return self.last
            at = self.at[index]
            alone = index + 1 >= len(self.at) or self.at[index + 1] > at + 1 or self.kinds[index + 1] != SLOW
            self.way.slow(self.first + at, self.block[self.start[index] : self.end[index]], alone and at + 1 < self.last)
            index += 1

    def _stretch(self, tables: Tables, index: int, moved: int) -> tuple[int, int]:  # noqa: C901 - one loop, no calls: it is the hot one
        """Read up to the next line for the slow way; returns its index (or that of the end) and the tactics reached."""
        memo, block, width, first = self.way.memo, self.block, self.width, self.first
        rows, extend = tables.rows, tables.rows.extend
        costs, layer, format_ = tables.at
        is_open, offset, cursor = tables.open, tables.cursor - moved, tables.cursor
        runner = tables.runner[-1]
        begun, line = index, first + (self.at[index - 1] + 1 if index else 0)
        for kind, at, reached, start, end, winner in self._items(index):
            if reached + offset != cursor:
                if not is_open:
                    extend((layer, format_, cursor, line, 0, 0))
                    is_open = True
                cursor = reached + offset
            if kind == CHOSE and winner is not None:
                if not is_open:
                    extend((layer, format_, cursor, first + at, 0, 0))
                rows[-2], rows[-1] = winner, 1
                is_open, format_ = False, NONE
            elif STARS <= kind <= EQUALS:
                message = block[start + width : end]
                code, x, y = memo.get(message) or self.way.compile(message, tables)
                if code == STARS:
                    layer, format_ = costs, x
                    extend((layer, format_, cursor, first + at, 0, 0))
                    is_open = True
                elif code == DASHES:
                    if y != runner:
                        tables.stretch.append(cursor)
                        tables.runner.append(y)
                        runner = y
                    if x != layer:
                        if is_open and rows[-4] == cursor:
                            rows[-6] = x
                        else:
                            is_open = False
                            format_ = NONE if layer != NONE else format_
                        costs = costs if x in (costs, IGNORED) else NONE
                        layer = x
                    if not is_open:
                        extend((layer, format_, cursor, first + at, 0, 0))
                        is_open = True
                elif code == EQUALS:
                    costs = layer = x
                    format_, is_open = NONE, False
                elif code == NOTHING:
                    layer, format_, is_open = IGNORED, NONE, False
                else:
                    break
            elif not (kind == FASTEST and layer != NONE) and not (
                kind == TIME and layer == IGNORED and _TIME.fullmatch(block, start + width, end)
            ):
                break
            index += 1
            line = first + at + 1
        else:
            reached = self.total
            if reached + offset != cursor and not is_open:
                extend((layer, format_, cursor, line, 0, 0))
                is_open = True
            cursor = reached + offset
        tables.at, tables.open, tables.cursor = (costs, layer, format_), is_open, cursor
        if cursor != moved + offset or self.kinds[begun:index].count(FASTEST) < index - begun:
            tables.forget_name()
        return index, cursor - offset

    def _items(self, index: int) -> Iterator[tuple[int, int, int, int, int, int | None]]:
        cut = slice(index, None)
        return zip(self.kinds[cut], self.at[cut], self.reached[cut], self.start[cut], self.end[cut], self.winners[cut])
