"""What changed between two builds of one network, layer by layer, with what each change cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from msgspec.structs import replace

from pipeline.records.difference import Change, ChangeKind, DiffReport, Side, Totals
from pipeline.records.rung import Rung
from pipeline.records.tactics import Build, TacticClass, TacticLayer
from pipeline.verdict.environment import differing_facts
from pipeline.verdict.matching import Group, group_layers, plain_nodes

Clock = Literal["profile", "tuner"]

TIME_CHANGE = 0.05
"""Share by which a group's time must differ to be a change in itself: profiles are single figures without an interval."""

WHOLE = ("engine-dump", "layer-info")
"""Sources of a tactic that name every layer of the engine."""

PRECISIONS: dict[str, str] = {
    "Float": "fp32",
    "Half": "fp16",
    "BFloat16": "bf16",
    "Int8": "int8",
    "FP8": "fp8",
    "Int4": "int4",
    "Int32": "int32",
}
"""TensorRT's names of types at the head of a tensor in a format combination."""


HIDDEN = {ChangeKind.HIDDEN_IN_A, ChangeKind.HIDDEN_IN_B}
"""What one side does not tell: no change is known."""


def diff_builds(a: Build, b: Build, *, names: tuple[str, str] = ("A", "B"), look: str | None = None) -> DiffReport:
    """Match the layers of two builds by ONNX nodes and say what changed, by time lost; `look` shows B's layers (else its log does)."""
    clock = _clock(a, b)
    pairs = [(group, _hidden(group, a, b)) for group in group_layers([a.layers, b.layers])]
    groups = [group for group, hidden in pairs if not hidden]
    changes = [change for group in groups if (change := _change(group, clock)).kinds]
    same = len(groups) - len(changes)
    changes += [replace(_change(group, clock), kinds=[hidden]) for group, hidden in pairs if hidden and _matters(group)]
    changes.sort(key=_by_time)
    return DiffReport(
        a=names[0],
        b=names[1],
        times=clock,
        environment=differing_facts(a, b),
        changes=changes,
        same=same,
        a_totals=_totals(a, clock),
        b_totals=_totals(b, clock),
        notes=_notes(a, b, clock, names),
        next=_next(changes, same, (a, b), names, look or f"sparsegate tactics {names[1]}"),
    )


def shows_all_layers(build: Build) -> bool:
    """Whether a build's sources name every engine layer: a dump, layer info or a profile does, lists and timing tables do not."""
    return any(layer.profile_ms is not None or (layer.tactic and layer.tactic.how in WHOLE) for layer in build.layers)


def _hidden(group: Group, a: Build, b: Build) -> ChangeKind | None:
    """The side that lacks the group and does not show all its layers: whether the layers are new or gone is then not known."""
    mine, theirs = group.layers
    if not mine and not shows_all_layers(a):
        return ChangeKind.HIDDEN_IN_A
    return ChangeKind.HIDDEN_IN_B if not theirs and not shows_all_layers(b) else None


def _matters(group: Group) -> bool:
    """Some layer is sparse or could be: a log that lists such layers alone leaves out all the others."""
    layers = [layer for side in group.layers for layer in side]
    return any(tactic_class(layer) == "sparse" or {layer.eligible, layer.selected} & {Rung.YES, Rung.DISPUTED} for layer in layers)


def _notes(a: Build, b: Build, clock: Clock | None, names: tuple[str, str]) -> list[str]:
    notes = [
        f"{name} shows some of its layers only, so none is called new or gone for lacking there; trtexec --exportLayerInfo shows all"
        for build, name in ((a, names[0]), (b, names[1]))
        if not shows_all_layers(build)
    ]
    return notes if clock != "tuner" else [*notes, "times are the autotuner's: they compare tactics, and are no layer times of an engine"]


def _next(changes: Sequence[Change], same: int, builds: tuple[Build, Build], names: tuple[str, str], look: str) -> str:
    """The change to look at first; a failed build before any."""
    if failed := [name for build, name in zip(builds, names, strict=True) if build.result == "failed"]:
        return f"see why {' and '.join(failed)} failed, and build again: without an engine nothing runs what a log selected"
    shared = same or any(change.a and change.b for change in changes)
    if not shared and (not changes or all(build.layers for build in builds)):
        return "A and B share no ONNX node: see whether they are builds of one network"
    lost = [change for change in changes if ChangeKind.SELECTION in change.kinds and any(side.kind == "dense" for side in change.b)]
    if lost:
        return f"see why {lost[0].b[0].layer} went dense: {look}"
    if hidden := sorted((change for change in changes if HIDDEN & set(change.kinds)), key=_sparse_first):
        name = names[ChangeKind.HIDDEN_IN_B in hidden[0].kinds]
        layer = (hidden[0].a or hidden[0].b)[0].layer
        return f"see what became of {layer}, of which {name} does not tell: build with trtexec --verbose and --exportLayerInfo, and compare"
    if changes:
        return "build each side again and compare with itself: what differs there is chance, not the change (sparsegate diff B B2)"
    whole = all(map(shows_all_layers, builds))
    return "nothing to do: no layer changed" if whole else "nothing to do: no layer that both show changed"


def _sparse_first(change: Change) -> bool:
    return not any(side.kind == "sparse" for side in (*change.a, *change.b))


def _clock(a: Build, b: Build) -> Clock | None:
    """Profile times where both builds have some, else the autotuner's where both have those."""
    for clock, read in _CLOCKS.items():
        if all(any(read(layer) is not None for layer in build.layers) for build in (a, b)):
            return clock
    return None


_CLOCKS: dict[Clock, Callable[[TacticLayer], float | None]] = {
    "profile": lambda layer: layer.profile_ms,
    "tuner": lambda layer: layer.tuned_ms,
}


def _ms(layers: Iterable[TacticLayer], clock: Clock | None) -> float | None:
    """Sum of times; None where one is missing or there is no clock."""
    if clock is None:
        return None
    times = [_CLOCKS[clock](layer) for layer in layers]
    known = [time for time in times if time is not None]
    return sum(known) if times and len(known) == len(times) else None


def _change(group: Group, clock: Clock | None) -> Change:
    a, b = group.layers
    if {layer.name for layer in a} == {layer.name for layer in b}:
        a, b = (tuple(sorted(side, key=_name)) for side in (a, b))
    a_copies, b_copies = group.reformats
    a_ms, b_ms = _ms([*a, *a_copies], clock), _ms([*b, *b_copies], clock)
    change = Change(
        kinds=[],
        nodes=sorted(group.nodes),
        a=[_side(layer, clock) for layer in a],
        b=[_side(layer, clock) for layer in b],
        a_ms=a_ms,
        b_ms=b_ms,
    )
    kinds = _structure(a, b) or _properties(change)
    if a and b and len(a_copies) != len(b_copies):
        kinds.append(ChangeKind.REFORMATS)
    if a_ms is not None and b_ms is not None and abs(b_ms - a_ms) > TIME_CHANGE * max(a_ms, b_ms):
        kinds.append(ChangeKind.TIME)
    return Change(kinds=kinds, nodes=change.nodes, a=change.a, b=change.b, a_ms=a_ms, b_ms=b_ms)


def _structure(a: Sequence[TacticLayer], b: Sequence[TacticLayer]) -> list[ChangeKind]:
    """How the cut into layers changed, and with a changed cut whether the classes did; empty where each layer has one partner."""
    if not a or not b:
        return [ChangeKind.GONE if a else ChangeKind.NEW] if a or b else []
    if len(a) == len(b) == 1 or any({read(layer) for layer in a} == {read(layer) for layer in b} for read in (plain_nodes, _name)):
        return []
    kind = ChangeKind.SPLIT if len(a) == 1 else ChangeKind.MERGED if len(b) == 1 else ChangeKind.REGROUPED
    classes = [{tactic_class(layer) for layer in side} - {"unknown"} for side in (a, b)]
    return [kind, *([ChangeKind.SELECTION] if all(classes) and classes[0] != classes[1] else [])]


def _name(layer: TacticLayer) -> str:
    return layer.name


def _properties(change: Change) -> list[ChangeKind]:
    """What changed of layers that have one partner each."""
    pairs = list(zip(change.a, change.b, strict=False))
    return [kind for kind, differs in _PROPERTIES.items() if any(differs(x, y) for x, y in pairs)]


def _known(x: object, y: object) -> bool:
    """Both are known, and differ: what one log does not show is no change."""
    return x not in (None, "unknown", Rung.UNKNOWN) and y not in (None, "unknown", Rung.UNKNOWN) and x != y


_PROPERTIES: dict[ChangeKind, Callable[[Side, Side], bool]] = {
    ChangeKind.RENAMED: lambda x, y: x.layer != y.layer,
    ChangeKind.SELECTION: lambda x, y: _known(x.kind, y.kind),
    ChangeKind.ELIGIBILITY: lambda x, y: _known(x.eligible, y.eligible),
    ChangeKind.TACTIC: lambda x, y: _known(x.tactic, y.tactic),
    ChangeKind.PRECISION: lambda x, y: _known(x.precision, y.precision),
    ChangeKind.FORMAT: lambda x, y: _known(x.format, y.format),
    ChangeKind.REGION: lambda x, y: _known(x.region, y.region),
    ChangeKind.HIDDEN_IN_A: lambda x, y: x.kind == "unknown" and y.kind == "sparse",
    ChangeKind.HIDDEN_IN_B: lambda x, y: x.kind == "sparse" and y.kind == "unknown",
}


def _side(layer: TacticLayer, clock: Clock | None) -> Side:
    form = final_format(layer)
    return Side(
        layer=layer.name,
        kind=tactic_class(layer),
        tactic=(layer.tactic.name or layer.tactic.id) if layer.tactic else None,
        precision=precision(form),
        format=form,
        region=layer.region,
        eligible=layer.eligible,
        ms=_ms([layer], clock),
    )


def tactic_class(layer: TacticLayer) -> TacticClass:
    """What the layer runs: the rung decides, since it weighs all sources; the kernel's class where the rung is open."""
    known: dict[Rung, TacticClass] = {Rung.YES: "sparse", Rung.NO: "dense", Rung.DISPUTED: "unknown"}
    return known.get(layer.selected) or (layer.tactic.kind if layer.tactic else "unknown")


def final_format(layer: TacticLayer) -> str | None:
    """The format combination of the tactic that runs, where the timing tables tell."""
    if layer.tactic is None or layer.best is None:
        return None
    best = {"sparse": layer.best.sparse, "dense": layer.best.dense}.get(layer.tactic.kind)
    return best.format if best else None


def precision(form: str | None) -> str | None:
    """Type of the first tensor of a format combination.

    >>> precision("Half(38400,480:2,30,1) -> Half(19200,1:4,1200,40)")
    'fp16'
    """
    return PRECISIONS.get(form.partition("(")[0].strip()) if form else None


def _totals(build: Build, clock: Clock | None) -> Totals:
    classes = [tactic_class(layer) for layer in build.layers]
    unknown = classes.count("unknown")
    selected = None if unknown == len(classes) else classes.count("sparse")
    return Totals(layers=len(build.layers), selected=selected, unknown=unknown, ms=_ms(build.layers, clock), result=build.result)


def _by_time(change: Change) -> tuple[bool, float, str]:
    delta = change.delta_ms
    return delta is None, -abs(delta or 0.0), change.nodes[0]
