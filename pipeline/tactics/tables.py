"""Autotuning tables in columns: every timed tactic of every layer and format combination, in about 26 bytes each."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from math import isfinite

import msgspec

from pipeline.tactics.kernels import TacticClass, classify
from pipeline.tactics.names import is_damaged

NONE = (1 << 64) - 1
"""No layer, no format, no choice: the lines that would say are missing."""
IGNORED = NONE - 1
"""A reformat's table: no layer of the network."""
REFORMAT = re.compile(r"(?:Optimizer |Myelin)?Reformat")
_HEX16 = re.compile(r"0x[0-9a-f]{16}")

# one combination is `STRIDE` numbers in `Tables.rows`
LAYER, FORMAT, START, LINE, WINNER, CHOSEN, STRIDE = range(7)


class Timing(msgspec.Struct, frozen=True):
    """One timed tactic."""

    kernel: str | None
    kind: TacticClass
    id: str
    """As printed, lower case."""
    ms: float
    runner: str
    line: int


class Combination(msgspec.Struct, frozen=True):
    """One format combination of one layer, closed by its own choice."""

    layer: str | None
    format: str | None
    """None where the log lacks the line that names it: times of such tables are comparable with no other."""
    timings: list[Timing]
    winner: str | None
    """Tactic id of the choice."""
    line: int


class Index:
    """Strings by number, each kept once."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.names: list[str] = []

    def number(self, name: str) -> int:
        """The number of a string, given on first use."""
        found = self.numbers.get(name)
        if found is None:
            found = self.numbers[name] = len(self.names)
            self.names.append(name)
        return found


class Tables:
    """Collects the timing lines of one build. Lines come in the order of the log; each method is one form of line.

    Timed tactics may be appended to the columns ahead of the lines around them (`fast` does so by the block); `cursor`
    is how many of them have been reached.
    """

    def __init__(self) -> None:
        self.layers, self.formats, self.kernels, self.runners = Index(), Index(), Index(), Index()
        self.classes: list[TacticClass] = []
        # one entry per timed tactic; the kernel's number is -1 where its name is not known
        self.kernel, self.ms, self.id, self.line = array("i"), array("d"), array("Q"), array("I")
        # runners by stretches of timed tactics: the first one of each stretch, and its runner
        self.stretch, self.runner = array("I", [0]), array("H", [0])
        self.cursor = 0
        self.odd_ids: dict[int, str] = {}
        self.rows = array("Q")
        self.odd_winners: dict[int, str] = {}
        self.skipped: dict[str, int] = {}
        """By layer; those of no known layer under the empty name."""
        self.skip_told = False
        """Whether the line before told of a tactic that was skipped, so that the next one may tell of the same."""
        self.began = False
        self.open = False
        # the costs line, layer and format at hand
        self.at: tuple[int, int, int] = (NONE, NONE, NONE)
        self._set: tuple[str, str | None] | None = None
        self._by_id: dict[int, int] | None = None
        self.runners.number("")

    # ---- forms of line

    def costs(self, layer: int) -> None:
        """`Computing costs for L`; L is empty (NONE) before 10."""
        self.at = (layer, layer, NONE)
        self.began, self.open, self._set = True, False, None

    def combination(self, format_: int, line: int) -> None:
        """`Autotuning format combination: F`."""
        costs = self.at[0]
        self.at = (costs, costs, format_)
        self.began, self._set = True, None
        self.begin(line)

    def reformat(self) -> None:
        """`Autotuning Reformat`: what follows is no layer of the network."""
        self.at = (self.at[0], IGNORED, NONE)
        self.began, self.open, self._set = True, False, None

    def timing_runner(self, layer: int, runner: int, line: int) -> None:
        """`Timing Runner: L (R)`; IGNORED for a reformat."""
        self.began, self._set = True, None
        if runner != self.runner[-1]:
            self.stretch.append(self.cursor)
            self.runner.append(runner)
        costs, known, format_ = self.at
        if layer != known:
            if self.open and self.rows[START - STRIDE] == self.cursor:  # the combination's own line comes before its layer's name
                self.rows[LAYER - STRIDE] = layer
            else:
                self.open = False
                if known != NONE:  # lines between two layers are missing
                    format_ = NONE
            self.at = (costs if costs == layer or layer == IGNORED else NONE, layer, format_)
        if not self.open:
            self.begin(line)

    def part(self) -> None:
        """Lines lie between what waits for its next line and that line: they do not belong together."""
        self._set = None
        self.skip_told = False

    @property
    def pending(self) -> bool:
        """Whether a name waits for the time of its tactic."""
        return self._set is not None

    def set_name(self, name: str, id_: str | None) -> None:
        """`L Set Tactic Name: N [Tactic: T]`: the name of the tactic that the next line times."""
        self._set = (name, id_)

    def timed(self, name: str | None, id_: str, ms: float, line: int) -> None:
        """One timed tactic."""
        if name is None and self._set is not None and self._set[1] in (None, id_):
            name = self._set[0]
        self._set = None
        if self.ignoring:
            return
        if not isfinite(ms):
            self.skip()
            return
        if _HEX16.fullmatch(id_):
            self.id.append(int(id_, 16))
        else:
            self.odd_ids[len(self.id)] = id_
            self.id.append(number_of(id_))
        self.kernel.append(-1 if name is None else self.kernel_number(name))
        self.ms.append(ms)
        self.line.append(line)
        self.advance(1, line)

    def advance(self, count: int, line: int) -> None:
        """The next `count` entries of the columns were timed for the layer and runner at hand."""
        if not self.open:
            self.begin(line)
        self.cursor += count

    def fastest(self, layer: int) -> None:
        """`L (R) profiling completed ... Fastest Tactic`: names the layer of tables whose runner line is missing."""
        if self.nameless and self.open:
            self.at = (self.at[0], layer, self.at[2])
            self.rows[LAYER - STRIDE] = layer

    def chose(self, id_: str, line: int) -> None:
        """`Chose Runner Type: R Tactic: T`: closes the combination."""
        self._set = None
        if not self.open:
            self.begin(line)
        if not _HEX16.fullmatch(id_):
            self.odd_winners[len(self.rows) // STRIDE - 1] = id_
        self.close(number_of(id_))

    def close(self, winner: int) -> None:
        """The open combination chose this tactic."""
        self.rows[WINNER - STRIDE] = winner
        self.rows[CHOSEN - STRIDE] = 1
        self.open = False
        self.at = (*self.at[:2], NONE)

    def skip(self) -> None:
        """A tactic of the layer at hand was skipped for memory or by an exception."""
        name = self.layers.names[self.at[1]] if self.at[1] < IGNORED else ""
        self.skipped[name] = self.skipped.get(name, 0) + 1

    # ---- the inside

    def kernel_number(self, name: str) -> int:
        """The number of a kernel's name, whose class is found once; -1 for a damaged one, which is no name."""
        if is_damaged(name) or " " in name:
            return -1
        number = self.kernels.number(name)
        if number == len(self.classes):
            self.classes.append(classify(name))
        return number

    def begin(self, line: int) -> None:
        """A combination of the layer and format at hand begins."""
        self.rows.extend((self.at[1], self.at[2], self.cursor, line, 0, 0))
        self.open = True

    @property
    def open_layer(self) -> str | None:
        """The layer that is being timed."""
        return self.layers.names[self.at[1]] if self.open and self.at[1] < IGNORED else None

    @property
    def ignoring(self) -> bool:
        """Whether the table at hand is a reformat's."""
        return self.at[1] == IGNORED

    @property
    def nameless(self) -> bool:
        """Whether the table at hand still lacks its layer's name."""
        return self.at[1] == NONE

    # ---- reading

    def __len__(self) -> int:
        """How many combinations there are."""
        return len(self.rows) // STRIDE

    def tactic_id(self, index: int) -> str:
        """The id of a timed tactic as printed."""
        return self.odd_ids.get(index) or f"0x{self.id[index]:016x}"

    def chosen(self, row: int) -> bool:
        """Whether the combination has its choice."""
        return bool(self.rows[row * STRIDE + CHOSEN])

    def winner_id(self, row: int) -> str | None:
        """The id of a combination's choice as printed."""
        if not self.chosen(row):
            return None
        return self.odd_winners.get(row) or f"0x{self.rows[row * STRIDE + WINNER]:016x}"

    def line_of(self, row: int) -> int:
        """Where the combination begins."""
        return self.rows[row * STRIDE + LINE]

    def span(self, row: int) -> range:
        """The indices of a combination's timed tactics."""
        after = (row + 1) * STRIDE + START
        return range(self.rows[row * STRIDE + START], self.rows[after] if after < len(self.rows) else self.cursor)

    def class_at(self, index: int) -> TacticClass:
        """The class of a timed tactic."""
        number = self.kernel[index]
        return "unknown" if number < 0 else self.classes[number]

    def kernel_at(self, index: int) -> str | None:
        """The kernel's name of a timed tactic, where the log has it."""
        number = self.kernel[index]
        return None if number < 0 else self.kernels.names[number]

    def runner_at(self, index: int) -> str:
        """The runner of a timed tactic."""
        return self.runners.names[self.runner[bisect_right(self.stretch, index) - 1]]

    def name_of(self, id_: str) -> str | None:
        """The kernel that this id stands for, if all timed tactics with it bear one name."""
        if self._by_id is None:
            self._by_id = {}
            for index in range(self.cursor):
                if self.kernel[index] >= 0:
                    known = self._by_id.setdefault(self.id[index], self.kernel[index])
                    if known != self.kernel[index]:
                        self._by_id[self.id[index]] = -1
        number = self._by_id.get(number_of(id_), -1)
        return None if number < 0 else self.kernels.names[number]

    def format_of(self, row: int) -> str | None:
        """The combination's formats as printed."""
        number = self.rows[row * STRIDE + FORMAT]
        return None if number == NONE else self.formats.names[number]

    def rows_by_layer(self) -> dict[str, list[int]]:
        """Combination rows of each named layer, in the order of the log."""
        found: list[list[int]] = [[] for _ in self.layers.names]
        for row, layer in enumerate(self.rows[LAYER::STRIDE]):
            if layer < IGNORED:
                found[layer].append(row)
        return dict(zip(self.layers.names, found))

    def combinations(self) -> Iterator[Combination]:
        """Every table in full, those of reformats apart."""
        for row, layer in enumerate(self.rows[LAYER::STRIDE]):
            if layer == IGNORED:
                continue
            yield Combination(
                layer=None if layer == NONE else self.layers.names[layer],
                format=self.format_of(row),
                timings=[
                    Timing(self.kernel_at(i), self.class_at(i), self.tactic_id(i), self.ms[i], self.runner_at(i), self.line[i])
                    for i in self.span(row)
                ],
                winner=self.winner_id(row),
                line=self.line_of(row),
            )


def number_of(id_: str) -> int:
    """A tactic id as a number of 64 bits."""
    return int(id_, 16 if id_.startswith("0x") else 10) & NONE
