# SPDX-License-Identifier: Apache-2.0
"""DataLoader: one stream for all worker counts, each sample once per epoch, batches that stay."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers import ids_of, image_of, noise, same, save, seen, stream

import cutwater as cw

TRAIN = "decode | random_resized_crop(16) | random_horizontal_flip | to_tensor | normalize([0.5], [0.2])"
SAMPLES = 23  # in the fixture photos


@pytest.fixture
def ds(photos: Path) -> cw.Dataset:
    return cw.folder(photos).apply(TRAIN)


def loader(ds: cw.Dataset, **options: Any) -> cw.DataLoader:
    return cw.DataLoader(ds, **{"batch_size": 4, "shuffle": True, "seed": 7, "num_workers": 2} | options)


@pytest.mark.parametrize("workers", [1, 2, 7, 0, "auto"])
@pytest.mark.parametrize("fuse", [True, False])
def test_one_stream_for_all_worker_counts(ds: cw.Dataset, workers: Any, fuse: bool) -> None:
    reference = stream(loader(ds, num_workers=1), epochs=3)
    assert stream(loader(ds, num_workers=workers, fuse=fuse), epochs=3) == reference


@pytest.mark.parametrize("options", [{"memory_limit": 2**20}, {"prefetch_factor": 1}, {"output": "numpy"}])
def test_what_changes_speed_changes_no_byte(ds: cw.Dataset, options: dict[str, Any]) -> None:
    assert stream(loader(ds, **options), epochs=2) == stream(loader(ds), epochs=2)


@pytest.mark.parametrize("workers", [1, 2, 7])
def test_ready_delivers_the_same_samples(ds: cw.Dataset, workers: int) -> None:
    def by_id(order: str, workers: int) -> list[dict[int, bytes]]:
        with loader(ds, order=order, num_workers=workers) as feed:
            epochs = [[(ids_of([b]), b[0].numpy(), b[1].numpy()) for b in feed] for _ in range(2)]
        return [
            {id: x[k].tobytes() + y[k].tobytes() for ids, x, y in epoch for k, id in enumerate(ids)} for epoch in epochs
        ]

    delivered = by_id("ready", workers)
    assert [sorted(epoch) for epoch in delivered] == [list(range(SAMPLES))] * 2
    assert delivered == by_id("strict", 1)


@pytest.mark.parametrize("order", ["strict", "ready"])
def test_each_sample_once_per_epoch_in_another_order(ds: cw.Dataset, order: str) -> None:
    feed = loader(ds, order=order)
    epochs = [ids_of(feed) for _ in range(4)]
    assert [sorted(ids) for ids in epochs] == [list(range(SAMPLES))] * 4
    assert len({tuple(ids) for ids in epochs}) == 4
    assert sorted(epochs[0]) != epochs[0]


def test_seeds_give_orders_and_no_shuffle_the_listing(ds: cw.Dataset) -> None:
    assert len({tuple(ids_of(loader(ds, seed=seed))) for seed in (0, 1, 2**64 - 1)}) == 3
    plain = loader(ds, shuffle=False)
    assert ids_of(plain) == ids_of(plain) == list(range(SAMPLES))


def test_every_permutation_is_equally_likely(tmp_path: Path) -> None:
    ds = cw.files([save(tmp_path / f"{k}.png", noise(1, 1, k)) for k in range(3)]).decode()
    feed = loader(ds, batch_size=3, num_workers=1)
    counts = dict.fromkeys(itertools.permutations(range(3)), 0)
    for _ in range(600):
        counts[tuple(ids_of(feed))] += 1
    assert min(counts.values()) > 60 and max(counts.values()) < 150


@pytest.mark.parametrize("order", ["strict", "ready"])
@pytest.mark.parametrize(("batch_size", "drop_last", "sizes"), [
    (4, False, [4, 4, 4, 4, 4, 3]),
    (4, True, [4, 4, 4, 4, 4]),
    (23, True, [23]),
    (24, False, [23]),
    (24, True, []),
    (1, False, [1] * 23),
])  # fmt: skip
def test_batch_sizes(ds: cw.Dataset, batch_size: int, drop_last: bool, sizes: list[int], order: str) -> None:
    feed = loader(ds, batch_size=batch_size, drop_last=drop_last, order=order)
    for epoch in range(2):
        batches = list(feed)
        assert [len(b.ids) for b in batches] == [len(b[0]) for b in batches] == sizes
        assert [(b.epoch, b.index) for b in batches] == [(epoch, k) for k in range(len(sizes))]
        assert len(feed) == len(sizes)
        assert len(set(ids_of(batches))) == sum(sizes)


def test_a_batch_is_a_sequence_of_its_fields(ds: cw.Dataset) -> None:
    batch = next(iter(loader(ds)))
    images, labels = batch
    assert images.shape == (4, 3, 16, 16) and images.dtype == torch.float32
    assert labels.tolist() == [ds.label(int(id)) for id in batch.ids]
    assert batch[0] is images and batch[-1] is labels and batch["label"] is labels
    assert batch[:1] == (images,) and tuple(batch[:]) == (images, labels)
    assert batch.fields == {"image": images, "label": labels} and len(batch) == 2
    assert "image (4, 3, 16, 16)" in repr(batch)
    with pytest.raises(IndexError):
        batch[2]
    with pytest.raises(KeyError):
        batch["nothing"]
    for k, id in enumerate(batch.ids):
        assert same(images[k], image_of(ds, int(id), seed=7))


def test_a_flat_folder_has_no_labels(tmp_path: Path) -> None:
    for k in range(3):
        save(tmp_path / f"{k}.png", noise(8, 8, k))
    ds = cw.folder(tmp_path).decode()
    (images,) = next(iter(loader(ds, batch_size=3)))
    assert images.shape == (3, 8, 8, 3) and images.dtype == torch.uint8
    assert ds.classes == [] and ds.get(0).keys() == {"image"}


def test_outputs(ds: cw.Dataset) -> None:
    as_numpy, as_torch = (next(iter(loader(ds, output=output))) for output in ("numpy", "torch"))
    assert isinstance(as_numpy[0], np.ndarray) and isinstance(as_numpy.ids, np.ndarray)
    assert seen(as_numpy) == seen(as_torch)
    shared = as_torch[0].numpy()
    as_torch[0].fill_(3.0)  # torch's tensor and NumPy's array are one memory, and writable
    assert (shared == 3.0).all()


def test_epochs_follow_each_other_and_can_be_set(ds: cw.Dataset) -> None:
    feed = loader(ds)
    by_epoch = [stream(feed) for _ in range(4)]
    feed.set_epoch(1)
    assert [stream(feed), stream(feed)] == by_epoch[1:3]
    fresh = loader(ds)
    fresh.set_epoch(3)
    assert stream(fresh) == by_epoch[3]


def test_breaking_off_drops_the_rest_of_the_epoch(ds: cw.Dataset) -> None:
    by_epoch = [stream(feed) for feed in [loader(ds)] for _ in range(3)]
    feed = loader(ds)
    for batch in feed:
        if batch.index == 2:
            break
    assert stream(feed) == by_epoch[1]
    iter(feed)  # begun and not read at all
    assert stream(feed)[0][0] == 3


def test_one_iterator_at_a_time(ds: cw.Dataset) -> None:
    feed = loader(ds)
    first, second = iter(feed), iter(feed)
    assert next(second).epoch == 1
    with pytest.raises(ValueError, match="one iterator at a time"):
        next(first)
    assert len(list(second)) == len(feed) - 1


@pytest.mark.parametrize("memory_limit", [None, 2**20])
@pytest.mark.parametrize("order", ["strict", "ready"])
def test_kept_batches_are_never_overwritten(ds: cw.Dataset, order: str, memory_limit: int | None) -> None:
    feed = loader(ds, order=order, memory_limit=memory_limit)
    kept, then = [], []
    for _ in range(3):
        for batch in feed:
            kept.append(batch)
            then.append(seen(batch))
    feed.close()
    assert [seen(batch) for batch in kept] == then
    for batch in kept:
        for k, id in enumerate(batch.ids):
            assert same(batch[0][k], image_of(ds, int(id), epoch=batch.epoch, seed=7))


def test_a_field_alone_keeps_the_memory(ds: cw.Dataset) -> None:
    feed = loader(ds, output="numpy")
    images = [batch[0][1:] for batch in feed]  # views of views; the batches are gone
    copies = [view.copy() for view in images]
    stream(feed, epochs=3)
    assert all(same(a, b) for a, b in zip(images, copies, strict=True))


def test_images_of_different_sizes_need_a_batch_each(photos: Path) -> None:
    ds = cw.folder(photos).decode()
    for batch in cw.DataLoader(ds, batch_size=1):
        assert same(batch[0][0], image_of(ds, int(batch.ids[0])))
    with pytest.raises(ValueError, match=r"samples 0 .* and 1 |samples 0 and 1 ") as caught:
        next(iter(cw.DataLoader(ds, batch_size=2, num_workers=1)))
    assert isinstance(caught.value, cw.Error) and "resize" in str(caught.value)


def test_a_batch_beyond_the_memory_limit_says_what_to_change(ds: cw.Dataset) -> None:
    with pytest.raises(ValueError, match="raise memory_limit or lower batch_size"):
        next(iter(loader(cw.Dataset(ds.source).decode().resize((400, 400)), batch_size=9, memory_limit="1MiB")))


def test_a_batch_larger_than_the_data_set_is_the_data_set(ds: cw.Dataset) -> None:
    for order in ("strict", "ready"):
        (batch,) = loader(ds, batch_size=10**12, order=order)
        assert sorted(int(i) for i in batch.ids) == list(range(len(ds)))
