"""Autotuning tables in columns: every timed tactic of every layer and format combination, in about 26 bytes each."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from math import isfinite

import msgspec

from pipeline.tactics.kernels import TacticClass, classify

NONE = -1
_REFORMAT = re.compile(r"(?:Optimizer |Myelin)?Reformat")
_HEX16 = re.compile(r"0x[0-9a-f]{16}")
_MASK = (1 << 64) - 1


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
    winner_runner: str | None
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
    """Collects the timing lines of one build. Lines come in the order of the log; each method is one form of line."""

    def __init__(self) -> None:
        self.layers, self.formats, self.kernels, self.runners = Index(), Index(), Index(), Index()
        self.classes: list[TacticClass] = []
        # one entry per timed tactic
        self.kernel, self.ms, self.id, self.runner, self.line = array("i"), array("d"), array("Q"), array("H"), array("I")
        self.odd_ids: dict[int, str] = {}
        # one entry per combination; `start` of the next one is the stop of this one
        self.layer, self.format, self.start = array("i"), array("i"), array("I")
        self.winner, self.chosen, self.at, self.winner_runner = array("Q"), array("b"), array("I"), array("h")
        self.odd_winners: dict[int, str] = {}
        self.skipped: dict[str, int] = {}
        self.began = False
        self._costs: str | None = None
        self._layer: str | None = None
        self._format: str | None = None
        self._runner = ""
        self._open = False
        self._ignore = False
        self._set: tuple[str, str | None] | None = None

    # ---- forms of line

    def costs(self, layer: str, line: int) -> None:
        """`Computing costs for L`; L is empty before 10."""
        self.began = True
        self._costs = layer or None
        self._layer, self._format, self._open, self._ignore, self._set = self._costs, None, False, False, None

    def combination(self, format_: str, line: int) -> None:
        """`Autotuning format combination: F`."""
        self.began = True
        self._layer, self._format, self._ignore, self._set = self._costs, format_, False, None
        self._begin(line)

    def reformat(self) -> None:
        """`Autotuning Reformat`: what follows is no layer of the network."""
        self.began = self._ignore = True
        self._open = False

    def timing_runner(self, layer: str, runner: str, line: int) -> None:
        """`Timing Runner: L (R)`."""
        self.began = True
        self._set = None
        if _REFORMAT.match(layer) or _REFORMAT.match(runner):
            self._ignore = True
            return
        self._ignore = False
        self._runner = runner
        if layer != self._layer:
            if self._open and self.start[-1] == len(self.ms):  # the combination's own line came first, before any name
                self.layer[-1] = self.layers.number(layer)
            elif self._open:  # lines between two layers are missing
                self._open, self._format = False, None
            self._layer = layer
            self._costs = self._costs if self._costs == layer else None
        if not self._open:
            self._begin(line)

    def set_name(self, layer: str, name: str, id_: str | None) -> None:
        """`L Set Tactic Name: N [Tactic: T]`: the name of the tactic that the next line times."""
        self._set = (name, id_)

    def timed(self, name: str | None, id_: str, ms: float, line: int) -> None:
        """One timed tactic."""
        if name is None and self._set is not None and self._set[1] in (None, id_):
            name = self._set[0]
        self._set = None
        if self._ignore:
            return
        if not isfinite(ms):
            self.skip()
            return
        if not self._open:
            self._begin(line)
        if _HEX16.fullmatch(id_):
            self.id.append(int(id_, 16))
        elif id_.startswith("0x"):
            self.odd_ids[len(self.id)] = id_
            self.id.append(int(id_, 16) & _MASK)
        else:
            self.odd_ids[len(self.id)] = id_
            self.id.append(int(id_) & _MASK)
        self.kernel.append(NONE if name is None else self.kernel_number(name))
        self.ms.append(ms)
        self.runner.append(self.runners.number(self._runner))
        self.line.append(line)

    def fastest(self, layer: str | None) -> None:
        """`L (R) profiling completed ... Fastest Tactic`: names the layer of tables whose runner line is missing."""
        if layer and self._layer is None and self._open and not self._ignore:
            self._layer = layer
            self.layer[-1] = self.layers.number(layer)

    def chose(self, runner: str, id_: str, line: int) -> None:
        """`Chose Runner Type: R Tactic: T`: closes the combination."""
        self._set = None
        if self._ignore:
            return
        if not self._open:
            self._begin(line)
        if not _HEX16.fullmatch(id_):
            self.odd_winners[len(self.winner) - 1] = id_
        self.winner[-1] = int(id_, 16 if id_.startswith("0x") else 10) & _MASK
        self.chosen[-1] = 1
        self.winner_runner[-1] = self.runners.number(runner)
        self._open, self._format = False, None

    def skip(self) -> None:
        """A tactic of the open layer was skipped for memory or by an exception."""
        if self._layer is not None and not self._ignore:
            self.skipped[self._layer] = self.skipped.get(self._layer, 0) + 1

    # ---- the inside

    def kernel_number(self, name: str) -> int:
        """The number of a kernel's name; its class is found once."""
        number = self.kernels.number(name)
        if number == len(self.classes):
            self.classes.append(classify(name))
        return number

    def _begin(self, line: int) -> None:
        self.layer.append(NONE if self._layer is None else self.layers.number(self._layer))
        self.format.append(NONE if self._format is None else self.formats.number(self._format))
        self.start.append(len(self.ms))
        self.winner.append(0)
        self.chosen.append(0)
        self.winner_runner.append(NONE)
        self.at.append(line)
        self._open = True

    @property
    def open_layer(self) -> str | None:
        """The layer that is being timed."""
        return self._layer if self._open else None

    # ---- reading

    def tactic_id(self, index: int) -> str:
        """The id of a timed tactic as printed."""
        return self.odd_ids.get(index) or f"0x{self.id[index]:016x}"

    def winner_id(self, row: int) -> str | None:
        """The id of a combination's choice as printed."""
        if not self.chosen[row]:
            return None
        return self.odd_winners.get(row) or f"0x{self.winner[row]:016x}"

    def span(self, row: int) -> range:
        """The indices of a combination's timed tactics."""
        return range(self.start[row], self.start[row + 1] if row + 1 < len(self.start) else len(self.ms))

    def class_at(self, index: int) -> TacticClass:
        """The class of a timed tactic."""
        number = self.kernel[index]
        return "unknown" if number < 0 else self.classes[number]

    def kernel_at(self, index: int) -> str | None:
        """The kernel's name of a timed tactic, where the log has it."""
        number = self.kernel[index]
        return None if number < 0 else self.kernels.names[number]

    def rows_by_layer(self) -> dict[str, list[int]]:
        """Combination rows of each named layer, in the order of the log."""
        rows: dict[str, list[int]] = {name: [] for name in self.layers.names}
        names = self.layers.names
        for row, layer in enumerate(self.layer):
            if layer >= 0:
                rows[names[layer]].append(row)
        return rows

    def combinations(self) -> Iterator[Combination]:
        """Every table in full."""
        for row, layer in enumerate(self.layer):
            yield Combination(
                layer=self.layers.names[layer] if layer >= 0 else None,
                format=self.formats.names[self.format[row]] if self.format[row] >= 0 else None,
                timings=[
                    Timing(
                        self.kernel_at(i), self.class_at(i), self.tactic_id(i), self.ms[i], self.runners.names[self.runner[i]], self.line[i]
                    )
                    for i in self.span(row)
                ],
                winner=self.winner_id(row),
                winner_runner=self.runners.names[self.winner_runner[row]] if self.winner_runner[row] >= 0 else None,
                line=self.at[row],
            )
