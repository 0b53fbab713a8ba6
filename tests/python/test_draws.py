# SPDX-License-Identifier: Apache-2.0
"""Draws: torchvision's distributions; one value per (seed, epoch, sample, op), whatever else happens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch
from helpers import MEAN, STD, image_of, noise, same, save
from torchvision.transforms import RandomCrop, RandomResizedCrop

import cutwater as cw

DRAWS = 4000
# Two samples of 4000 from one distribution are further apart than this once in 10^4; seeds are fixed.
FURTHEST = 0.05


def distance(a: Any, b: Any) -> float:
    """Kolmogorov and Smirnov's: the greatest difference of the two cumulative shares."""
    a, b = np.sort(a), np.sort(b)
    at = np.concatenate([a, b])
    shares = np.searchsorted(a, at, "right") / len(a), np.searchsorted(b, at, "right") / len(b)
    return float(np.abs(shares[0] - shares[1]).max())


def boxes(ds: cw.Dataset, count: int = DRAWS) -> np.ndarray:
    drawn = [ds.draws(0, epoch)[0] for epoch in range(count)]
    return np.array([[d["top"], d["left"], d["height"], d["width"]] for d in drawn], dtype=float)


def reference_boxes(shape: tuple[int, int], scale: Any, ratio: Any, count: int = DRAWS) -> np.ndarray:
    torch.manual_seed(1)
    image = PIL.Image.new("RGB", (shape[1], shape[0]))
    return np.array([RandomResizedCrop.get_params(image, scale, ratio) for _ in range(count)], dtype=float)


@pytest.mark.parametrize(
    ("shape", "scale", "ratio"),
    [
        ((240, 320), (0.08, 1.0), (3 / 4, 4 / 3)),
        ((500, 90), (0.08, 1.0), (3 / 4, 4 / 3)),  # many tries do not fit
        ((97, 101), (0.3, 0.4), (0.5, 3.0)),
    ],
)
def test_boxes_are_distributed_as_torchvisions(shape: Any, scale: Any, ratio: Any, one_image: Any) -> None:
    ours = boxes(one_image(*shape).decode().random_resized_crop(32, scale=scale, ratio=ratio))
    theirs = reference_boxes(shape, list(scale), list(ratio))
    measures = {
        "area": lambda b: b[:, 2] * b[:, 3],
        "aspect": lambda b: b[:, 3] / b[:, 2],
        "top": lambda b: b[:, 0],
        "left": lambda b: b[:, 1],
        "place in the room there is": lambda b: b[:, 0] / np.maximum(shape[0] - b[:, 2], 1),
        "area against place": lambda b: b[:, 2] * b[:, 3] * b[:, 1],
    }
    too_far = {name: d for name, f in measures.items() if (d := distance(f(ours), f(theirs))) > FURTHEST}
    assert too_far == {}
    inside = (ours >= [0, 0, 1, 1]).all() and (ours[:, :2] + ours[:, 2:] <= shape).all()
    assert inside


def test_the_measure_tells_distributions_apart() -> None:
    """Else the test above could not fail: a slightly different scale is noticed."""
    a, b = (reference_boxes((240, 320), [low, 1.0], [3 / 4, 4 / 3]) for low in (0.08, 0.2))
    assert distance(a[:, 2] * a[:, 3], b[:, 2] * b[:, 3]) > FURTHEST


@pytest.mark.parametrize("shape", [(10, 4000), (4000, 10), (1, 1), (1, 300), (37, 900)])
def test_when_nothing_fits_the_crop_is_torchvisions_central_one(shape: tuple[int, int], one_image: Any) -> None:
    # Scales above 1 never fit, so every draw ends in the fallback.
    ds = one_image(*shape).decode().random_resized_crop(8, scale=(1.5, 2.0))
    assert [tuple(box) for box in boxes(ds, 3)] == [
        tuple(box) for box in reference_boxes(shape, [1.5, 2.0], [3 / 4, 4 / 3], 3)
    ]


@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 1.0])
def test_flips_happen_as_often_as_asked(p: float, one_image: Any) -> None:
    ds = one_image(2, 2).decode().random_horizontal_flip(p).random_vertical_flip(p)
    both = np.array([[d["flip"] for d in ds.draws(0, epoch)] for epoch in range(DRAWS)], dtype=bool)
    assert both.mean(0) == pytest.approx(p, abs=0.03)
    assert (both[:, 0] & both[:, 1]).mean() == pytest.approx(p * p, abs=0.03)  # independent


def test_crop_places_are_uniform_and_all_reached(one_image: Any) -> None:
    ds = one_image(12, 9).decode().random_crop((8, 8))
    places = boxes(ds)[:, :2].astype(int)
    counts = np.zeros((5, 2))
    np.add.at(counts, tuple(places.T), 1)
    assert counts.min() > 0
    assert np.abs(counts / DRAWS - 1 / 10).max() < 0.02


def test_crop_of_exact_size_is_the_image(one_image: Any) -> None:
    image = PIL.Image.new("RGB", (9, 12))
    drawn = one_image(12, 9).decode().random_crop((12, 9)).draws(0)[0]
    assert (drawn["top"], drawn["left"], drawn["height"], drawn["width"]) == RandomCrop.get_params(image, (12, 9))


@pytest.fixture
def many(tmp_path: Path) -> cw.Dataset:
    paths = [save(tmp_path / f"{k}.png", noise(60, 80, k)) for k in range(8)]
    return cw.files(paths).decode().random_resized_crop(24).random_horizontal_flip()


def test_draws_differ_between_epochs_seeds_and_samples(many: cw.Dataset) -> None:
    crops = [
        tuple(many.draws(id, epoch, seed)[0].items())
        for id in range(8)
        for epoch in range(8)
        for seed in (0, 1, 2, 2**32, 2**64 - 1)
    ]
    assert len(set(crops)) == len(crops)


def test_draws_are_repeatable_and_say_what_is_done(many: cw.Dataset) -> None:
    assert many.draws(3, 5, 9) == many.draws(3, 5, 9)
    crop, flip = many.draws(3, 5, 9)
    assert (crop["op"], crop["position"]) == ("random_resized_crop", 2)
    assert (flip["op"], flip["position"]) == ("random_horizontal_flip", 3)
    assert isinstance(flip["flip"], bool)


def test_the_same_op_twice_draws_twice(many: cw.Dataset) -> None:
    ds = many.random_resized_crop(24).random_horizontal_flip()
    flips = [[d["flip"] for d in ds.draws(0, epoch) if "flip" in d] for epoch in range(64)]
    assert {tuple(pair) for pair in flips} == {(a, b) for a in (False, True) for b in (False, True)}


def test_appending_ops_changes_no_draw_before(many: cw.Dataset) -> None:
    longer = many.to_tensor().normalize(MEAN, STD)
    longest = many.random_vertical_flip()
    for epoch in range(5):
        assert longer.draws(1, epoch) == many.draws(1, epoch) == longest.draws(1, epoch)[:2]


@pytest.mark.parametrize("workers", [1, 3])
def test_loaders_draw_what_draws_says(many: cw.Dataset, workers: int) -> None:
    with cw.DataLoader(many, batch_size=3, shuffle=True, seed=4, num_workers=workers) as loader:
        for epoch in range(2):
            for batch in loader:
                for id, image in zip(batch.ids, batch[0], strict=True):
                    assert same(image, image_of(many, int(id), epoch=epoch, seed=4))
