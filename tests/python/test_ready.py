# SPDX-License-Identifier: Apache-2.0
"""order="ready": slow samples are overtaken, but never by more than four batches."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import ids_of, noise, save

import cutwater as cw

BATCH, SAMPLES, SLOW, LATEST = 2, 80, 30, 4  # LATEST: max_late_batches of loader.h


@pytest.fixture(scope="module")
def ds(tmp_path_factory: pytest.TempPathFactory) -> cw.Dataset:
    """Tiny images, and one that takes as long as all the others together many times over."""
    folder = tmp_path_factory.mktemp("uneven")
    paths = [save(folder / "tiny.png", noise(4, 4))] * SAMPLES
    paths[SLOW] = save(folder / "slow.png", np.zeros((4000, 6000, 3), np.uint8), compress_level=1)
    return cw.files(paths).decode().resize((4, 4))


def loader(ds: cw.Dataset) -> cw.DataLoader:
    return cw.DataLoader(ds, BATCH, order="ready", num_workers=2)


def batch_of_the_slow_one(batches: list[cw.Batch]) -> int:
    (index,) = [batch.index for batch in batches if SLOW in ids_of([batch])]
    return index


def test_a_slow_sample_is_overtaken_within_bounds(ds: cw.Dataset) -> None:
    batches = list(loader(ds))
    assert sorted(ids_of(batches)) == list(range(SAMPLES))
    assert SLOW // BATCH < batch_of_the_slow_one(batches) <= SLOW // BATCH + LATEST


def test_the_bounds_hold_after_a_resume(ds: cw.Dataset) -> None:
    first = loader(ds)
    it = iter(first)
    for _ in range(10):
        next(it)
    resumed = loader(ds)
    resumed.load_state_dict(first.state_dict())
    assert batch_of_the_slow_one(list(resumed)) <= SLOW // BATCH + LATEST
