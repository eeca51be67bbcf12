"""The torch pattern agrees with the numpy pattern, and every choice keeps exactly two of four."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import pattern, sparsity
from pipeline.errors import StageError
from pipeline.sparsity import fast_choose
from pipeline.sparsity.choose import LARGE, kept_share, magnitude_mask, refuse_nonfinite, two_best
from pipeline.sparsity.two_four import groups_last, violations

DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16]


@st.composite
def tensors(draw, multiple_of_four=False):
    ndim = draw(st.integers(2, 4))
    axis = draw(st.integers(0, ndim - 1))
    shape = [draw(st.integers(1, 5)) for _ in range(ndim)]
    shape[axis] = 4 * draw(st.integers(1, 4)) if multiple_of_four else draw(st.integers(1, 12))
    few = st.sampled_from([0.0, -0.0, 0.5, -0.5, 1.0, -2.0])
    size = 1
    for one in shape:
        size *= one
    values = draw(st.lists(few, min_size=size, max_size=size))
    return torch.tensor(values).reshape(shape).to(draw(st.sampled_from(DTYPES))), axis


@given(tensors(), st.booleans())
def test_torch_and_numpy_agree_on_the_pattern(case, negative_axis):
    tensor, axis = case
    axis = axis - tensor.ndim if negative_axis else axis
    array = tensor.double().numpy()
    assert sparsity.is_two_four(tensor, axis) == pattern.is_two_four(array, axis)
    found = pattern.violations(array, axis)
    assert violations(tensor, axis) == (None if found is None else int(found.sum()))


@given(tensors(multiple_of_four=True))
@settings(deadline=None)
def test_a_magnitude_mask_keeps_exactly_the_two_largest_of_four(case):
    tensor, axis = case
    mask = magnitude_mask(tensor, axis)
    assert sparsity.is_two_four(mask, axis)
    kept = groups_last(mask, axis)
    assert (kept.sum(dim=1) == 2).all()
    magnitude = groups_last(tensor.double().abs(), axis)
    best = magnitude.topk(2, dim=1).values.sum(dim=1)
    assert torch.equal((magnitude * kept).sum(dim=1), best)


@pytest.mark.parametrize("shape", [(600, 512), (64, 64, 3, 30), (40, 32, 256), (512, 512, 1, 1)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_compiled_choice_is_the_same_with_its_ties(shape, dtype):
    assert torch.Size(shape).numel() >= LARGE // 2
    weight = torch.randint(-3, 4, shape, generator=torch.Generator().manual_seed(0)).to(dtype)
    assert torch.equal(fast_choose.magnitude_mask(weight), two_best(weight.abs()))


def test_ties_go_to_the_lower_position():
    assert magnitude_mask(torch.ones(1, 8)).tolist() == [[True, True, False, False] * 2]


def test_nan_is_neither_zero_nor_ranked():
    weight = torch.tensor([[float("nan"), 1.0, 2.0, 0.0]])
    assert not sparsity.is_two_four(weight, 1)
    with pytest.raises(StageError, match="1 of 4 weights are NaN") as caught:
        refuse_nonfinite(weight, "block.fc")
    assert "block.fc" in str(caught.value)


def test_the_kept_share_of_a_weight_of_zeros_is_whole():
    assert kept_share(torch.zeros(4, 4), magnitude_mask(torch.zeros(4, 4))) == 1.0
    assert kept_share(torch.tensor([[3.0, -3.0, 1.0, 1.0]]), magnitude_mask(torch.tensor([[3.0, -3.0, 1.0, 1.0]]))) == pytest.approx(0.75)


def test_the_package_imports_neither_torch_nor_numpy():
    code = "import sys, pipeline.sparsity as s; assert s.__all__; print([m for m in ('torch', 'numpy', 'numba') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
