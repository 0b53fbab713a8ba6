# SPDX-License-Identifier: Apache-2.0
"""to_dtype: every pair of element types that torch converts, against torchvision's v2."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers import MEAN, STD, image_of, same, save
from torchvision.transforms.v2 import functional as F2

import cutwater as cw

DTYPES = ["uint8", "int16", "int32", "int64", "float16", "float32", "float64"]
ALL_VALUES = (np.arange(768) % 256).astype(np.uint8).reshape(16, 16, 3)


@pytest.fixture
def pixels(tmp_path: Path) -> cw.Dataset:
    return cw.files([save(tmp_path / "values.png", ALL_VALUES)]).decode()


def torch_type(name: str) -> torch.dtype:
    return getattr(torch, name)


def in_range(before: torch.Tensor, after: torch.Tensor, scale: bool) -> torch.Tensor:
    """Where torch's own result is defined: casting a float beyond an integer's range is not."""
    if not before.dtype.is_floating_point or after.dtype.is_floating_point:
        return torch.ones_like(before, dtype=torch.bool)
    limits = torch.iinfo(after.dtype)
    scaled = before.mul(limits.max + 1.0 - 1e-3) if scale else before
    return (scaled.double() >= limits.min) & (scaled.double() < limits.max + 1.0)


@pytest.mark.parametrize("scale", [False, True], ids=["plain", "scaled"])
@pytest.mark.parametrize(("first", "second"), list(product(DTYPES, DTYPES)))
def test_conversion_is_torchvisions(pixels: cw.Dataset, first: str, second: str, scale: bool) -> None:
    before = F2.to_dtype(torch.from_numpy(ALL_VALUES), torch_type(first), scale)
    ds = pixels.to_dtype(first, scale)
    assert same(image_of(ds), before)
    try:
        after = F2.to_dtype(before, torch_type(second), scale)
    except RuntimeError:
        with pytest.raises(ValueError, match=f"{first} cannot be scaled to {second}"):
            ds.to_dtype(second, scale)
        return
    defined = in_range(before, after, scale).numpy()
    got = image_of(ds.to_dtype(second, scale))
    assert got.dtype == after.numpy().dtype
    assert same(got[defined], after.numpy()[defined])


@pytest.mark.parametrize("dtype", ["int16", "int32", "int64", "float16", "float64"])
def test_negative_and_fractional_values(pixels: cw.Dataset, dtype: str) -> None:
    ds = pixels.to_tensor().normalize(MEAN, STD)
    assert same(image_of(ds.to_dtype(dtype)), torch.from_numpy(image_of(ds)).to(torch_type(dtype)))


def test_small_values_become_subnormal_halves(pixels: cw.Dataset) -> None:
    ds = pixels.to_tensor().normalize([0.0], [3e4])
    assert same(image_of(ds.to_dtype("float16")), torch.from_numpy(image_of(ds)).half())


def test_types_of_torch_and_numpy_are_names(pixels: cw.Dataset) -> None:
    named = pixels.to_dtype("float16").fingerprint
    for spelled in (torch.float16, np.float16):
        assert pixels.to_dtype(spelled).fingerprint == named
