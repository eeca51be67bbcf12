"""Layers that were not timed since an equal one had been, or since a timing cache was loaded."""

from __future__ import annotations

from typing import Literal

from pipeline.tactics.builds import BuildLog
from pipeline.tactics.times import LayerTimes

Cache = Literal["timed", "repeat", "global"]


class Twins:
    """Remembers the format combinations of the layers that were timed, in the order of the log."""

    def __init__(self) -> None:
        self._timed: dict[tuple[str | None, ...], list[str]] = {}
        self._seen: list[tuple[str, LayerTimes]] = []

    def place(self, name: str, times: LayerTimes | None, log: BuildLog) -> tuple[Cache | None, str | None]:
        """How a layer got its times, and which earlier layer it equals where that can be told.

        That two layers with the same list of format combinations are equal is inferred: their kernels and weights' shapes
        are not in the log. A list of one combination tells only
        where no other layer has it.
        """
        if times is not None and times.candidates is not None:
            self._seen.append((name, times))
            return "timed", None
        if not log.tables.cursor and not (times and times.rows):
            return None, None
        loaded = log.facts.timing_cache.get("mode") == "global" or "loaded_bytes" in log.facts.timing_cache
        if loaded:
            return "global", None
        if log.facts.timing_cache.get("mode") == "none":
            return None, None
        for known, its in self._seen:  # looked up only where a layer was not timed
            self._timed.setdefault(_key(its, log), []).append(known)
        self._seen = []
        key = _key(times, log) if times is not None else ()
        alike = self._timed.get(key, []) if None not in key else []
        return "repeat", alike[0] if alike and (len(key) > 1 or len(alike) == 1) else None


def _key(times: LayerTimes, log: BuildLog) -> tuple[str | None, ...]:
    return tuple(log.tables.format_of(row) for row in times.rows)
