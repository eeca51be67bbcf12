"""A bundle reads on a machine without a GPU as it did where it was made (here: with the stand-in trtexec), and a changed one does not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "builders"))
from builder_cases import mlp, request
from bundle import keep, reread

from pipeline.builders import backend

STANDIN = Path(__file__).parents[1] / "builders" / "standin" / "trtexec.py"


@pytest.fixture
def bundle(tmp_path, monkeypatch):
    monkeypatch.setenv("STANDIN_VERSION", "10.3.0")
    program = tmp_path / "trtexec"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{STANDIN}" "$@"\n')
    program.chmod(0o755)
    made = backend("trtexec", {"trtexec": str(program)})
    model = mlp(tmp_path / "m.onnx")
    engines = [made.build(request(model, arm), tmp_path / "out") for arm in ("sparse", "twin")]
    keep(tmp_path / "out", tmp_path / "bundle", engines, "trtexec")
    return tmp_path / "bundle"


def test_a_bundle_reads_again_as_it_did(bundle):
    assert reread(bundle) == []
    assert not list(bundle.glob("*.plan"))


def test_a_changed_log_is_noticed(bundle):
    log = bundle / "sparse.log"
    log.write_text(log.read_text().replace("head/fc2", "head/other"))
    (bundle / "sparse.layers.json").write_text((bundle / "sparse.layers.json").read_text().replace("head/fc2", "head/other"))
    assert any("sparse: eligible was" in line for line in reread(bundle))
