"""Whole runs on data that the tests draw: an image folder with a timm model, a model with two heads, an ONNX file."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image, ImageDraw

from pipeline.quality import Predictions
from pipeline.run import run

KINDS = ("cross", "disc", "square")
SETTINGS = [
    "measure={seconds: 0.3, warmup_seconds: 0.2, rounds: 3, block_ms: 2, layer_passes: 0}",
    "export.batch={min: 1, opt: 8, max: 16}",
]


def draw(kind, rng):
    image = Image.new("RGB", (40, 32), tuple(int(v) for v in rng.integers(0, 80, 3)))
    pen = ImageDraw.Draw(image)
    left, top, fill = int(rng.integers(6, 16)), int(rng.integers(2, 12)), tuple(int(v) for v in rng.integers(140, 255, 3))
    box = (left, top, left + 16, top + 16)
    if kind == "cross":
        pen.line(box, fill=fill, width=3)
        pen.line((left + 16, top, left, top + 16), fill=fill, width=3)
    else:
        (pen.ellipse if kind == "disc" else pen.rectangle)(box, fill=fill)
    return image


@pytest.fixture
def images(tmp_path):
    for split, count in (("train", 36), ("test", 20)):
        for number, kind in enumerate(KINDS):
            folder = tmp_path / "images" / split / kind
            folder.mkdir(parents=True)
            for i in range(count):
                draw(kind, np.random.default_rng([number, i, count])).save(folder / f"{i}.png")
    rows = [f"test,{kind}/{i}.png,{'even' if i % 2 == 0 else 'odd'}" for kind in KINDS for i in range(20)]
    rows += [f"train,{kind}/{i}.png,even" for kind in KINDS for i in range(36)]
    (tmp_path / "slices.csv").write_text("\n".join(["split,sample,parity", *rows]))
    return tmp_path


SHAPES = """\
name: shapes
seed: 1
model: {timm: test_resnet, args: {num_classes: 3}, inputs: [image]}
data: {imagefolder: images, args: {size: 32, augment: flip, select_share: 0.2}, slices: {csv: slices.csv}}
train:
  dense: {epochs: 7, batch_size: 15, lr: 0.004, optimizer: adamw}
  finetune: {epochs: 2, batch_size: 15, lr: 0.001, optimizer: adamw}
  threads: 1
gate:
  rules:
    - {kind: rungs, rung: exported, at_least: all}
    - {kind: quality, drop_at_most: 0.2}
"""


def test_an_image_folder_with_a_small_timm_model_runs_end_to_end(images):
    recipe = images / "shapes.yaml"
    recipe.write_text(SHAPES)
    evidence = run(recipe, overrides=SETTINGS, workspace=images)
    masked = [layer for layer in evidence.train.layers if layer.masked]
    assert len(masked) >= 5
    dense = {quality.split: quality.heads[0] for quality in evidence.train.dense_quality}
    assert dense["test"].n == 60 and dense["test"].value > 0.7
    assert {part.axis for part in dense["test"].slices} == {"class", "parity"}
    assert {part.name for part in dense["test"].slices if part.axis == "class"} == set(KINDS)
    assert [rule.outcome for rule in evidence.gate.rules] == ["pass", "pass"]
    by_torch = next(quality for quality in evidence.train.dense_quality if quality.split == "test")
    by_engine = evidence.measure.quality["dense"][0]
    files = (evidence.file("train", by_torch.predictions), evidence.file("measure", by_engine.predictions))
    left, right = map(Predictions.load, files)
    assert np.array_equal(left.answers["label"], right.answers["label"]), "the engine saw other images than the torch model"
    again = run(recipe, overrides=SETTINGS, workspace=images, last="train")
    assert again.run.stages[0].status == "cached"
    (images / "images" / "train" / "disc" / "0.png").write_bytes((images / "images" / "train" / "disc" / "1.png").read_bytes())
    from pipeline.recipe import load_recipe
    from pipeline.stages import train

    loaded = load_recipe(recipe, SETTINGS)
    assert train.key(loaded.sections, loaded.base)["sources"]["images"] != evidence_digest(again)


def evidence_digest(evidence):
    """The image folder's digest in the key of the stored train stage."""
    import json

    status = evidence.run.stages[0]
    output = evidence.folder.parents[2] / "engines" / "shapes" / status.folder / "output.json"
    return json.loads(output.read_text())["parts"]["sources"]["images"]


TWO_HEADS = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU())
        self.side = nn.Linear(32, 4)
        self.size = nn.Linear(32, 1)

    def forward(self, x):
        hidden = self.body(x)
        return self.side(hidden), self.size(hidden)
"""

HEADS = """\
name: heads
model: {python: 'net.py:Net', heads: [side, size]}
data: {npz: data.npz, heads: {side: accuracy, size: mae}}
train:
  dense: {epochs: 20, batch_size: 32, lr: 0.01, optimizer: adamw}
  finetune: {epochs: 10, batch_size: 32, lr: 0.005, optimizer: adamw}
  threads: 1
gate:
  rules:
    - {kind: quality, head: side, drop_at_most: 0.2}
    - {kind: quality, head: size, drop_at_most: 0.5}
    - {kind: quality, head: side, at_least: 0.999999}
"""


def arrays(count, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 16)).astype(np.float32)
    return {"x": x, "side": (x[:, 0] > 0) * 2 + (x[:, 1] > 0), "size": np.abs(x[:, :4]).sum(axis=1)[:, None]}


@pytest.fixture
def two_heads(tmp_path):
    (tmp_path / "net.py").write_text(TWO_HEADS)
    splits = {"train": arrays(512, 0), "select": arrays(64, 1), "test": arrays(256, 2)}
    np.savez(tmp_path / "data.npz", **{f"{split}_{name}": values for split, parts in splits.items() for name, values in parts.items()})
    (tmp_path / "heads.yaml").write_text(HEADS)
    return tmp_path


def test_a_model_with_two_heads_gates_each(two_heads):
    evidence = run(two_heads / "heads.yaml", overrides=SETTINGS, workspace=two_heads)
    quality = next(quality for quality in evidence.measure.quality["sparse"] if quality.split == "test")
    assert [(head.head, head.metric, head.n) for head in quality.heads] == [("side", "accuracy", 256), ("size", "mae", 256)]
    assert quality.heads[0].value > 0.85 and quality.heads[1].value < 0.6
    outcomes = {rule.id: str(rule.outcome) for rule in evidence.gate.rules}
    assert outcomes["quality:sparse/dense:side"] == outcomes["quality:sparse/dense:size"] == "pass"
    assert outcomes["quality:sparse:side"] == "fail"
    assert str(evidence.gate.outcome) == "fail"


def gemm(path, weight, data=None):
    """A model of one product; its weight lies in the file `data` beside it, where that is named."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    graph = helper.make_graph(
        [helper.make_node("Gemm", ["x", "w"], ["label"], name="fc")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", weight.shape[0]])],
        [helper.make_tensor_value_info("label", TensorProto.FLOAT, ["batch", weight.shape[1]])],
        [numpy_helper.from_array(weight, "w")],
    )
    where = {"save_as_external_data": True, "location": data, "size_threshold": 0} if data else {}
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path, **where)


@pytest.mark.parametrize(("prune", "data"), [(True, None), (False, None), (False, "m.data"), (True, "m.data")])
def test_an_onnx_file_enters_at_export_checked_or_pruned(tmp_path, prune, data):
    weight = np.random.default_rng(0).normal(size=(16, 8)).astype(np.float32)
    if not prune:
        weight[::4] = weight[1::4] = 0.0
    gemm(tmp_path / "m.onnx", weight, data)
    parts = {f"{split}_x": np.random.default_rng(i).random((32, 16)) for i, split in enumerate(("train", "select", "test"))}
    np.savez(tmp_path / "d.npz", **parts, **{f"{split}_label": np.arange(32) % 8 for split in ("train", "select", "test")})
    (tmp_path / "r.yaml").write_text(
        f"name: given\nmodel: {{onnx: m.onnx, prune: {str(prune).lower()}}}\ndata: {{npz: d.npz}}\n"
        "gate: {rules: [{kind: rungs, rung: exported, at_least: all}]}\n"
    )
    evidence = run(tmp_path / "r.yaml", overrides=SETTINGS, workspace=tmp_path)
    assert [status.stage for status in evidence.run.stages] == ["export", "build", "tactics", "measure", "gate"]
    assert str(evidence.gate.outcome) == "pass"
    (exported,) = (tmp_path / "engines" / "given").glob("export-*/sparse.onnx")
    held = {size.name: size.bytes for size in evidence.measure.sizes if size.arm == "sparse"}
    assert held["file"] == sum(path.stat().st_size for path in (exported, *exported.parent.glob("m.data")))
    assert held["file"] > 16 * 8 * 4


def test_a_model_with_a_nan_weight_is_not_released(tmp_path):
    weight = np.random.default_rng(0).normal(size=(16, 8)).astype(np.float32)
    weight[3, 2] = np.nan
    gemm(tmp_path / "m.onnx", weight)
    parts = {f"{split}_x": np.random.default_rng(i).random((32, 16)) for i, split in enumerate(("train", "select", "test"))}
    np.savez(tmp_path / "d.npz", **parts, **{f"{split}_label": np.arange(32) % 8 for split in ("train", "select", "test")})
    (tmp_path / "r.yaml").write_text(
        "name: broken\nmodel: {onnx: m.onnx, prune: true}\ndata: {npz: d.npz}\n"
        "gate: {rules: [{kind: quality, drop_at_most: 0.5}, {kind: size, size: file, at_most: 1000000}]}\n"
    )
    evidence = run(tmp_path / "r.yaml", overrides=SETTINGS, workspace=tmp_path)
    (quality,) = evidence.measure.quality["sparse"]
    assert quality.heads[0].nonfinite == 32
    assert {rule.id: str(rule.outcome) for rule in evidence.gate.rules} == {
        "quality:sparse/dense:label": "inconclusive",
        "size:sparse:file": "pass",
        "release:sparse:nonfinite-outputs": "fail",
    }
