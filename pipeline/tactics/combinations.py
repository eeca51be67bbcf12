"""Autotuning tables in columns: every timed tactic of every layer and format combination, in about 26 bytes each."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec

from pipeline.tactics.kernels import TacticClass, classify
from pipeline.tactics.names import is_damaged

NONE = (1 << 64) - 1
"""No layer, no format, no choice: the lines that would say are missing."""
IGNORED = NONE - 1
"""A reformat's table: no layer of the network."""

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


class Combinations:
    """The tables of one build, to be read."""

    def __init__(self) -> None:
        self.layers, self.formats, self.kernels, self.runners = Index(), Index(), Index(), Index()
        self.classes: list[TacticClass] = []
        # one entry per timed tactic; the kernel's number is -1 where its name is not known
        self.kernel, self.ms, self.id, self.line = array("i"), array("d"), array("Q"), array("I")
        # runners by stretches of timed tactics: the first one of each stretch, and its runner
        self.stretch, self.runner = array("I", [0]), array("I", [0])
        self.cursor = 0
        """How many timed tactics there are; a writer may have appended more."""
        self.odd_ids: dict[int, str] = {}
        self.rows = array("Q")
        self.odd_winners: dict[int, str] = {}
        self.damaged: set[int] = set()
        """Layers with a line among their timed tactics that could not be read."""
        self.headless = False
        """Whether lines of the first layer may stand before those that are here."""
        self.by_order = False
        """Whether names were given to the tactics that are timed next, without their ids."""
        self.beginnings: set[str] = set()
        """Layers' names that are beginnings of others, and of which nothing was timed: no layers."""
        self.skipped: dict[str, int] = {}
        """By layer; those of no known layer under the empty name."""
        self._by_id: dict[int, int] | None = None
        self.runners.number("")

    def kernel_number(self, name: str) -> int:
        """The number of a kernel's name, whose class is found once; -1 for a damaged one, which is no name."""
        if is_damaged(name) or " " in name:
            return -1
        number = self.kernels.number(name)
        if number == len(self.classes):
            self.classes.append(classify(name))
        return number

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

    def layer_names(self, *, timed: bool = False) -> set[str]:
        """The layers that the tables name; only those of which something was timed."""
        if timed:
            return {self.layers.names[layer] for layer in set(self.rows[LAYER::STRIDE]) if layer < IGNORED}
        return set(self.layers.names) - self.beginnings

    def rows_by_layer(self) -> dict[str, Sequence[int]]:
        """Combination rows of each named layer, in the order of the log; then the layers that have none."""
        found: defaultdict[int, array[int]] = defaultdict(lambda: array("I"))
        for row, layer in enumerate(self.rows[LAYER::STRIDE]):
            found[layer].append(row)
        named: dict[str, Sequence[int]] = {self.layers.names[layer]: rows for layer, rows in found.items() if layer < IGNORED}
        return named | {name: [] for name in self.layers.names if name not in named and name not in self.beginnings}

    def partly_seen(self, *, ended: bool) -> set[int]:
        """Layers that may have been timed with more tactics than the log shows.

        Those with a damaged line or a combination whose own line is missing, those before and behind tables without a name,
        the first one where the log begins within it, and the last one where it ends there.

        Args:
            ended: Whether the log shows that the tables are at their end.
        """
        layers, formats = self.rows[LAYER::STRIDE], self.rows[FORMAT::STRIDE]
        found = set(self.damaged)
        if NONE in formats:
            found.update(layer for layer, format_ in zip(layers, formats) if format_ == NONE)
        if NONE in layers:
            of_layers = (layer for layer in layers if layer != IGNORED)
            found.update(layer for pair in pairwise(of_layers) if NONE in pair for layer in pair)
        if self.headless:
            found.add(next((layer for layer in layers if layer < IGNORED), NONE))
        if not ended:
            found.add(next((layer for layer in reversed(layers) if layer < IGNORED), NONE))
        return found - {NONE, IGNORED}

    def unname_mixed(self) -> None:
        """Where names were given by order and one or a whole line is missing, none of that runner's tactics is sure of its own."""
        if not self.by_order:
            return
        starts = self.rows[START::STRIDE]
        for begin, end in pairwise(sorted({*self.stretch, *starts, self.cursor})):
            numbers = self.kernel[begin:end]
            layer = self.rows[(bisect_right(starts, begin) - 1) * STRIDE + LAYER]
            if min(numbers) < 0 <= max(numbers) or layer in self.damaged:
                self.kernel[begin:end] = array("i", [-1]) * len(numbers)
                self.damaged.add(layer)

    def combinations(self) -> Iterator[Combination]:
        """Every table in full, those of reformats apart."""
        for row, layer in enumerate(self.rows[LAYER::STRIDE]):
            if layer == IGNORED or (layer == NONE and not len(self.span(row))):
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
