# SPDX-License-Identifier: Apache-2.0
"""to_tensor(channels_last=True): the same values and shape, another order in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from helpers import MEAN, STD

import cutwater as cw

TRAIN = "decode | random_resized_crop(24) | random_horizontal_flip | "


@pytest.mark.parametrize("tail", ["", f" | normalize({MEAN}, {STD})", " | to_dtype(float16)"])
@pytest.mark.parametrize("fuse", [True, False])
def test_the_values_are_those_of_channels_first(photos: Any, tail: str, fuse: bool) -> None:
    first, last = (
        cw.DataLoader(cw.folder(photos).apply(TRAIN + how + tail), 8, shuffle=True, seed=5, fuse=fuse)
        for how in ("to_tensor", "to_tensor(channels_last=True)")
    )
    for a, b in zip(first, last, strict=True):
        assert a["image"].shape == b["image"].shape == (len(a.ids), 3, 24, 24)
        assert torch.equal(a["image"], b["image"])
        assert a["image"].is_contiguous()
        assert b["image"].is_contiguous(memory_format=torch.channels_last)


def test_one_sample_and_a_stack(photos: Any) -> None:
    for text in ("decode | resize([9, 7]) | ", "decode | resize(20) | five_crop(8) | "):
        first = cw.folder(photos).apply(text + "to_tensor").get(3)["image"]
        last = cw.folder(photos).apply(text + "to_tensor(channels_last=True)").get(3)["image"]
        assert np.array_equal(first, last)
        assert last.strides[-3] == 4 and first.strides[-1] == 4
