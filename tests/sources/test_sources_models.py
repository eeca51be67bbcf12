from __future__ import annotations

import numpy as np
import pytest
import torch

from pipeline.errors import InputError
from pipeline.sources import model_source, save_state

MODEL = "import torch\nfrom blocks import width\ndef build(n=3):\n    return torch.nn.Linear(width(), n)\nclass NotAModule: pass\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "m.py").write_text(MODEL)
    (tmp_path / "empty.onnx").touch()
    (tmp_path / "blocks.py").write_text("def width():\n    return 4\n")
    return tmp_path


def test_a_python_model_is_built_from_a_file_with_modules_beside_it(folder):
    model = model_source({"python": "m.py:build", "args": {"n": 5}}, folder).make(0)
    assert model.weight.shape == (5, 4)


def test_initialisation_depends_on_the_seed_alone(folder):
    source = model_source({"python": "m.py:build"}, folder)
    torch.manual_seed(1)
    before = torch.get_rng_state()
    one = source.make(3).weight
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(99)
    np.random.seed(5)
    assert torch.equal(source.make(3).weight, one)
    assert not torch.equal(source.make(4).weight, one)


def test_names_of_inputs_and_heads_are_passed_on(folder):
    source = model_source({"python": "m.py:build", "inputs": ["a", "b"], "heads": ["p", "q"]}, folder)
    assert (source.input_names, source.heads, source.trained, source.onnx) == (("a", "b"), ("p", "q"), False, None)


def test_a_checkpoint_is_put_into_every_new_model(folder):
    state = {"weight": torch.full((3, 4), 2.0), "bias": torch.zeros(3)}
    save_state(folder / "w.safetensors", state)
    source = model_source({"python": "m.py:build", "checkpoint": "w.safetensors"}, folder)
    assert source.trained and torch.equal(source.build().weight, state["weight"])


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({}, "give one of"),
        ({"python": "none.py:build"}, "there is no file"),
        ({"python": "m.py:biuld"}, "no callable 'biuld'"),
        ({"python": "m.py:NotAModule"}, "expected a torch.nn.Module, got NotAModule"),
        ({"python": "m.py:build", "args": {"width": 3}}, "unexpected keyword argument 'width'"),
        ({"python": "no_such_package.models:build"}, "No module named 'no_such_package'"),
        ({"python": "m.py:build", "checkpoint": "none.pt"}, "there is no checkpoint"),
        ({"timm": "resnet19"}, "timm has no model 'resnet19'"),
        ({"torchvision": "vit_b_17"}, "did you mean vit_b_16"),
        ({"torchvision": "resnet18", "args": {"nonsense": 1}}, "cannot make resnet18 with these args"),
        ({"onnx": "none.onnx"}, "there is no ONNX file"),
        ({"onnx": "empty.onnx"}, "the ONNX file is empty"),
    ],
)
def test_what_cannot_be_built_is_one_clear_error(folder, section, message):
    with pytest.raises(InputError, match=message):
        model_source(section, folder).build()


def test_an_error_in_the_users_code_names_its_line(folder):
    (folder / "m.py").write_text("def build():\n    x = 1\n    raise RuntimeError('no weights')\n")
    with pytest.raises(InputError, match="RuntimeError: no weights") as caught:
        model_source({"python": "m.py:build"}, folder).build()
    assert caught.value.where == f"{folder}/m.py:3"
    (folder / "m.py").write_text("def build(:\n")
    with pytest.raises(InputError, match="SyntaxError") as caught:
        model_source({"python": "m.py:build"}, folder).build()
    assert caught.value.where == f"{folder}/m.py:1"


def test_an_onnx_model_enters_at_export_and_has_no_module(tmp_path):
    (tmp_path / "m.onnx").write_bytes(b"x")
    source = model_source({"onnx": "m.onnx"}, tmp_path)
    assert source.onnx == tmp_path / "m.onnx"
    with pytest.raises(InputError, match="enters the chain at export"):
        source.build()


def test_a_timm_and_a_torchvision_model_are_built_with_args(tmp_path):
    assert model_source({"timm": "test_resnet", "args": {"num_classes": 5}}, tmp_path).make(0)(torch.ones(2, 3, 32, 32)).shape == (2, 5)
    assert model_source({"torchvision": "squeezenet1_1", "args": {"num_classes": 5}}, tmp_path).make(0).num_classes == 5
