"""What `bench` found: ratios over the first arm, absolute times, and what they were taken under; as text and as Markdown."""

from __future__ import annotations

from pipeline.records.measurement import Measurement
from pipeline.report import run_rows as rows
from pipeline.report.table import md, md_table, text_table
from pipeline.report.words import page, wrapped


def render(measured: Measurement, width: int = 80) -> str:
    """Plain text of at most `width` columns."""
    blocks = [
        text_table(rows.RATIOS, rows.ratio_rows(measured), width),
        text_table(rows.TIMES, rows.time_rows(measured), width),
        [line for text in conditions(measured) for line in wrapped(text, width)],
    ]
    return page(blocks)


def render_md(measured: Measurement) -> str:
    """GitHub Markdown."""
    blocks = [
        md_table(rows.RATIOS, rows.ratio_rows(measured)),
        md_table(rows.TIMES, rows.time_rows(measured)),
        [f"- {md(text)}" for text in conditions(measured)],
    ]
    return page(blocks)


def conditions(measured: Measurement) -> list[str]:
    """Backend, device and settings, and what speaks against the times."""
    found = measured.conditions
    settings = ", ".join(f"{name} {value}" for name, value in sorted(found.settings.items()))
    controls = [r for r in measured.ratios if r.control and r.ratio.low is not None and r.ratio.high is not None]
    apart = [r for r in controls if not (r.ratio.low or 0) <= 1 <= (r.ratio.high or 0)]
    return [
        f"measured with {found.backend} on {found.device}: {settings}",
        *[f"do not trust this: {r.arm} over {r.over} ({r.quantile}, {r.shape}) leaves out 1, and both are the same plan" for r in apart],
        *rows.conditions(measured),
    ]
