"""The report says by which criterion and on what data masks were chosen, what they keep, and what permutation brought."""

from __future__ import annotations

from pipeline.records.artifact import Artifact
from pipeline.records.checkpoint import CalibrationSet, Checkpoint, LayerDecision
from pipeline.records.evidence import Evidence
from pipeline.records.layers import WeightedLayer
from pipeline.records.permutation import PermutationReport, PermutedLayer
from pipeline.report.markdown import run_markdown
from pipeline.report.terminal import run_text


def checkpoint(**more):
    conv, head = (WeightedLayer(id=name, weight=f"{name}.weight", kind="Linear") for name in ("fc|1", "head"))
    file = Artifact(path="x", sha256="0", size_bytes=1)
    layers = [
        LayerDecision(
            layer=conv, masked=True, rule="SG301", text="", proposed_by="sparsegate", criterion="wanda", kept_magnitude=0.7125,
            output_error=0.0325, magnitude_error=0.05,
        ),
        LayerDecision(layer=head, masked=False, rule="SG302", text="excluded"),
    ]  # fmt: skip
    return Checkpoint(dense=file, weights=file, masks=file, mask_digest="d", layers=layers, **more)


def permutation(difference):
    layer = PermutedLayer(
        layer=WeightedLayer(id="fc|1", kind="Linear"), outcome="permuted", rule="SG321", text="12 of 16 input channels moved"
    )
    return PermutationReport(layers=[layer], seconds=2.0, seed=0, difference=difference, precision="float64" if difference else None)


def test_the_markdown_has_a_row_for_each_masked_layer_with_its_errors_and_order():
    found = run_markdown(
        Evidence(train=checkpoint(calibration=CalibrationSet(digest="ab" * 32, samples=512), permutation=permutation(2e-15)))
    )
    section = found[found.index("## Masks") :]
    assert "masks by wanda; calibrated on 512 samples (abababababab)" in section
    assert "outputs differ by 2e-15 of the largest, in float64" in section
    row = next(line for line in section.splitlines() if line.startswith("| fc"))
    assert "fc\\|1" in row
    for text in ("71.25%", "3.25%", "5%", "permuted (SG321): 12 of 16 input channels moved"):
        assert text in row
    assert "head" not in section


def test_the_terminal_says_more_than_magnitude_only_where_there_is_more():
    assert "masks by" not in run_text(Evidence(train=checkpoint()))
    assert "no channels permuted" in run_text(Evidence(train=checkpoint(permutation=permutation(None))))


def test_a_run_without_masks_has_no_section():
    file = Artifact(path="x", sha256="0", size_bytes=1)
    assert "## Masks" not in run_markdown(Evidence(train=Checkpoint(dense=file, weights=file, masks=file, mask_digest="d", layers=[])))
