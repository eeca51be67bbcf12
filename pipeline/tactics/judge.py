"""From what a log says to what stands: one record per layer, each rung with its evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from pipeline.records.rung import Rung
from pipeline.records.tactics import Build, Conflict, Evidence, Region, Tactic, TacticLayer
from pipeline.tactics.builds import BuildLog, DumpLayer
from pipeline.tactics.cache import Twins
from pipeline.tactics.condense import Condensed, condense
from pipeline.tactics.context import hint, precision
from pipeline.tactics.context import typing_of as _typing
from pipeline.tactics.kernels import classify
from pipeline.tactics.names import leaves, parts, profile_of
from pipeline.tactics.passes import Said, Summary, Vote, settle
from pipeline.tactics.reasons import Case, explain
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


def judge(number: int, log: BuildLog, summary: Summary, nodes: Sequence[str] | None = None) -> Build:
    """One build's record."""
    facts = _collect(log, summary)
    conflicts = list(summary.conflicts)
    condensed = condense(log.tables)
    for layer in facts:
        conflicts += _decide_tactic(layer, log, condensed)
        _decide_eligible(layer, summary)
        _decide_timed(layer, log)
        conflicts += _decide_selected(layer, log, summary)
    _share_conflicts(facts, conflicts)
    layers = _records(facts, log, summary, nodes)
    listed = _in_list_order(layers, summary)
    seen = log.facts
    build = Build(
        id=number,
        sources=sorted({log.source, *log.joined}),
        result=_result(log),
        tensorrt=log.tensorrt or seen.tensorrt,
        command=log.command,
        log_level_seen="verbose" if log.verbose else "info" if log.info else None,
        sparsity=log.sparsity,
        typing=_typing(log),
        precision=precision(log),
        machine=seen.machine,
        builder=seen.builder,
        profiles=seen.profile_records(),
        timing_cache=seen.timing_cache,
        memory=seen.memory,
        passes=[pair.record() for pair in summary.pairs],
        eligible=[layer.id for layer in listed if layer.eligible in (Rung.YES, Rung.DISPUTED)],
        selected=[layer.id for layer in listed if layer.selected is Rung.YES],
        disputed=[layer.id for layer in listed if Rung.DISPUTED in (layer.eligible, layer.selected)],
        layers=layers,
        conflicts=conflicts,
        skipped_tactics=sum(log.tables.skipped.values()),
        truncated=[*log.truncated, *summary.truncated],
        findings=seen.findings,
        timed_shapes=seen.timed_shapes,
        performance=seen.performance,
        calibration_tactics=log.calibration_tactics,
    )
    return msgspec.structs.replace(build, hint=hint(build, log))


def _share_conflicts(facts: list[Facts], conflicts: list[Conflict]) -> None:
    by_id = {layer.id: layer for layer in facts}
    for conflict in conflicts:
        for id_ in conflict.layers:
            if id_ in by_id:
                by_id[id_].conflicts.append(conflict.code)


def _result(log: BuildLog) -> Literal["passed", "failed", "cut"] | None:
    if log.result:
        return log.result
    if log.closed:
        return "passed"
    return "cut" if log.command is not None or log.tables.began else None


def _collect(log: BuildLog, summary: Summary) -> list[Facts]:
    """Every layer that any source names, engine order first."""
    found: dict[str, Facts] = {}

    def at(name: str) -> Facts:
        if name not in found:
            found[name] = Facts(name, name, profile_of(name)[1])
        return found[name]

    for layer in log.layer_info:
        at(layer.name).info = layer
    for layer in log.dump:
        at(layer.name).dump = layer
    for name, rows in log.tables.rows_by_layer().items():
        at(name).rows = rows
    for name in log.profile_ms:
        at(name)
    for id_, said in summary.layers.items():
        listed = at(id_)
        listed.name, listed.said = said.name, said
        listed.profile = said.profile if listed.profile is None else listed.profile
    return list(found.values())


def _decide_tactic(layer: Facts, log: BuildLog, condensed: Condensed) -> list[Conflict]:
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


def _same_id(tables: Tables, id_: str | None) -> str | None:
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


def _decide_eligible(layer: Facts, summary: Summary) -> None:
    votes = layer.said.eligible if layer.said else []
    engine = layer.engine
    layer.evidence += [_from_vote("eligible", vote) for vote in votes]
    layer.eligible = settle(votes)
    if _kernel(layer) == "sparse":
        layer.eligible = Rung.YES
    elif votes:
        return
    elif summary.omits(layer.profile, summary.lists_eligible) and not (layer.said and layer.said.selected):
        layer.eligible = Rung.NO
    elif engine is not None and engine.sparse_weights is not None and not summary.lists_eligible:
        layer.eligible = Rung.YES if engine.sparse_weights else Rung.NO
        says = f"HasSparseWeights: {int(engine.sparse_weights)}"
        kind = "layer-info" if engine is layer.info else "engine-dump"
        layer.evidence.append(_says("eligible", says, engine.source, engine.line, kind))


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
    elif choice in ("sparse", "dense"):
        layer.selected = Rung.YES if choice == "sparse" else Rung.NO
    elif log.sparsity == "disabled" or (layer.eligible is Rung.NO and summary.lists_eligible):
        layer.selected = Rung.NO
    return []


def _records(facts: list[Facts], log: BuildLog, summary: Summary, nodes: Sequence[str] | None) -> list[TacticLayer]:
    known = frozenset(nodes) if nodes is not None else frozenset()
    dla = set(log.facts.dla)
    twins = Twins()
    fp32_only = precision(log) == ["FP32"]
    records = []
    for layer in facts:
        region = _region(layer, dla)
        cache, twin = twins.place(layer.name, layer.times, log)
        skipped = log.tables.skipped.get(layer.name, 0)
        case = Case(
            eligible=layer.eligible,
            timed=layer.timed,
            selected=layer.selected,
            region=region,
            times=layer.times,
            tactic=layer.tactic,
            conflicts=layer.conflicts,
            skipped=skipped,
            cache=cache,
            twin=twin,
            fp32_only=fp32_only,
            format_of=log.tables.format_of,
        )
        records.append(_record(layer, case, log, known))
    return records


def _record(layer: Facts, case: Case, log: BuildLog, known: frozenset[str]) -> TacticLayer:
    times, engine = layer.times, layer.engine
    named = engine.onnx_nodes if engine else []
    if not named and known:
        named = [leaf for leaf in leaves(layer.name) if leaf in known]
    return TacticLayer(
        id=layer.id,
        name=layer.name,
        profile=layer.profile,
        region=case.region,
        parts=parts(profile_of(layer.name)[0]),
        onnx_nodes=named,
        eligible=layer.eligible,
        timed=layer.timed,
        selected=layer.selected,
        tactic=layer.tactic,
        best=times.best if times else None,
        candidates=times.candidates if times else None,
        cache=case.cache,
        skipped=case.skipped,
        tuned_ms=times.tuned_ms if times else None,
        profile_ms=log.profile_ms.get(layer.name),
        reasons=explain(case),
        evidence=layer.evidence,
    )


REGIONS: tuple[tuple[str, Region], ...] = (("Myelin", "myelin"), ("Plugin", "plugin"), ("DLA", "dla"), ("Cask", "cask"))
"""What stands in the layer's type or runner -> region."""


def _region(layer: Facts, dla: set[str]) -> Region | None:
    if layer.name in dla:
        return "dla"
    engine = layer.engine
    kind = (
        (engine.type if engine else None)
        or (layer.tactic.runner if layer.tactic else None)
        or (layer.times.runner if layer.times else None)
        or ""
    )
    for sign, region in REGIONS:
        if sign in kind:
            return region
    return "myelin" if "ForeignNode[" in layer.name else None


def _in_list_order(layers: list[TacticLayer], summary: Summary) -> list[TacticLayer]:
    """Layers as the lists name them, then the others."""
    place = {id_: i for i, id_ in enumerate(summary.layers)}
    return sorted(layers, key=lambda layer: place.get(layer.id, len(place)))
