"""A verdict as JUnit XML: one test case per rule, so that any CI shows which budget broke.

A failing rule is a `failure`. An inconclusive one is an `error`: CI systems show `skipped` as green, and nothing was shown to hold.
"""

from __future__ import annotations

from xml.etree import ElementTree

from pipeline.records.verdict import JudgedRule, RuleResult, Verdict
from pipeline.report.verdict_rows import numbers, reasons
from pipeline.report.words import safe


def render(verdict: Verdict, name: str = "sparsegate") -> str:
    """The document as text.

    Args:
        verdict: What to render.
        name: Of the test suite, such as the recipe's name.
    """
    failures = sum(rule.outcome is RuleResult.FAIL for rule in verdict.rules)
    errors = sum(rule.outcome is RuleResult.INCONCLUSIVE for rule in verdict.rules)
    totals = {"tests": str(len(verdict.rules)), "failures": str(failures), "errors": str(errors)}
    root = ElementTree.Element("testsuites", {"name": safe(name), **totals})
    suite = ElementTree.SubElement(root, "testsuite", {"name": safe(name), **totals, "skipped": "0", "time": "0"})
    for rule in verdict.rules:
        _case(suite, rule)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _case(suite: ElementTree.Element, rule: JudgedRule) -> None:
    case = ElementTree.SubElement(suite, "testcase", {"classname": f"sparsegate.{safe(rule.kind)}", "name": safe(rule.id), "time": "0"})
    body = "\n".join([safe(rule.text), numbers(rule), *(f"{label}: {safe(text)}" for label, text in reasons(rule))])
    if rule.outcome is RuleResult.FAIL:
        ElementTree.SubElement(case, "failure", {"type": "budget", "message": safe(rule.why)}).text = body
    elif rule.outcome is RuleResult.INCONCLUSIVE:
        ElementTree.SubElement(case, "error", {"type": "inconclusive", "message": safe(rule.why)}).text = body
    else:
        ElementTree.SubElement(case, "system-out").text = body
