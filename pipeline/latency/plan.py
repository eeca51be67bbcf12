"""What is to be sampled and for how long, decided before the first sample counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import msgspec

if TYPE_CHECKING:
    import numpy as np

CONTROL_SUFFIX = "@again"
"""Ends the name of an A/A arm: the same plan loaded a second time, with its own session and buffers."""


def control_of(arm: str) -> str:
    """Name of the A/A arm of `arm`, such as `dense@again`."""
    return arm + CONTROL_SUFFIX


class Sampler(Protocol):
    """Times one engine at one fixed set of inputs (the builders' protocol, restated so that no workshop needs another)."""

    def block(self, count: int) -> Mapping[str, np.ndarray]:
        """Run `count` inferences back to back; per metric one float array [count] of ms."""
        ...


@runtime_checkable
class Renewable(Protocol):
    """A sampler whose engine lives in a process that can be started anew."""

    def renew(self) -> None:
        """End the process and start another."""
        ...


def starts_processes(sampler: Sampler) -> bool:
    """Whether a sampler's engine lives in processes of its own (its attribute `level` is `process`).

    One that can `renew` answers many blocks from one process; any other starts a process for every block.
    """
    return getattr(sampler, "level", "block") == "process"


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How long and how finely to sample one shape."""

    seconds: float = 10.0
    """Planned sampling time after the warm-up, all arms together. With it the number of rounds is fixed in advance, which is
    what lets the intervals hold at every earlier stop."""
    rounds: int = 20
    """Least number of rounds, even where they take longer than `seconds`."""
    block_ms: float = 20.0
    """Length of one arm's block within a round."""
    block_samples: int = 9
    """Least number of samples per block; engines so slow that `rounds` such blocks outlast `seconds` get smaller ones."""
    warmup_seconds: float = 10.0
    """Longest warm-up; an arm that has not settled by then is recorded as unsettled, and the gate refuses its times."""
    least_warmup_seconds: float = 0.5
    """Shortest warm-up: clocks that ramp up slowly look steady at first."""
    process_block_ms: float = 1000.0
    """Time that one process is measured before the next is started."""
    rewarm: int = 2
    """Inferences run and not recorded before each block: the arm before it has cooled this one's caches."""
    pause_ms: float = 1.0
    """Pause before each block, for thread pools of the arm before to stop spinning."""
