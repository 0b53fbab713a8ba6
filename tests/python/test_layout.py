# SPDX-License-Identifier: Apache-2.0
"""Ops that would take channels for rows are refused when the pipeline is written, not at a sample."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers import noise, save

import cutwater as cw

PLANES = "decode | to_tensor | to_dtype(uint8, scale=True) | "  # uint8, but channels first


@pytest.mark.parametrize(
    "text",
    [
        PLANES + "to_tensor",
        PLANES + "to_tensor | normalize([0.5], [0.5])",
        PLANES + "pad(1)",
        PLANES + "resize([8, 8])",
        PLANES + "grayscale",
        PLANES + "center_crop(4)",
        PLANES + "five_crop(2)",
        PLANES + "random_crop(2, pad_if_needed=True)",
        PLANES + "random_crop(2, padding=1)",
        PLANES + "random_resized_crop(8)",
        PLANES + "random_horizontal_flip",
        PLANES + "random_vertical_flip",
        "decode | to_dtype(float32, scale=True) | normalize([0.5, 0.5, 0.5], [1, 1, 1])",  # channels last
    ],
)
def test_layouts_that_do_not_fit_are_refused_at_once(text: str) -> None:
    with pytest.raises(ValueError, match="to_tensor"):
        cw.parse(text)


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("size", [1, (5, 9), (20, 15)])
def test_a_random_crop_of_planes_is_that_of_the_image(
    tmp_path: Path, channels_last: bool, size: int | tuple[int, int]
) -> None:
    """Cropping and centring pixels commute, so either order gives the same values for the same corner."""
    source = cw.files([save(tmp_path / "a.png", noise(20, 15))])
    after = source.decode().to_tensor(channels_last=channels_last).normalize([0.4], [0.3]).random_crop(size)
    for epoch in range(5):
        crop = after.draws(0, epoch=epoch)[0]
        whole = after.run(0, upto="normalize", epoch=epoch)["image"]
        top, left = crop["top"], crop["left"]
        expected = whole[:, top : top + crop["height"], left : left + crop["width"]]
        assert np.array_equal(after.get(0, epoch=epoch)["image"], expected)


def test_a_window_larger_than_the_planes_is_a_bad_sample(tmp_path: Path) -> None:
    ds = cw.files([save(tmp_path / "a.png", noise(20, 15))]).decode().to_tensor().random_crop(16)
    with pytest.raises(cw.SampleError, match="window 16x16 does not fit image 20x15"):
        ds.get(0)
