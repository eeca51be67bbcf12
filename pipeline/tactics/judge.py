"""From what a log says to what stands: one record per layer, each rung with its evidence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from pipeline.records.rung import Rung
from pipeline.records.tactics import Build, Conflict, Region, TacticLayer
from pipeline.tactics.builds import BuildLog, Mode
from pipeline.tactics.cache import Twins
from pipeline.tactics.condense import condense
from pipeline.tactics.context import hint, precision
from pipeline.tactics.context import typing_of as _typing
from pipeline.tactics.names import leaves, parts, profile_of
from pipeline.tactics.passes import Summary
from pipeline.tactics.reasons import Case, explain
from pipeline.tactics.rungs import Facts, decide_eligible, decide_selected, decide_tactic, decide_timed


def judge(number: int, log: BuildLog, summary: Summary, nodes: Sequence[str] | None = None) -> Build:
    """One build's record."""
    facts = _collect(log, summary)
    conflicts = [*log.conflicts, *summary.conflicts]
    condensed = condense(log.tables)
    condensed.partly_seen = log.tables.partly_seen(ended=log.tables_ended) | condensed.untimed_choices(log.tables)
    lost = not log.lists and condensed.any_sparse and not (log.tensorrt or "").startswith("7.")
    for layer in facts:
        conflicts += decide_tactic(layer, log, condensed)
        decide_eligible(layer, summary)
        decide_timed(layer, log)
        conflicts += decide_selected(layer, log, summary, whole=not lost)
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
        sparsity=sparsity_of(log),
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


SPARSITY_FLAG = re.compile(r"--sparsity=(enable|force|disable)\b")
MODE_OF_FLAG: dict[str, Mode] = {"enable": "enabled", "force": "forced", "disable": "disabled"}


def sparsity_of(log: BuildLog) -> Mode | None:
    """The mode by trtexec's own line, else by the banner's command, where the log lacks that line (a cut or filtered log)."""
    if log.sparsity or log.loads_plan:
        return log.sparsity
    found = SPARSITY_FLAG.search(log.command or "")
    return MODE_OF_FLAG[found[1]] if found else None


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
    return "cut" if (log.command is not None and not log.verdict) or log.tables.began else None


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
