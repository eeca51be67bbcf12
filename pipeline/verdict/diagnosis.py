"""What the records together establish: each row of `codes.DIAGNOSES` has a sign that looks for it in a run's records."""

from __future__ import annotations

from collections.abc import Callable

from pipeline import codes
from pipeline.commands import names
from pipeline.records.evidence import Evidence
from pipeline.records.verdict import Finding
from pipeline.verdict.signs import measured, selection, weights

SIGNS: dict[str, Callable[[Evidence], list[str]]] = {
    "SG501": weights.regrowth,
    "SG502": weights.other_outputs,
    "SG503": selection.sparse_twin,
    "SG504": selection.sources_disagree,
    "SG505": measured.simulated,
    "SG506": measured.control_differs,
    "SG507": measured.slice_degrades,
    "SG508": weights.unstructured,
    "SG509": weights.unsupported,
    "SG510": selection.lines_hidden,
    "SG511": selection.dense_selected,
    "SG512": selection.quantised_dense,
    "SG513": selection.few_channels,
    "SG514": selection.cache_hides,
    "SG515": selection.more_than_the_flag,
    "SG516": measured.not_the_tuned_shape,
    "SG517": measured.layer_gain_lost,
    "SG518": measured.within_build_spread,
    "SG519": weights.unchanged_size,
    "SG520": selection.no_sparse_kernels,
}
"""By diagnosis: evidence for it in the records, one line each that names the record; empty where there is none."""


def diagnose(evidence: Evidence) -> list[Finding]:
    """The rows that apply, gravest first, each with its evidence and the next command."""
    return [_finding(row, found, evidence) for row in codes.DIAGNOSES if (found := SIGNS[row.id](evidence))]


def with_commands(findings: list[Finding], evidence: Evidence) -> list[Finding]:
    """Findings as a gate's record holds them, whose commands name no run: the record is shared by runs that found the same."""
    rows = {row.id: row for row in codes.DIAGNOSES}
    return [_finding(rows[item.id], item.evidence, evidence) if item.id in rows else item for item in findings]


def _finding(row: codes.Code, found: list[str], evidence: Evidence) -> Finding:
    return Finding(id=row.id, observation=row.title, establishes=row.text, next=row.next.format(**names(evidence)), evidence=found)
