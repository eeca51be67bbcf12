from __future__ import annotations

import pickle

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.errors import ExitCode, InputError
from pipeline.sources import load_into, load_state, save_state

STATE = {"b.weight": torch.arange(12.0).reshape(3, 4), "a.mask": torch.tensor([True, False]), "n": torch.tensor(3)}


def same(left, right):
    return left.keys() == right.keys() and all(torch.equal(left[key], right[key]) and left[key].dtype == right[key].dtype for key in left)


def test_a_state_comes_back_as_it_was_saved(tmp_path):
    path = save_state(tmp_path / "deep" / "s.safetensors", STATE)
    assert same(load_state(path), STATE)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int8, torch.bool])
def test_every_type_keeps_its_bits(tmp_path, dtype):
    state = {"w": torch.tensor([[0.0, -0.0, 1.0, 2.0]]).to(dtype)}
    path = save_state(tmp_path / "s.safetensors", state)
    found = load_state(path)["w"]
    assert found.dtype == dtype and found.view(torch.uint8).equal(state["w"].view(torch.uint8))


def test_the_same_state_gives_the_same_bytes_in_any_order(tmp_path):
    one = save_state(tmp_path / "1.safetensors", STATE).read_bytes()
    two = save_state(tmp_path / "2.safetensors", dict(reversed(STATE.items()))).read_bytes()
    assert one == two


def test_tied_and_strided_tensors_are_written_whole(tmp_path):
    weight = torch.arange(12.0).reshape(3, 4)
    found = load_state(save_state(tmp_path / "s.safetensors", {"a": weight, "b": weight, "t": weight.t()}))
    assert torch.equal(found["a"], found["b"]) and torch.equal(found["t"], weight.t())


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = save_state(tmp_path / "s.safetensors", STATE)
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        save_state(path, {"x": torch.ones(3)})
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "wrapped", [lambda s: s, lambda s: {"state_dict": s, "epoch": 3}, lambda s: {f"module.{k}": v for k, v in s.items()}]
)
def test_torch_files_of_common_forms_are_read(tmp_path, wrapped):
    torch.save(wrapped(STATE), tmp_path / "c.pt")
    assert same(load_state(tmp_path / "c.pt"), STATE)


def test_the_old_torch_format_is_read(tmp_path):
    torch.save(STATE, tmp_path / "c.pt", _use_new_zipfile_serialization=False)
    assert same(load_state(tmp_path / "c.pt"), STATE)


class Evil:
    def __reduce__(self):
        return (print, ("ran",))


@pytest.mark.parametrize("save", [pickle.dumps, None], ids=["pickle", "torch"])
def test_a_pickle_that_runs_code_is_refused_and_does_not_run(tmp_path, capsys, save):
    path = tmp_path / "evil.pt"
    if save:
        path.write_bytes(save({"w": Evil()}))
    else:
        torch.save({"w": Evil()}, path)
    with pytest.raises(InputError, match="could run code"):
        load_state(path)
    assert "ran" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"\x00", "neither safetensors"),
        (b"not a checkpoint at all", "neither safetensors"),
        (b"\x7fELF\x02\x01\x01\x00" * 20, "neither safetensors"),
        (b"PK\x03\x04broken", "damaged"),
        (b"\x80\x02broken", "damaged"),
        ((2).to_bytes(8, "little") + b"[]", "neither safetensors"),
    ],
)
def test_a_file_that_is_no_checkpoint_is_one_clear_error(tmp_path, content, message):
    path = tmp_path / "c"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        load_state(path)
    assert caught.value.exit_code == ExitCode.USAGE and caught.value.where == str(path) and caught.value.hint


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        load_state(tmp_path / "none.safetensors")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(share=st.floats(0.0, 0.999), kind=st.sampled_from(["safetensors", "torch"]))
def test_every_truncated_checkpoint_is_an_input_error(tmp_path, share, kind):
    path = tmp_path / f"c.{kind}"
    if kind == "torch":
        torch.save(STATE, path)
    else:
        save_state(path, STATE)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(InputError):
        load_state(path)


def test_a_file_cut_in_its_data_says_that_it_is_truncated(tmp_path):
    path = save_state(tmp_path / "s.safetensors", STATE)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InputError, match="truncated"):
        load_state(path)


def test_loading_into_a_model_lists_what_does_not_fit():
    model = torch.nn.Linear(4, 2)
    load_into(model, {"weight": torch.ones(2, 4), "bias": torch.zeros(2)}, where="c")
    assert torch.equal(model.weight, torch.ones(2, 4))
    with pytest.raises(InputError) as caught:
        load_into(model, {"weight": torch.ones(3, 4), "extra": torch.ones(1)}, where="c")
    for text in ("bias is missing", "extra is not in the model", "weight has shape (3, 4), the model's (2, 4)"):
        assert text in str(caught.value)


def test_a_modelopt_checkpoint_that_holds_dense_weights_is_named():
    state = {"weight": torch.ones(2, 4), "bias": torch.zeros(2), "0._weight_mask": torch.ones(2, 4, dtype=torch.bool)}
    with pytest.raises(InputError, match="the weights themselves are dense"):
        load_into(torch.nn.Linear(4, 2), state, where="c")
