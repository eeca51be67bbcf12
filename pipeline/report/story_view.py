"""One layer's story on one screen, and as Markdown."""

from __future__ import annotations

from pipeline.records.check import CheckedLayer, Outcome
from pipeline.records.rung import Rung
from pipeline.records.story import LayerStory, StoryTime
from pipeline.records.tactics import TacticLayer
from pipeline.report.ladder_view import MARKS, place
from pipeline.report.table import columns, md, md_table
from pipeline.report.words import count, number, page, safe, wrapped

RUNG_WIDTH = 18
"""Room for `7 faster-layer`."""


def story_text(story: LayerStory, width: int = 80) -> str:
    """The layer, its rungs from weights to request, the facts behind them, what to do next."""
    lines = wrapped(f"{_title(story)}  ({story.run})", width)
    lines += [line for text in _weights(story) for line in wrapped(text, width)]
    lines.append("")
    lines += _rung_lines(story, width)
    for title, texts in _facts(story).items():
        for text in texts:
            lines += wrapped(text, width, first=f"{title:<8}", rest=" " * 10)
    return "\n".join([*lines, "", *wrapped(f"next: {story.next}", width)]) + "\n"


def _rung_lines(story: LayerStory, width: int) -> list[str]:
    """One line per rung where it fits; runs of rungs that are not applicable for one reason share a line."""
    lines: list[str] = []
    shared: tuple[Rung, str] | None = None
    for item in story.rungs:
        where = "" if item.of == story.ladder.of else f"{item.of}: "
        same = shared == (item.holds, item.text) and item.holds is Rung.NOT_APPLICABLE
        text = "as above" if same else f"{where}{item.text}"
        shared = (item.holds, item.text)
        head = f"{place(item.step):<{RUNG_WIDTH}}{MARKS[item.holds]:<4}"
        lines += wrapped(text or "-", width, first=head, rest=" " * len(head))
    return lines


def story_markdown(story: LayerStory) -> str:
    """The same as Markdown."""
    rows = [[item.of, place(item.step), MARKS[item.holds], item.text] for item in story.rungs]
    facts = [f"- {title}: {md(text)}" for title, texts in _facts(story).items() for text in texts]
    blocks = [
        [f"# {md(_title(story))}", "", md(story.run)],
        [f"- {md(text)}" for text in _weights(story)],
        md_table(columns("of", "rung", "holds", "because"), rows),
        facts,
        [f"**Next:** {md(story.next)}"],
    ]
    return page(blocks)


def _title(story: LayerStory) -> str:
    layer = story.layer
    return f"{layer.id}: {layer.kind} {layer.shape}" + (f", {count(layer.groups, 'group')}" if layer.groups > 1 else "")


def _weights(story: LayerStory) -> list[str]:
    """What was decided and done about the weight."""
    facts = [f"criterion {story.criterion}" if story.criterion else "", f"proposed by {story.proposed_by}" if story.proposed_by else ""]
    if story.kept_magnitude is not None:
        facts.append(f"keeps {number(story.kept_magnitude)} of the absolute weight")
    if story.zero_fraction is not None:
        facts.append(f"zeros {number(story.zero_fraction)} of the frozen weight")
    text = ", ".join(fact for fact in facts if fact)
    return [part for part in (story.decision, text) if part]


def _facts(story: LayerStory) -> dict[str, list[str]]:
    """What the ONNX file, the engine and the profile say, by where it stands."""
    return {
        "onnx": [_checked(item) for item in story.checked],
        "engine": [_engine(item) for item in story.engine],
        "time": [
            f"at {shape} of all profiled layers: " + "; ".join(_time(item) for item in story.times if item.shape == shape)
            for shape in dict.fromkeys(item.shape for item in story.times)
        ],
    }


def _checked(item: CheckedLayer) -> str:
    """What its operator reads, and the rules that are not met; of open ones and predictions the ids, for one screen."""
    violating = f" ({count(item.groups_violating, 'group')} of 4 violate it)" if item.groups_violating else ""
    pattern = {True: "2:4", False: f"not 2:4{violating}", None: "not a constant"}[item.two_four]
    dtype = f"{item.quantized} > {item.dtype}" if item.quantized else item.dtype
    head = f"{item.node} ({item.op}, operand {item.operand}): {dtype} {item.shape}, axis {item.axis}, {pattern}"
    parts = [head, f"zeros {number(item.zero_fraction)}"]
    parts += [f"{rule.id} fails: {rule.text}" for rule in item.rules if rule.outcome is Outcome.FAIL]
    for outcome, word in ((Outcome.UNKNOWN, "unknown"), (Outcome.HINT, "hints")):
        ids = [rule.id for rule in item.rules if rule.outcome is outcome]
        parts += [f"{word}: {', '.join(ids)}"] if ids else []
    return "; ".join(parts)


def _engine(item: TacticLayer) -> str:
    parts = [f"{item.name}:"]
    if item.tactic:
        parts.append(f"runs {item.tactic.kind} {item.tactic.name or item.tactic.id} ({item.tactic.how});")
    if item.best:
        for kind, best in (("sparse", item.best.sparse), ("dense", item.best.dense)):
            parts.append(f"best {kind} {number(best.ms, 'ms')};" if best else f"no {kind} tactic timed;")
        parts.append("" if item.best.comparable else "not of one format combination, so not comparable;")
    if item.candidates:
        parts.append(f"timed {item.candidates.sparse} sparse, {item.candidates.dense} dense, {item.candidates.unknown} unknown tactics;")
    return safe(" ".join(part for part in parts if part).rstrip(";"))


def _time(item: StoryTime) -> str:
    return f"{item.arm} {number(item.ms)} of {number(item.engine_ms, 'ms')}, share {number(item.share)}"
