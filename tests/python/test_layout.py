# SPDX-License-Identifier: Apache-2.0
"""Ops that would take channels for rows are refused when the pipeline is written, not at a sample."""

from __future__ import annotations

import pytest

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
        PLANES + "random_crop(2)",
        PLANES + "random_resized_crop(8)",
        PLANES + "random_horizontal_flip",
        PLANES + "random_vertical_flip",
        "decode | to_dtype(float32, scale=True) | normalize([0.5, 0.5, 0.5], [1, 1, 1])",  # channels last
    ],
)
def test_layouts_that_do_not_fit_are_refused_at_once(text: str) -> None:
    with pytest.raises(ValueError, match="to_tensor"):
        cw.parse(text)
