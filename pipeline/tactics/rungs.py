"""Rungs 4 to 6 of one layer: eligible, timed and selected, each decided alone and with its evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from pipeline.records.rung import Rung
from pipeline.records.tactics import Conflict, Evidence, Tactic
from pipeline.tactics.builds import BuildLog, DumpLayer
from pipeline.tactics.combinations import Combinations
from pipeline.tactics.condense import Condensed
from pipeline.tactics.kernels import classify
from pipeline.tactics.passes import Said, Summary, Vote, settle
from pipeline.tactics.times import LayerTimes, layer_times


class Facts(msgspec.Struct):
    """Everything known of one layer, from all sources."""

    id: str
    name: str
    profile: int | None = None
    said: Said | None = None
    rows: Sequence[int] = []
    dump: DumpLayer | None = None
    info: DumpLayer | None = None
    times: LayerTimes | None = None
    tactic: Tactic | None = None
    eligible: Rung = Rung.UNKNOWN
    timed: Rung = Rung.UNKNOWN
    selected: Rung = Rung.UNKNOWN
    evidence: list[Evidence] = []
    conflicts: list[str] = []

    @property
    def engine(self) -> DumpLayer | None:
        """What the engine's own description says; layer info before the log's dump."""
        if self.info is not None and self.info.detailed:
            return self.info
        return self.dump or self.info


def decide_tactic(layer: Facts, log: BuildLog, condensed: Condensed) -> list[Conflict]:
    """The tactic that the engine runs: by layer info or the dump, else by a choice that all combinations share."""
    tables, engine = log.tables, layer.engine
    final_id = engine.tactic_id if engine else None
    layer.times = layer_times(tables, condensed, layer.rows, final_id, engine.tactic_name if engine else None)
    if engine is not None and (engine.tactic_name or engine.tactic_id):
        name = engine.tactic_name or (layer.times.name_of_final if layer.times else None) or _same_id(tables, final_id)
        how: Literal["layer-info", "engine-dump"] = "layer-info" if engine is layer.info else "engine-dump"
        runner = layer.times.runner_of_final if layer.times else None
        layer.tactic = Tactic(name=name, kind=classify(name), id=engine.tactic_id, runner=runner, how=how)
        layer.evidence.append(_says("selected", f"kernel {name or engine.tactic_id}", engine.source, engine.line, how))
        return _compare_engine(layer)
    if layer.times and layer.times.choice:
        layer.tactic = layer.times.choice
        line = layer.times.choice_line
        layer.evidence.append(_says("selected", f"choice {layer.tactic.name or layer.tactic.kind}", log.source, line, "choice"))
    return []


def _same_id(tables: Combinations, id_: str | None) -> str | None:
    """The one kernel that has this id elsewhere in the log: ids stand for kernels."""
    return tables.name_of(id_) if id_ else None


def _compare_engine(layer: Facts) -> list[Conflict]:
    """The log's dump and the layer info of another build do not belong together."""
    dump, info = layer.dump, layer.info
    if dump is None or info is None or not dump.tactic_id or not info.tactic_id or dump.tactic_id == info.tactic_id:
        return []
    text = f"the log's engine dump has tactic {dump.tactic_id}, the layer info {info.tactic_id}: they may be of different builds"
    return [Conflict(code="dump-and-layer-info-disagree", layers=[layer.id], text=text)]


def _says(rung: str, says: str, source: int, line: int | None, kind: str) -> Evidence:
    return Evidence(rung=rung, says=says, source=source, line=line, kind=kind)


def _from_vote(rung: str, vote: Vote) -> Evidence:
    return _says(rung, f"{vote.rung}: {vote.says}", vote.source, vote.line, "summary")


def _kernel(layer: Facts) -> str | None:
    """The class of the kernel that the engine is known to run; None where no name tells."""
    tactic = layer.tactic
    if tactic is None or tactic.how == "choice" or tactic.kind == "unknown":
        return None
    return tactic.kind


def decide_eligible(layer: Facts, summary: Summary) -> None:
    """Rung 4."""
    votes = layer.said.eligible if layer.said else []
    engine = layer.engine
    layer.evidence += [_from_vote("eligible", vote) for vote in votes]
    layer.eligible = settle(votes)
    if _kernel(layer) == "sparse":
        layer.eligible = Rung.YES
    elif votes:
        return
    elif "ForeignNode[" in layer.name:
        return  # lists may name what lies within the region
    elif summary.omits(layer.profile, summary.lists_eligible) and not (layer.said and layer.said.selected):
        layer.eligible = Rung.NO
    elif engine is not None and engine.sparse_weights is not None and not summary.lists_eligible:
        layer.eligible = Rung.YES if engine.sparse_weights else Rung.NO
        says = f"HasSparseWeights: {int(engine.sparse_weights)}"
        kind = "layer-info" if engine is layer.info else "engine-dump"
        layer.evidence.append(_says("eligible", says, engine.source, engine.line, kind))


def decide_timed(layer: Facts, log: BuildLog) -> None:
    """Rung 5."""
    times = layer.times
    if times is None or times.candidates is None:
        return
    counts = times.candidates
    if counts.sparse:
        layer.timed = Rung.YES
        line = times.sparse_line
        layer.evidence.append(_says("timed", f"{counts.sparse} sparse tactic(s) timed", log.source, line, "timing"))
    elif counts.dense and not counts.unknown:
        layer.timed = Rung.NO if times.whole else Rung.UNKNOWN
        says = f"{counts.dense} tactic(s) timed, none sparse" + ("" if times.whole else "; lines of it are missing or damaged")
        layer.evidence.append(_says("timed", says, log.source, times.dense_line, "timing"))


def decide_selected(layer: Facts, log: BuildLog, summary: Summary, *, whole: bool) -> list[Conflict]:
    """Rung 6; returns the conflicts of its sources.

    Args:
        layer: The layer.
        log: The build's.
        summary: The build's.
        whole: False where the log lacks its summary, which is printed where sparse tactics are timed: then choices may be missing too.
    """
    votes = layer.said.selected if layer.said else []
    layer.evidence += [_from_vote("selected", vote) for vote in votes]
    by_list = settle(votes)
    kernel = _kernel(layer)
    differ = layer.dump and layer.info and classify(layer.dump.tactic_name) != classify(layer.info.tactic_name)
    if kernel is not None and differ and layer.dump and layer.dump.tactic_name and layer.info and layer.info.tactic_name:
        layer.selected = Rung.DISPUTED
        return []
    if kernel is not None:
        layer.selected = Rung.YES if kernel == "sparse" else Rung.NO
        if by_list in (Rung.YES, Rung.NO) and by_list is not layer.selected:
            assert layer.tactic is not None
            text = f"the summary says {by_list}, but the engine runs {layer.tactic.name}"
            return [Conflict(code="list-and-tactic-disagree", layers=[layer.id], text=text)]
        return []
    choice = layer.tactic.kind if layer.tactic and layer.tactic.how == "choice" else None
    if votes:
        layer.selected = by_list
        if (by_list, choice) in ((Rung.YES, "dense"), (Rung.NO, "sparse")):
            layer.selected = Rung.DISPUTED
            text = f"the summary says {by_list}, but every format combination chose a {choice} tactic"
            return [Conflict(code="list-and-tactic-disagree", layers=[layer.id], text=text)]
    elif choice == "sparse" and layer.eligible is Rung.NO:
        layer.selected = Rung.DISPUTED
        text = "the complete list of eligible layers omits it, but every format combination chose a sparse tactic"
        return [Conflict(code="list-and-tactic-disagree", layers=[layer.id], text=text)]
    elif choice in ("sparse", "dense") and whole:
        layer.selected = Rung.YES if choice == "sparse" else Rung.NO
    elif log.sparsity == "disabled" or (layer.eligible is Rung.NO and summary.lists_eligible):
        layer.selected = Rung.NO
    return []
