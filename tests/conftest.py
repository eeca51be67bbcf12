"""Fixtures shared by all tests."""

from __future__ import annotations

import os

os.environ.setdefault("POLYGRAPHY_AUTOINSTALL_DEPS", "0")
