"""Autotuning tables while they are read: each method is one form of line."""

from __future__ import annotations

import re
from math import isfinite

from pipeline.tactics.combinations import CHOSEN, IGNORED, LAYER, NONE, START, STRIDE, WINNER, Combinations, number_of

REFORMAT = re.compile(r"(?:Optimizer |Myelin)?Reformat")
_NOBODYS = ""
_HEX16 = re.compile(r"0x[0-9a-f]{16}")


class Tables(Combinations):
    """Collects the timing lines of one build. Lines come in the order of the log; each method is one form of line.

    Timed tactics may be appended to the columns ahead of the lines around them (`fast` does so by the block); `cursor`
    is how many of them have been reached.
    """

    def __init__(self) -> None:
        super().__init__()
        self.skip_told = False
        """Whether the line before told of a tactic that was skipped, so that the next one may tell of the same."""
        self.began = False
        self.headed = False
        """Whether the first line began a table: a costs line, behind which nothing of a layer can be missing, or a reformat's."""
        self.open = False
        self.costing = NONE
        """The layer of the costs line: that of a combination of which nothing is timed."""
        self.at: tuple[int, int] = (NONE, NONE)
        """The layer that is timed, which only a runner's line tells, and the format at hand."""
        self._set: tuple[str, str | None] | None = None

    # ---- forms of line

    def costs(self, layer: int) -> None:
        """`Computing costs for L`; L is empty (NONE) before 10."""
        self._head()
        self.costing, self.at = layer, (NONE, NONE)
        self.began, self.open, self._set = True, False, None

    def combination(self, format_: int, line: int) -> None:
        """`Autotuning format combination: F`."""
        self.at = (NONE, format_)
        self.began, self._set = True, None
        self.begin(line)
        self.rows[LAYER - STRIDE] = self.costing

    def reformat(self) -> None:
        """`Autotuning Reformat`: what follows is no layer of the network."""
        self._head()
        self.at = (IGNORED, NONE)
        self.began, self.open, self._set = True, False, None

    def _head(self) -> None:
        """A table of its own begins: where it is the first one, the log does not begin within a layer's tables."""
        self.headed = self.headed or not (self.began or self.rows)
        self.headless = not self.headed

    def timing_runner(self, layer: int, runner: int, line: int) -> None:
        """`Timing Runner: L (R)`; IGNORED for a reformat."""
        self.began, self._set = True, None
        if runner != self.runner[-1]:
            self.stretch.append(self.cursor)
            self.runner.append(runner)
        known, format_ = self.at
        if layer != known:
            if self.open and self.rows[START - STRIDE] == self.cursor:  # the combination's own line comes before its layer's name
                self.rows[LAYER - STRIDE] = layer
            else:
                self.open = False
                if known != NONE:  # lines between two layers are missing
                    format_ = NONE
            self.at = (layer, format_)
            if layer not in (self.costing, IGNORED):
                self.costing = NONE
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
        if id_ is None:
            self.by_order = True
            if self._set is not None:  # one of them has lost its time, and nothing tells which
                self._set = (_NOBODYS, None)
                return
        self._set = (name, id_)

    def timed(self, name: str | None, id_: str, ms: float, line: int) -> None:
        """One timed tactic."""
        if name is None and self._set is not None and self._set[1] in (None, id_):
            name = self._set[0] if self._set[0] != _NOBODYS else None
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
        elif self.nameless:
            self.rows[LAYER - STRIDE] = NONE
        self.cursor += count

    def named(self, layer: int) -> None:
        """`L (R) profiling completed ...` or `L Set Tactic Name: ...`: names the layer of tables whose runner line is missing.

        Where the runner's line names another layer, lines between the two are missing, and the tactics are nobody's.

        Args:
            layer: IGNORED for any that was not named before.
        """
        known, format_ = self.at
        if layer == known:
            return
        if known != NONE or NONE in self.damaged:
            self.damaged.update(number for number in (known, layer) if number < IGNORED)
        if known != NONE:
            layer = NONE
        self.at = (layer, format_)
        if self.open:
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
        self.at = (NONE, NONE)

    def gap(self, line: int) -> None:
        """Lines are missing here: what stands before and behind a table without a layer may have had more."""
        self.at, self._set = (NONE, NONE), None
        if self.began:
            self.begin(line)
            self.open = False

    def doubt(self) -> None:
        """A line of the layer at hand could not be read: it may have timed a tactic."""
        if self.at[0] != IGNORED:
            self.damaged.add(self.at[0])

    def skip(self) -> None:
        """A tactic of the layer at hand was skipped for memory or by an exception."""
        name = self.layers.names[self.at[0]] if self.at[0] < IGNORED else ""
        self.skipped[name] = self.skipped.get(name, 0) + 1

    # ---- the inside

    def begin(self, line: int) -> None:
        """A combination of the layer and format at hand begins."""
        self.rows.extend((*self.at, self.cursor, line, 0, 0))
        self.open = True

    @property
    def open_layer(self) -> str | None:
        """The layer that is being timed."""
        return self.layers.names[self.at[0]] if self.open and self.at[0] < IGNORED else None

    @property
    def ignoring(self) -> bool:
        """Whether the table at hand is a reformat's."""
        return self.at[0] == IGNORED

    @property
    def nameless(self) -> bool:
        """Whether the table at hand still lacks its layer's name."""
        return self.at[0] == NONE
