"""Tests that need a GPU skip where there is none, and say what is missing."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from pipeline import machine

PACKAGES = ("tensorrt", "polygraphy", "pycuda")


def missing() -> str | None:
    """What keeps the GPU tests from running on this machine."""
    if not machine.gpus():
        return "no NVIDIA GPU that NVML can see"
    absent = [package for package in PACKAGES if find_spec(package) is None]
    return f"not installed: {', '.join(absent)} (see docs/tensorrt.md)" if absent else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = missing()
    for item in items:
        if reason and item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason=reason))
