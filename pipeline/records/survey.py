"""What a machine has and what each backend could do there: the output of `sparsegate doctor`."""

from __future__ import annotations

from pipeline.records.io import Part, Record


class Need(Part, frozen=True, kw_only=True):
    """One thing that a backend needs."""

    what: str
    found: str | None = None
    """Its version or place; None: it is missing."""
    install: str = ""
    """The command that brings it, where one does."""


class BackendSurvey(Part, frozen=True, kw_only=True):
    """One backend on this machine."""

    name: str
    ready: bool
    could: str
    """What it can do here, in words."""
    needs: list[Need] = []


class Survey(Record, frozen=True, kw_only=True, tag="sparsegate.survey/1"):
    """Facts of the machine, then its backends."""

    python: str
    os: str
    cpu: str
    cores: int
    gpus: list[dict[str, str]] = []
    packages: dict[str, str] = {}
    backends: list[BackendSurvey] = []
    target: dict[str, str] = {}
    """Facts of a target that was asked over a prefix."""
