"""The way through the bulk of a verbose log: whole, clean timing lines, a block of the file at a time.

Nearly all of a verbose log is a handful of line forms behind one fixed prefix. Here such lines are told by a few bytes
at a fixed column, and the timed tactics of a block are read together by a few calls that loop in C. Every other line
- and every line that is not exactly of its form, or that is followed by one without prefix, which might be its
continuation - goes the slow way through `lines` and `builds`, in order. Both ways give the same tables: a test holds it.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable
from itertools import compress
from math import isfinite

from pipeline.tactics.names import is_damaged
from pipeline.tactics.prefixes import EMBEDDED, head
from pipeline.tactics.tables import IGNORED, NONE, REFORMAT, Tables

(SLOW, TACTIC, TIME, STARS, DASHES, EQUALS, CHOSE, FASTEST, NOTHING) = range(9)

_KEYS = {
    b"Tactic N": TACTIC,
    b"Tactic: ": TIME,
    b"********": STARS,
    b"--------": DASHES,
    b"========": EQUALS,
    b">>>>>>>>": CHOSE,
    b"Fastest ": FASTEST,
    b"Skipping": NOTHING,
}
_KEY_BYTES = 8
_TACTIC_HEAD = len("Tactic Name: ")
_ONLY_TACTIC = bytes(kind == TACTIC for kind in range(256))
_NOT_TACTIC = bytes(kind != TACTIC for kind in range(256))
_STRUCTURAL_KINDS = (STARS, DASHES, EQUALS)
_CHOSE_HEAD = b">>>>>>>>>>>>>>> Chose Runner Type: "
_HEX_DIGITS = b"0123456789abcdef"
_TIME = re.compile(rb"Tactic: (0x[0-9a-f]{16}|-?\d+) [Tt]ime:? (\d+\.?\d*(?:e-?\d+)?)")
_STRUCTURAL = re.compile(
    r"(?P<costs>={9,} Computing costs for ?(?P<cost_layer>.*))|"
    r"(?P<combination>\*{9,} Autotuning format combination: ?(?P<format>.*?) ?\*{15})|"
    r"(?P<reformat>\*{9,} Autotuning Reformat: ?.*\*{15})|"
    r"(?P<runner>-{9,} Timing Runner: (?P<layer>.*) \((?P<name>[^()]*)\))"
)
_MEMO = 200_000
_SAMPLE = re.compile(rb"-{9,} Timing Runner: |={9,} Computing costs for ")

SlowWay = Callable[[int, bytes, bool], None]


class Hot:
    """The columns at which one producer's verbose messages can be told."""

    def __init__(self, prefix: bytes) -> None:
        self.width = len(prefix)
        fixed = re.search(rb"[^\d]*$", prefix)
        self.tail = fixed.group() if fixed else b""
        self.column = self.width - len(self.tail)
        self.kinds = {self.tail + key: kind for key, kind in _KEYS.items()}

    @classmethod
    def of(cls, lines: list[bytes]) -> Hot | None:
        """Learn them from the first timing line of a block; None where it has none, or its lines name processes."""
        sample = next((line for line in lines if _SAMPLE.search(line)), None)
        if sample is None:
            return None
        found = head(sample.decode("utf-8", "replace"))
        prefix = sample.decode("utf-8", "replace")[: found.end].encode()
        if found.process or not found.end or not sample.startswith(prefix) or prefix[:1].isspace():
            return None
        return cls(prefix)


class Block:
    """The timed tactics of one block of lines, in columns, and how far they have been moved into the tables."""

    def __init__(self, names: list[bytes], packed_ids: bytes, times: array[float], numbers: list[int]) -> None:
        self.names, self.times, self.numbers = names, times, numbers
        self.ids = array("Q", packed_ids)
        self.ids.byteswap()
        self.reached = self.moved = 0

    def move(self, tables: Tables, known: dict[bytes, int]) -> None:
        """Append the entries that were reached since the last call."""
        a, b = self.moved, self.reached
        if a == b:
            return
        names = self.names[a:b]
        try:
            kernels = array("i", map(known.__getitem__, names))
        except KeyError:
            for name in names:
                if name not in known:
                    known[name] = tables.kernel_number(name.decode("utf-8", "replace"))
            kernels = array("i", map(known.__getitem__, names))
        tables.kernel.extend(kernels)
        tables.ms.extend(self.times[a:b])
        tables.id.extend(self.ids[a:b])
        tables.line.extend(array("I", self.numbers[a:b]))
        self.moved = b


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
        self._memo: dict[bytes, tuple[int, int, int]] = {}
        self._kernels: dict[bytes, int] = {}
        self._memo_of: Tables | None = None

    def learn(self, lines: list[bytes]) -> bool:
        """Whether the block has a prefix that this way can read behind."""
        self.hot = self.hot or Hot.of(lines)
        return self.hot is not None

    def forget(self) -> None:
        """The file's prefix has changed."""
        self.hot = None

    def read(self, lines: list[bytes], first: int) -> int:
        """Read all lines but the last, whose continuation is not in sight.

        Args:
            lines: Physical lines without line feed.
            first: Number of the first line.

        Returns:
            How many lines were read: the rest, where a build ended, is for the slow way.
        """
        hot = self.hot
        assert hot is not None
        if self.tables() is None:
            return 0
        kinds = _classify(lines, hot)
        kinds.pop()
        mask = bytes(kinds).translate(_ONLY_TACTIC)
        columns = _columns(list(compress(lines, mask)), hot)
        if columns is None:
            for i, kind in enumerate(kinds):
                if kind == TACTIC and _columns([lines[i]], hot) is None:
                    kinds[i] = SLOW
            mask = bytes(kinds).translate(_ONLY_TACTIC)
            columns = _columns(list(compress(lines, mask)), hot)
            assert columns is not None
        numbers = list(compress(range(first, first + len(kinds)), mask))
        return self._walk(lines, bytes(kinds), first, Block(*columns, numbers))

    def _walk(self, lines: list[bytes], kinds: bytes, first: int, block: Block) -> int:
        """Take the lines that give the tables their structure, and hand over those that are not exactly of their form.

        This is `Tables`' own logic with its state in local names: a call for each line would cost as much as all the rest.
        """
        assert self.hot is not None
        width, last = self.hot.width, len(kinds)
        at = 0
        while at < last:
            tables = self.tables()
            if tables is None:
                return at
            self._use(tables)
            at = self._stretch(tables, lines, kinds, (first, width, at), block)
            block.move(tables, self._kernels)
            if at < last:
                self.slow(first + at, lines[at], at + 1 < last and kinds[at + 1] != SLOW)
                at += 1
        return last

    def _stretch(self, tables: Tables, lines: list[bytes], kinds: bytes, where: tuple[int, int, int], block: Block) -> int:
        """Read up to the next line for the slow way; returns its index, or that of the end."""
        first, width, begin = where
        memo, rows, extend = self._memo, tables.rows, tables.rows.extend
        costs, layer, format_ = tables.at
        is_open, base, cursor = tables.open, tables.cursor, tables.cursor
        stop, taken, previous = len(kinds), 0, begin - 1
        for at in compress(range(begin, stop), kinds[begin:].translate(_NOT_TACTIC)):
            reached = base + at - begin - taken
            if reached != cursor:
                if not is_open:
                    extend((layer, format_, cursor, first + previous + 1, 0, 0))
                    is_open = True
                cursor = reached
            kind = kinds[at]
            if kind == NOTHING or (kind == FASTEST and layer != NONE):
                pass
            elif kind == CHOSE:
                end = lines[at][-27:]
                if end[:11] != b" Tactic: 0x" or not lines[at].startswith(_CHOSE_HEAD, width) or not _is_hex(end[11:]):
                    stop = at
                    break
                if not is_open:
                    extend((layer, format_, cursor, first + at, 0, 0))
                rows[-2], rows[-1] = int(end[11:], 16), 1
                is_open, format_ = False, NONE
            elif kind in _STRUCTURAL_KINDS:
                message = lines[at][width:]
                code, x, y = memo.get(message) or self._compile(message, tables)
                if code == STARS:
                    layer, format_ = costs, x
                    extend((layer, format_, cursor, first + at, 0, 0))
                    is_open = True
                elif code == DASHES:
                    tables.stretch.append(cursor)
                    tables.runner.append(y)
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
                    stop = at
                    break
            elif kind != TIME or layer != IGNORED or not _TIME.fullmatch(lines[at], width):
                stop = at
                break
            taken += 1
            previous = at
        reached = base + stop - begin - taken
        if reached != cursor:
            if not is_open:
                extend((layer, format_, cursor, first + previous + 1, 0, 0))
                is_open = True
        tables.at, tables.open, tables.cursor = (costs, layer, format_), is_open, reached
        block.reached += reached - base
        if stop > begin:
            tables.forget_name()
        return stop

    def _use(self, tables: Tables) -> None:
        if tables is not self._memo_of or len(self._memo) > _MEMO or len(self._kernels) > _MEMO:
            self._memo_of, self._memo, self._kernels = tables, {}, {}

    def _compile(self, message: bytes, tables: Tables) -> tuple[int, int, int]:
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
        self._memo[message] = action
        return action


def _is_hex(text: bytes) -> bool:
    return not text.strip(_HEX_DIGITS) and len(text) == 16


def _classify(lines: list[bytes], hot: Hot) -> list[int]:
    """The kind of each line; SLOW also for a line whose next one may be its continuation."""
    a, b = hot.column, hot.width + _KEY_BYTES
    get, tail = hot.kinds.get, hot.tail
    kinds = [get(line[a:b], SLOW) for line in lines]
    at = -1
    try:
        while True:
            at = kinds.index(SLOW, at + 1)
            line = lines[at]
            if not line.startswith(tail, a):
                if at:
                    kinds[at - 1] = SLOW
            elif b" profiling completed in " in line:
                kinds[at] = FASTEST
            elif line.endswith(b" has no valid tactics for this config, skipping"):
                kinds[at] = NOTHING
    except ValueError:
        return kinds


def _columns(timed: list[bytes], hot: Hot) -> tuple[list[bytes], bytes, array[float]] | None:
    """Kernel names, ids and times of timing lines; None unless every line is exactly of the form."""
    n = len(timed)
    start = hot.width + _TACTIC_HEAD
    words = b" ".join([line[start:] for line in timed]).split(b" ") if n else []
    if len(words) != 5 * n or words[1::5].count(b"Tactic:") != n or words[3::5].count(b"Time:") != n:
        return None
    ids = b"".join(words[2::5])
    if len(ids) != 18 * n or ids[0::18] != b"0" * n or ids[1::18] != b"x" * n:
        return None
    digits = words[4::5]
    try:
        times = array("d", map(float, digits))
        packed = bytes.fromhex(ids.replace(b"0x", b"").decode("ascii"))
    except (ValueError, UnicodeDecodeError):
        return None
    if len(packed) != 8 * n or not isfinite(sum(times)) or b"_" in b"".join(digits):
        return None
    return words[0::5], packed, times
