"""From what a log says to what stands: one record per layer, each rung with its evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from pipeline.records.rung import Rung
from pipeline.records.tactics import Build, Conflict, Evidence, Pass, Region, Tactic, TacticLayer, Truncated
from pipeline.tactics.builds import BuildLog, DumpLayer
from pipeline.tactics.kernels import classify
from pipeline.tactics.names import leaves, parts, profile_of
from pipeline.tactics.passes import Said, Summary, Vote, layer_id, settle, summarise
from pipeline.tactics.reasons import explain
from pipeline.tactics.sparsity import Listed, Widths, confirm, pair_up, read_list
from pipeline.tactics.tables import Tables
from pipeline.tactics.times import LayerTimes, layer_times


class Facts(msgspec.Struct):
    """Everything known of one layer, from all sources."""

    id: str
    name: str
    profile: int | None = None
    said: Said | None = None
    rows: list[int] = []
    dump: DumpLayer | None = None
    times: LayerTimes | None = None
    tactic: Tactic | None = None
    eligible: Rung = Rung.UNKNOWN
    timed: Rung = Rung.UNKNOWN
    selected: Rung = Rung.UNKNOWN
    evidence: list[Evidence] = []
    conflicts: list[str] = []


def judge(number: int, log: BuildLog, widths: Widths, nodes: Sequence[str] | None = None) -> Build:
    """One build's record."""
    lists, truncated = _lists(log, widths)
    pairs = pair_up(lists)
    summary = summarise(pairs, _profiles(log))
    facts = _collect(log, summary)
    conflicts = list(summary.conflicts)
    for layer in facts:
        _decide_tactic(layer, log)
        _decide_eligible(layer, summary)
        _decide_timed(layer, log)
        conflicts += _decide_selected(layer, log, summary)
    layers = [_record(layer, log, nodes) for layer in facts]
    listed = _in_list_order(layers, summary)
    passes: list[Pass] = [pair.record() for pair in pairs]
    return Build(
        id=number,
        sources=sorted({log.source, *(layer.source for layer in log.dump)}),
        result=_result(log),
        tensorrt=log.tensorrt,
        command=log.command,
        log_level_seen="verbose" if log.verbose else "info" if log.info else None,
        sparsity=log.sparsity,
        passes=passes,
        eligible=[layer.id for layer in listed if layer.eligible in (Rung.YES, Rung.DISPUTED)],
        selected=[layer.id for layer in listed if layer.selected is Rung.YES],
        disputed=[layer.id for layer in listed if Rung.DISPUTED in (layer.eligible, layer.selected)],
        layers=layers,
        conflicts=conflicts,
        skipped_tactics=sum(log.tables.skipped.values()),
        truncated=[*log.truncated, *truncated],
    )


def _result(log: BuildLog) -> Literal["passed", "failed", "cut"] | None:
    if log.result:
        return log.result
    if log.closed:
        return "passed"
    return "cut" if log.command is not None or log.tables.began else None


def _profiles(log: BuildLog) -> int:
    return 1


def _lists(log: BuildLog, widths: Widths) -> tuple[list[Listed], list[Truncated]]:
    """The summary messages, read; names at cuts are taken in only where another source has them."""
    for raw in log.lists:
        read_list(raw, widths)  # learns widths that shorter messages cannot show
    lists = [listed for raw in log.lists if (listed := read_list(raw, widths)) is not None]
    unread = [raw for raw in log.lists if read_list(raw, widths) is None]
    known = {name for listed in lists for name in listed.names} | set(log.tables.layers.names) | {layer.name for layer in log.dump}
    for listed in lists:
        confirm(listed, known)
    cut = [Truncated(source=listed.raw.source, line=listed.raw.line, text=text) for listed in lists for text in listed.cut]
    return lists, [*cut, *(Truncated(source=raw.source, line=raw.line, text=raw.text) for raw in unread)]


def _collect(log: BuildLog, summary: Summary) -> list[Facts]:
    """Every layer that any source names, engine order first."""
    found: dict[str, Facts] = {}
    for layer in log.dump:
        found.setdefault(layer.name, Facts(layer.name, layer.name, profile_of(layer.name)[1])).dump = layer
    for name, rows in log.tables.rows_by_layer().items():
        found.setdefault(name, Facts(name, name, profile_of(name)[1])).rows = rows
    for id_, said in summary.layers.items():
        found.setdefault(id_, Facts(id_, said.name, said.profile)).said = said
    return list(found.values())


def _decide_tactic(layer: Facts, log: BuildLog) -> None:
    """The tactic that the engine runs: by the dump or layer info, else by a choice that all combinations share."""
    tables, dump = log.tables, layer.dump
    final_id = dump.tactic_id if dump else None
    layer.times = layer_times(tables, layer.rows, final_id)
    if dump is not None and (dump.tactic_name or dump.tactic_id):
        name = dump.tactic_name or (layer.times.name_of_final if layer.times else None)
        how: Literal["layer-info", "engine-dump"] = "layer-info" if dump.line is None else "engine-dump"
        runner = layer.times.runner_of_final if layer.times else None
        layer.tactic = Tactic(name=name, kind=classify(name), id=dump.tactic_id, runner=runner, how=how)
        layer.evidence.append(_says("selected", f"kernel {name or dump.tactic_id}", dump.source, dump.line, how))
    elif layer.times and layer.times.choice:
        layer.tactic = layer.times.choice
        line = layer.times.choice_line
        layer.evidence.append(_says("selected", f"choice {layer.tactic.name or layer.tactic.kind}", log.source, line, "choice"))


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


def _decide_eligible(layer: Facts, summary: Summary) -> None:
    votes = layer.said.eligible if layer.said else []
    layer.evidence += [_from_vote("eligible", vote) for vote in votes]
    layer.eligible = settle(votes)
    if _kernel(layer) == "sparse":
        layer.eligible = Rung.YES
    elif votes:
        return
    elif summary.omits(layer.profile, summary.lists_eligible) and not (layer.said and layer.said.selected):
        layer.eligible = Rung.NO
    elif layer.dump is not None and layer.dump.sparse_weights is not None and not summary.lists_eligible:
        layer.eligible = Rung.YES if layer.dump.sparse_weights else Rung.NO
        says = f"HasSparseWeights: {int(layer.dump.sparse_weights)}"
        layer.evidence.append(_says("eligible", says, layer.dump.source, layer.dump.line, "layer-info"))


def _decide_timed(layer: Facts, log: BuildLog) -> None:
    times = layer.times
    if times is None or times.candidates is None:
        return
    counts = times.candidates
    if counts.sparse:
        layer.timed = Rung.YES
        line = times.sparse_line
        layer.evidence.append(_says("timed", f"{counts.sparse} sparse tactic(s) timed", log.source, line, "timing"))
    elif counts.dense and not counts.unknown:
        layer.timed = Rung.NO
        layer.evidence.append(_says("timed", f"{counts.dense} tactic(s) timed, none sparse", log.source, times.dense_line, "timing"))


def _decide_selected(layer: Facts, log: BuildLog, summary: Summary) -> list[Conflict]:
    votes = layer.said.selected if layer.said else []
    layer.evidence += [_from_vote("selected", vote) for vote in votes]
    by_list = settle(votes)
    kernel = _kernel(layer)
    if kernel is not None:
        layer.selected = Rung.YES if kernel == "sparse" else Rung.NO
        if by_list in (Rung.YES, Rung.NO) and by_list is not layer.selected:
            assert layer.tactic is not None
            text = f"the summary says {by_list}, but the engine runs {layer.tactic.name}"
            layer.conflicts.append("list-and-tactic-disagree")
            return [Conflict(code="list-and-tactic-disagree", layers=[layer.id], text=text)]
        return []
    choice = layer.tactic.kind if layer.tactic and layer.tactic.how == "choice" else None
    if votes:
        layer.selected = by_list
        if (by_list, choice) in ((Rung.YES, "dense"), (Rung.NO, "sparse")):
            layer.selected = Rung.DISPUTED
            text = f"the summary says {by_list}, but every format combination chose a {choice} tactic"
            layer.conflicts.append("list-and-tactic-disagree")
            return [Conflict(code="list-and-tactic-disagree", layers=[layer.id], text=text)]
    elif choice in ("sparse", "dense"):
        layer.selected = Rung.YES if choice == "sparse" else Rung.NO
    elif log.sparsity == "disabled" or (layer.eligible is Rung.NO and summary.lists_eligible):
        layer.selected = Rung.NO
    return []


def _record(layer: Facts, log: BuildLog, nodes: Sequence[str] | None) -> TacticLayer:
    times = layer.times
    named = layer.dump.onnx_nodes if layer.dump else []
    if not named and nodes is not None:
        known = set(nodes)
        named = [leaf for leaf in leaves(layer.name) if leaf in known]
    return TacticLayer(
        id=layer.id,
        name=layer.name,
        profile=layer.profile,
        region=_region(layer),
        parts=parts(layer.name),
        onnx_nodes=named,
        eligible=layer.eligible,
        timed=layer.timed,
        selected=layer.selected,
        tactic=layer.tactic,
        best=times.best if times else None,
        candidates=times.candidates if times else None,
        cache="timed" if times and times.candidates else None,
        skipped=log.tables.skipped.get(layer.name, 0),
        tuned_ms=times.tuned_ms if times else None,
        reasons=explain(layer.eligible, layer.selected, times, layer.tactic, layer.conflicts),
        evidence=layer.evidence,
    )


def _region(layer: Facts) -> Region | None:
    kind = (layer.dump.type if layer.dump else None) or ""
    if "Myelin" in kind or "ForeignNode[" in layer.name:
        return "myelin"
    if "Plugin" in kind:
        return "plugin"
    return "cask" if "Cask" in kind else None


def _in_list_order(layers: list[TacticLayer], summary: Summary) -> list[TacticLayer]:
    """Layers as the lists name them, then the others."""
    place = {id_: i for i, id_ in enumerate(summary.layers)}
    return sorted(layers, key=lambda layer: place.get(layer.id, len(place)))


__all__ = ["Tables", "judge", "layer_id"]
