"""A run says at most how much faster NVIDIA GPUs could be, from the exported shapes."""

from __future__ import annotations

from pipeline import api, report


def test_the_records_bound_is_that_of_the_command(quickstart_run):
    exported = quickstart_run.evidence.export
    asked = api.estimate(quickstart_run.stage_folder("export") / "sparse.onnx", batch=exported.batch["opt"])
    assert exported.estimate.gpus == asked.gpus
    assert exported.estimate.layers == asked.layers
    assert {bound.mathematics >= 1 for bound in asked.gpus} == {True}


def test_the_report_says_at_most_and_names_the_shapes(quickstart_run):
    evidence = api.judged(quickstart_run.folder)
    best = max(bound.mathematics for bound in evidence.export.estimate.gpus)
    for text in (report.run_text(evidence), report.run_markdown(evidence)):
        flat = " ".join(text.split())
        assert "on an NVIDIA GPU at most" in flat.replace("\\", "")
        assert f"{best:.4g}x" in flat
        assert "=32x1x8x8" in flat
