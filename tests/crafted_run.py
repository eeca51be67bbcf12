"""Small records made by hand: a run of three layers, one of them dense by decision, on TensorRT or on ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from pipeline.records import io
from pipeline.records.arms import ExportedLayer, OnnxArms, Parity
from pipeline.records.artifact import Artifact
from pipeline.records.checkpoint import Checkpoint, LayerDecision
from pipeline.records.engines import Engine, Engines
from pipeline.records.evidence import RECORD_OF_STAGE, Evidence
from pipeline.records.frozen import FrozenLayer, FrozenModel
from pipeline.records.layers import WeightedLayer
from pipeline.records.measurement import Conditions, Estimate, LayerTime, Measurement, Ratio, Size, Timing
from pipeline.records.quality import HeadQuality, Quality, Slice
from pipeline.records.run import Provenance, Run, StageStatus
from pipeline.records.rung import Rung
from pipeline.records.tactics import Best, BestTime, Build, Candidates, Pass, Reason, Source, Tactic, TacticLayer, TacticReport
from pipeline.records.tactics import Evidence as Said

YES, NO, UNKNOWN, DISPUTED, NA = Rung.YES, Rung.NO, Rung.UNKNOWN, Rung.DISPUTED, Rung.NOT_APPLICABLE
SPARSE_KERNEL = "sm80_xmma_fprop_sparse_conv_f16f16_tn_n"
DENSE_KERNEL = "sm80_xmma_fprop_implicit_gemm_f16f16_tn_n"


def layer(name: str, shape: tuple[int, ...] = (256, 256, 3, 3), kind: str = "Conv2d") -> WeightedLayer:
    return WeightedLayer(id=name, modules=[name], weight=f"{name}.weight", shape=list(shape), kind=kind, onnx_nodes=[f"/{name}/Conv"])


STEM, BODY, TAIL = layer("stem", (16, 1, 3, 3)), layer("body"), layer("tail", (512, 256), "Linear")


def artifact(path: str = "model.onnx") -> Artifact:
    return Artifact(path=path, sha256="0" * 64, size_bytes=1000)


def checkpoint() -> Checkpoint:
    def decided(item: WeightedLayer) -> LayerDecision:
        return LayerDecision(layer=item, masked=True, rule="SG301", text="2:4 along input channels", criterion="magnitude", proof=YES)

    stem = LayerDecision(layer=STEM, masked=False, rule="SG303", text="1 input channel is no multiple of 4", proof=NA)
    return Checkpoint(dense=artifact(), weights=artifact(), masks=artifact(), mask_digest="ab", layers=[stem, decided(BODY), decided(TAIL)])


def frozen(**changes: object) -> FrozenModel:
    layers = [FrozenLayer(layer=item, proof=YES, zero_fraction=0.5, text="all groups hold 2 zeros") for item in (BODY, TAIL)]
    record = FrozenModel(sparse=artifact(), dense=artifact(), mask_digest="ab", weights_digest="cd", layers=layers, max_difference=0.0)
    return replace(record, **changes)


def exported(**changes: object) -> OnnxArms:
    layers = [
        ExportedLayer(layer=STEM, proof=NO, text="Conv reads 1 channel"),
        ExportedLayer(layer=BODY, proof=YES, text="Conv reads it 2:4 along axis 1"),
        ExportedLayer(layer=TAIL, proof=YES, text="Gemm reads it 2:4 along axis 1"),
    ]
    parity = [Parity(arm="sparse", batch=32, max_abs=1e-6, max_rel=1e-5, agreement=1.0, rows_identical=True, repeatable=True, passed=True)]
    return replace(OnnxArms(arms=[], layers=layers, parity=parity, batch={"min": 1, "opt": 32, "max": 64}), **changes)


def engines(*, backend: str = "tensorrt", sparse_kernels: bool | None = True, repeats: int = 1) -> Engines:
    made = [
        Engine(arm=arm, repeat=repeat, onnx_arm="dense" if arm == "dense" else "sparse", plan=artifact(f"{arm}.{repeat}.plan"))
        for arm in ("sparse", "twin", "dense")
        for repeat in range(1, repeats + 1)
    ]
    profiles = [{"x": {"min": [1, 256], "opt": [32, 256], "max": [64, 256]}}]
    return Engines(backend=backend, sparse_kernels=sparse_kernels, engines=made, profiles=profiles)


def engine_layer(item: WeightedLayer, *, eligible: Rung = YES, timed: Rung = YES, selected: Rung = YES, **more: object) -> TacticLayer:
    name = f"{item.onnx_nodes[0]} + {item.id}/Relu"
    kernel = SPARSE_KERNEL if selected is YES else DENSE_KERNEL
    base = TacticLayer(
        id=name,
        name=name,
        region="cask",
        parts=name.split(" + "),
        onnx_nodes=name.split(" + "),
        eligible=eligible,
        timed=timed,
        selected=selected,
        tactic=Tactic(name=kernel, kind="sparse" if selected is YES else "dense", id="0x01", runner="CaskConvolution", how="engine-dump"),
        candidates=Candidates(sparse=2, dense=5, unknown=0),
        evidence=[Said(rung="eligible", says="Found names it", source=0, line=12, kind="summary")],
    )
    return replace(base, **more)


def dense_won(item: WeightedLayer = TAIL) -> TacticLayer:
    return engine_layer(
        item,
        selected=NO,
        best=Best(sparse=BestTime(ms=0.051, format="Half"), dense=BestTime(ms=0.043, format="Half"), comparable=True),
        reasons=[Reason(code="dense-faster", text="sparse 0.051 ms, dense 0.043 ms")],
    )


def build(arm: str | None = "sparse", *layers: TacticLayer, number: int = 0, **more: object) -> Build:
    flag = arm not in ("twin", "dense")
    never = {"eligible": UNKNOWN, "timed": UNKNOWN, "selected": NO}
    found = list(layers) or ([engine_layer(BODY), dense_won()] if flag else [engine_layer(BODY, **never), engine_layer(TAIL, **never)])
    base = Build(
        id=number,
        arm=arm,
        sources=[0],
        result="passed",
        tensorrt="10.3.0",
        log_level_seen="verbose",
        sparsity="enabled" if flag else "disabled",
        eligible=[item.name for item in found if item.eligible is YES],
        selected=[item.name for item in found if item.selected is YES],
        layers=found,
        passes=[Pass(line=12, eligible_declared=len(found), eligible=[item.name for item in found])],
    )
    return replace(base, **more)


def tactic_report(*builds: Build) -> TacticReport:
    return TacticReport(
        sources=[Source(path="build.log", sha256=None, kind="log", producer="trtexec")],
        builds=list(builds) or [build(), build("twin", number=1), build("dense", number=2)],
    )


def ratio(value: float, low: float, high: float, *, arm: str = "sparse", over: str = "dense", **more: object) -> Ratio:
    found = Estimate(value=value, low=low, high=high, confidence=0.95, n=20)
    base = Ratio(arm=arm, over=over, shape="batch=32", metric="gpu_compute", quantile="p50", ratio=found)
    return replace(base, **more)


def timing(arm: str, value: float, **more: object) -> Timing:
    found = Estimate(value=value, low=value * 0.98, high=value * 1.02, confidence=0.95, n=20)
    base = Timing(
        arm=arm, shape="batch=32", inputs={"x": [32, 256]}, metric="gpu_compute", samples=400, rounds=20, quantiles={"p50": found}
    )
    return replace(base, **more)


def layer_time(arm: str, item: WeightedLayer, *passes: float) -> LayerTime:
    name = f"{item.onnx_nodes[0]} + {item.id}/Relu"
    return LayerTime(arm=arm, shape="batch=32", layer=name, onnx_nodes=name.split(" + "), passes_ms=list(passes))


def quality(arm: str, value: float, slices: dict[str, float], backend: str = "tensorrt") -> Quality:
    parts = [Slice(axis="class", name=name, value=found, n=40) for name, found in slices.items()]
    return Quality(split="test", backend=backend, heads=[HeadQuality(head="label", metric="accuracy", value=value, n=400, slices=parts)])


def measurement(**changes: object) -> Measurement:
    record = Measurement(
        samples=None,
        timings=[timing("sparse", 0.90), timing("twin", 0.99), timing("dense", 1.0)],
        ratios=[ratio(0.9, 0.88, 0.93), ratio(0.91, 0.89, 0.94, over="twin")],
        layers=[
            layer_time("sparse", BODY, 0.30, 0.31, 0.30, 0.31, 0.30),
            layer_time("dense", BODY, 0.40, 0.41, 0.40, 0.41, 0.40),
            layer_time("sparse", TAIL, 0.20, 0.21, 0.20, 0.21, 0.20),
            layer_time("dense", TAIL, 0.20, 0.21, 0.20, 0.21, 0.20),
        ],
        quality={
            "dense": [quality("dense", 0.975, {"3": 0.95, "8": 0.975})],
            "sparse": [quality("sparse", 0.9725, {"3": 0.95, "8": 0.975})],
        },
        sizes=[
            Size(arm="sparse", name="file", bytes=4321, question="what is copied to the device"),
            Size(arm="dense", name="file", bytes=4321, question="what is copied to the device"),
        ],
        conditions=Conditions(backend="tensorrt", device="NVIDIA A30"),
        stopped="decided",
    )
    return replace(record, **changes)


def run(**changes: object) -> Run:
    record = Run(
        id="20261130-101112-abcd",
        recipe="crafted",
        recipe_path="recipes/crafted.yaml",
        recipe_text="",
        recipe_digest="0" * 64,
        started="2026-11-30T10:11:12Z",
        result="pass",
        provenance=Provenance(sparsegate="0.1.0", python="3.11", os="Linux", cpu="x", cores=2, tensorrt="10.3.0"),
        stages=[StageStatus(stage="train", status="ok")],
    )
    return replace(record, **changes)


def evidence(**changes: object) -> Evidence:
    """A whole run on TensorRT: `body` went sparse and is faster, in `tail` a dense tactic won, `stem` is dense by decision."""
    record = Evidence(
        run=run(),
        train=checkpoint(),
        freeze=frozen(),
        export=exported(),
        build=engines(),
        tactics=tactic_report(),
        measure=measurement(),
    )
    return replace(record, **changes)


def on_onnxruntime() -> Evidence:
    """The same run on a backend without sparse kernels."""
    return evidence(
        build=replace(engines(backend="onnxruntime", sparse_kernels=False), controls=[["sparse", "twin"]]),
        tactics=TacticReport(applicable=False, why_not="onnxruntime has no sparse kernels"),
        measure=measurement(
            ratios=[ratio(1.01, 0.98, 1.04), ratio(1.0, 0.98, 1.02, over="twin", control=True)],
            conditions=Conditions(backend="onnxruntime", device="cpu"),
        ),
    )


def write_run(folder: Path, evidence: Evidence) -> Path:
    """Write the records as a run's folder; gives the folder."""
    assert evidence.run is not None
    io.write(folder / "run.json", evidence.run)
    for stage in RECORD_OF_STAGE:
        if (record := getattr(evidence, stage)) is not None:
            io.write(folder / "records" / f"{stage}.json", record)
    return folder
