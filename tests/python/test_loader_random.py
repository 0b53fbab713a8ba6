# SPDX-License-Identifier: Apache-2.0
"""Loaders with options drawn at random, stopped and resumed at random: the invariants always hold."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from helpers import noise, save, seen

import cutwater as cw

SAMPLES = 37
BAD = {0, 1, 9, 20, 21, 22, 23, 36}
GOOD = [id for id in range(SAMPLES) if id not in BAD]


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("mixed")
    paths = [save(folder / f"{k:02}.png", noise(10 + 3 * (k % 7) ** 2, 90, k)) for k in range(SAMPLES)]
    for k in BAD:
        paths[k].write_bytes(paths[k].read_bytes()[: 30 * (k % 4)])
    return paths


def what(rng: random.Random) -> dict[str, Any]:
    """Options that change what is delivered."""
    return {
        "batch_size": rng.choice([1, 2, 5, 16, 40]),
        "shuffle": rng.random() < 0.7,
        "seed": rng.randrange(2**64),
        "drop_last": rng.random() < 0.4,
        "order": rng.choice(["strict", "ready"]),
        "on_error": rng.choice(["skip", "skip", "substitute"]),
    }


def how(rng: random.Random) -> dict[str, Any]:
    """Options that must not."""
    return {
        "num_workers": rng.choice([1, 2, 3, 7]),
        "memory_limit": rng.choice([None, "1MiB", "2MiB"]),
        "prefetch_factor": rng.choice([None, 1, 2, 9]),
        "fuse": rng.random() < 0.5,
    }


def deliver(feed: cw.DataLoader, rng: random.Random, again: Any) -> list[tuple[Any, ...]]:
    """Two epochs as a consumer sees them; now and then the loader is thrown away and resumed."""
    delivered: list[tuple[Any, ...]] = []
    for epoch in range(2):
        finished = False
        while not finished:
            finished = True
            for batch in feed:
                delivered.append(seen(batch))
                assert batch.epoch == epoch
                if rng.random() < 0.15:
                    state = feed.state_dict()
                    feed = again()
                    feed.load_state_dict(state)
                    finished = False
                    break
    return delivered


@pytest.mark.parametrize("seed", range(80))
def test_whatever_the_options(paths: list[Path], seed: int) -> None:
    rng = random.Random(seed)
    ds = cw.files(paths).apply("decode | random_resized_crop(16) | random_horizontal_flip | to_tensor")
    options = what(rng)
    delivered = deliver(cw.DataLoader(ds, **options, **how(rng)), rng, lambda: cw.DataLoader(ds, **options, **how(rng)))

    size, dropped = options["batch_size"], options["drop_last"]
    expected = GOOD if options["on_error"] == "skip" else range(SAMPLES)
    for epoch in range(2):
        batches = [batch for batch in delivered if batch[0] == epoch]
        counts = [len(ids) for _, _, ids, _ in batches]
        whole, rest = divmod(len(expected), size)
        assert counts == [size] * whole + ([rest] if rest and not dropped else [])
        assert [index for _, index, _, _ in batches] == list(range(len(batches)))
        ids = [id for _, _, ids, _ in batches for id in ids]
        assert not BAD & set(ids)
        if options["on_error"] == "skip":
            assert len(set(ids)) == len(ids) and (dropped or sorted(ids) == GOOD)
    if options["order"] == "strict":
        plain = cw.DataLoader(ds, **options, num_workers=1)
        assert delivered == [seen(batch) for _ in range(2) for batch in plain]
