"""Upper bounds of the gain, as text and as Markdown: they say "at most"."""

from __future__ import annotations

from pipeline.records.estimate import EstimateReport, GpuBound, LayerWork, ProfileBound
from pipeline.records.rung import Rung
from pipeline.report.table import Column, columns, md, md_table, text_table
from pipeline.report.words import count, number, page, wrapped

LAYERS = columns("@layer", "op", ">GFLOP", ">MB", ">FLOP/byte", "could be eligible")
GPUS = columns("~GPU", "SM", ">by arithmetic", ">with traffic", ">share", ">memory-bound")
SOURCES = columns("kernels", "peaks", "source")
COULD = {Rung.YES: "yes", Rung.NO: "no", Rung.UNKNOWN: "unknown"}
SHOWN = 20
"""So many layers on the terminal, the heaviest; Markdown and JSON have all."""


def estimate_text(report: EstimateReport, width: int = 80) -> str:
    """The answer, bounds by GPU, the heaviest layers, what is assumed, what to do next."""
    heavy = sorted(report.layers, key=lambda layer: -layer.flops)[:SHOWN]
    lines = [line for text in _answer(report) for line in wrapped(text, width)]
    if report.gpus:
        lines += ["", "At most (peaks and their sources: --format md)"]
        lines += text_table(GPUS, [_gpu(bound, report) for bound in report.gpus], width)
    lines += ["", *text_table(LAYERS, [_layer(layer) for layer in heavy], width)]
    lines += [f"... {count(len(report.layers) - SHOWN, 'lighter layer')}: --format md or json"] if len(report.layers) > SHOWN else []
    lines += [line for text in _why(report) for line in wrapped(text, width)]
    lines += ["", *(line for note in report.notes for line in wrapped(f"note: {note}", width))]
    return "\n".join([*lines, "", *wrapped(f"next: {report.next}", width)]) + "\n"


def estimate_markdown(report: EstimateReport) -> str:
    """The same with every layer and the GPUs' sources."""
    blocks = [
        ["# At most how much faster?"],
        [f"- {md(text)}" for text in _answer(report)],
        md_table([*GPUS, *SOURCES], [[*_gpu(bound, report), *_source(bound)] for bound in report.gpus]),
        md_table([*LAYERS, Column("why")], [[*_layer(layer), layer.why] for layer in report.layers]),
        [f"- {md(note)}" for note in report.notes],
        [f"**Next:** {md(report.next)}"],
    ]
    return page(blocks)


def gpu_table(report: EstimateReport) -> list[str]:
    """Bounds by GPU as a Markdown table."""
    return md_table(GPUS, [_gpu(bound, report) for bound in report.gpus])


def estimate_sentence(report: EstimateReport) -> str:
    """For a run's report: the bound and what it is of."""
    of, at_most = _answer(report)[0], _answer(report)[-1]
    return f"on an NVIDIA GPU {at_most}: {of}"


def _answer(report: EstimateReport) -> list[str]:
    shapes = ", ".join(f"{name}={'x'.join(map(str, shape))}" for name, shape in report.shapes.items())
    lines = [f"{report.model} at {shapes or 'fixed shapes'}, counted in {report.dtype}"]
    lines += [profile_text(report.profile)] if report.profile else []
    if report.gpus:
        best = max(report.gpus, key=lambda bound: bound.mathematics)
        lines.append(
            f"at most {number(best.mathematics, 'x')} by arithmetic alone, at most {number(best.traffic, 'x')} with memory traffic "
            f"({best.gpu}{f', the best of {len(report.gpus)} GPUs' if len(report.gpus) > 1 else ''})"
        )
    return lines


def profile_text(found: ProfileBound) -> str:
    """`at most 1.176x (1.429x if they took no time at all): 6 of 20 ms are in ...`."""
    free = f" ({number(found.ceiling, 'x')} if they took no time at all)" if found.ceiling is not None else ""
    share = f"{number(found.eligible_ms)} of {number(found.total_ms, 'ms')} in {found.source} are in layers that could go sparse"
    return f"at most {number(found.at_most, 'x')}{free}: {share}, each at most {number(found.ratio, 'x')} faster"


def _gpu(bound: GpuBound, report: EstimateReport) -> list[str]:
    figures = [number(bound.mathematics, "x"), number(bound.traffic, "x"), number(bound.share)]
    return [bound.gpu, bound.sm, *figures, f"{bound.memory_bound} of {len(report.layers)}"]


def _source(bound: GpuBound) -> list[str]:
    peaks = f"{number(bound.dense_tops)} dense, {number(bound.sparse_tops)} sparse TOPS; {number(bound.gb_per_s)} GB/s"
    return [bound.kind, peaks, bound.source]


def _layer(layer: LayerWork) -> list[str]:
    figures = [number(layer.flops / 1e9), number(layer.total_bytes / 1e6), number(layer.intensity)]
    return [layer.node, layer.op, *figures, COULD[layer.could]]


def _why(report: EstimateReport) -> list[str]:
    """Reasons that keep layers out, once each."""
    found: dict[str, int] = {}
    for layer in report.layers:
        if layer.could is Rung.NO:
            found[layer.why] = found.get(layer.why, 0) + 1
    return [f"{count(many, 'layer')} could not: {why}" for why, many in found.items()]
