"""Printers: terminal text and Markdown. They render records and compute nothing.

The doors below load on first use; importing this package imports nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeline.report.data import run_report
    from pipeline.report.markdown import run_markdown
    from pipeline.report.terminal import run_text

__all__ = ["run_markdown", "run_report", "run_text"]

_DOORS = {"run_report": "pipeline.report.data", "run_text": "pipeline.report.terminal", "run_markdown": "pipeline.report.markdown"}


def __getattr__(name: str) -> Any:
    if name not in _DOORS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_DOORS[name]), name)
