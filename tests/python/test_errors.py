# SPDX-License-Identifier: Apache-2.0
"""Errors: what becomes of bad samples, and what is raised for what, in words that help."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import ids_of, image_of, noise, same, save, stream

import cutwater as cw

SAMPLES = 24
BAD = {0, 5, 6, 7, 13, 23}
GOOD = [id for id in range(SAMPLES) if id not in BAD]


@pytest.fixture
def ds(tmp_path: Path) -> cw.Dataset:
    """24 images, six of them broken in different ways."""
    paths = [save(tmp_path / f"{k:02}.png", noise(9, 11, k)) for k in range(SAMPLES)]
    for id in BAD:
        paths[id].write_bytes(paths[id].read_bytes()[: 20 * (id % 3)] if id % 2 else b"no image")
    return cw.files(paths, labels=[k % 4 for k in range(SAMPLES)]).decode()


def loader(ds: cw.Dataset, **options: Any) -> cw.DataLoader:
    return cw.DataLoader(ds, **{"batch_size": 4, "shuffle": True, "seed": 5, "num_workers": 2} | options)


EVERY_WAY = pytest.mark.parametrize(
    ("order", "workers"), [(order, workers) for order in ("strict", "ready") for workers in (1, 2, 7)]
)


@EVERY_WAY
def test_skip_leaves_out_exactly_the_bad_ones(ds: cw.Dataset, order: str, workers: int) -> None:
    feed = loader(ds, on_error="skip", order=order, num_workers=workers)
    for _ in range(2):
        batches = list(feed)
        assert [len(batch.ids) for batch in batches] == [4, 4, 4, 4, 2]
        assert sorted(ids_of(batches)) == GOOD
        for batch in batches:
            assert batch[1].tolist() == [id % 4 for id in ids_of([batch])]
            assert all(same(image, image_of(ds, int(id))) for id, image in zip(batch.ids, batch[0], strict=True))
    skipped = feed.stats()["skipped"]  # a file that is bad in every epoch is listed once
    assert sorted(entry["id"] for entry in skipped) == sorted(BAD)
    for entry in skipped:
        assert entry["path"] == ds.path(entry["id"]) and entry["op"] in ("decode", "read") and entry["reason"]


@pytest.mark.parametrize("workers", [1, 2, 7])
def test_strict_skipping_is_the_order_without_the_bad_ones(ds: cw.Dataset, workers: int, tmp_path: Path) -> None:
    sound = cw.files([save(tmp_path / f"good{k}.png", noise(3, 3, k)) for k in range(SAMPLES)]).decode()
    order = ids_of(loader(sound))
    feed = loader(ds, on_error="skip", num_workers=workers)
    assert ids_of(feed) == [id for id in order if id not in BAD]
    assert stream(feed) == stream(loader(ds, on_error="skip", num_workers=1), epochs=2)[5:]


@EVERY_WAY
def test_substitute_fills_the_places_with_the_next_good_ones(ds: cw.Dataset, order: str, workers: int) -> None:
    feed = loader(ds, on_error="substitute", order=order, num_workers=workers)
    batches = list(feed)
    assert [len(batch.ids) for batch in batches] == [4] * 6
    next_good = {
        id: next(g % SAMPLES for g in range(id, 2 * SAMPLES) if g % SAMPLES not in BAD) for id in range(SAMPLES)
    }
    assert sorted(ids_of(batches)) == sorted(next_good.values())
    assert {entry["id"] for entry in feed.stats()["substituted"]} == BAD
    for batch in batches:
        for id, image in zip(batch.ids, batch[0], strict=True):
            assert same(image, image_of(ds, int(id)))


@EVERY_WAY
def test_raise_names_the_sample_and_delivers_what_came_before(ds: cw.Dataset, order: str, workers: int) -> None:
    feed = loader(ds, order=order, num_workers=workers, shuffle=False, batch_size=2)
    it = iter(feed)
    with pytest.raises(cw.SampleError) as caught:
        for batch in it:
            assert not BAD & set(ids_of([batch]))
    assert caught.value.id in BAD
    assert caught.value.id == 0 or order == "ready"
    with pytest.raises(cw.SampleError):  # the next epoch meets it as well
        list(feed)


@pytest.mark.parametrize(
    ("most", "passes"), [(6, True), (5, False), (0, False), (0.25, True), (0.24, False), (1.0, True)]
)
@pytest.mark.parametrize("order", ["strict", "ready"])
def test_max_errors_as_count_and_as_share(ds: cw.Dataset, most: float, passes: bool, order: str) -> None:
    feed = loader(ds, on_error="skip", max_errors=most, order=order)
    if passes:
        assert sorted(ids_of(feed)) == GOOD
        return
    with pytest.raises(cw.SampleError, match="more than max_errors allows"):
        list(feed)


@EVERY_WAY
@pytest.mark.parametrize("on_error", ["skip", "substitute"])
def test_when_all_are_bad_it_is_an_error(tmp_path: Path, on_error: str, order: str, workers: int) -> None:
    for k in range(7):
        (tmp_path / f"{k}.jpg").write_text("broken")
    feed = loader(cw.folder(tmp_path).decode(), on_error=on_error, order=order, num_workers=workers, batch_size=2)
    with pytest.raises(cw.SampleError):
        list(feed)


def test_sample_errors_have_four_attributes_and_survive_pickling(ds: cw.Dataset) -> None:
    with pytest.raises(cw.SampleError) as caught:
        ds.get(6)
    error = caught.value
    assert (error.id, error.path, error.op) == (6, ds.path(6), "decode") and "not a JPEG" in error.reason
    assert all(part in str(error) for part in ("6", error.path, error.op, error.reason))
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (cw.SampleError, str(error), vars(error))


KINDS = [(cw.InvalidArgument, ValueError), (cw.NotFound, FileNotFoundError), (cw.InputOutputError, OSError)]
KINDS += [(cw.Unavailable, ConnectionError), (cw.Timeout, TimeoutError), (cw.Closed, ValueError)]
KINDS += [(cw.SampleError, ValueError), (cw.InternalError, AssertionError)]


@pytest.mark.parametrize(("ours", "pythons"), KINDS)
def test_errors_are_ours_and_pythons(ours: type, pythons: type) -> None:
    assert issubclass(ours, cw.Error) and issubclass(ours, pythons)


def bad_call(error: type, match: str, call: Callable[[cw.Dataset, Path], Any]) -> Any:
    return pytest.param(error, match, call, id=match)


WRONG_CALLS = [
    bad_call(TypeError, "must be a cutwater.Dataset .*got list", lambda ds, t: cw.DataLoader([1, 2])),
    bad_call(TypeError, "no argument 'batchsize'", lambda ds, t: loader(ds, batchsize=3)),
    bad_call(ValueError, "does not take sampler: .*shuffle=", lambda ds, t: loader(ds, sampler=[1])),
    bad_call(ValueError, "does not take collate_fn: .*ops", lambda ds, t: loader(ds, collate_fn=len)),
    bad_call(ValueError, "order must be one of 'strict', 'ready', got 'fast'", lambda ds, t: loader(ds, order="fast")),
    bad_call(ValueError, "on_error must be .*got 'ignore'", lambda ds, t: loader(ds, on_error="ignore")),
    bad_call(ValueError, "batch_size must be at least 1, got 0", lambda ds, t: loader(ds, batch_size=0)),
    bad_call(ValueError, "num_workers must be .*got -1", lambda ds, t: loader(ds, num_workers=-1)),
    bad_call(ValueError, "num_workers must be .*got 'all'", lambda ds, t: loader(ds, num_workers="all")),
    bad_call(ValueError, "seed must be at least 0, got -1", lambda ds, t: loader(ds, seed=-1)),
    bad_call(ValueError, "max_errors goes with on_error='skip'", lambda ds, t: loader(ds, max_errors=3)),
    bad_call(ValueError, "max_errors .*at least 0", lambda ds, t: loader(ds, on_error="skip", max_errors=-1)),
    bad_call(ValueError, "share must be in 0..1, got 1.5", lambda ds, t: loader(ds, on_error="skip", max_errors=1.5)),
    bad_call(ValueError, "memory_limit must be at least 1 MiB, got 5", lambda ds, t: loader(ds, memory_limit=5)),
    bad_call(ValueError, "memory_limit must be a size like 8GiB", lambda ds, t: loader(ds, memory_limit="lots")),
    bad_call(TypeError, "memory_limit must be a whole number, got 1.5", lambda ds, t: loader(ds, memory_limit=1.5)),
    bad_call(ValueError, "num_workers must be at most 1024", lambda ds, t: loader(ds, num_workers=10**12)),
    bad_call(TypeError, "must be a count or a share", lambda ds, t: loader(ds, on_error="skip", max_errors="0")),
    bad_call(ValueError, "epoch must be at most", lambda ds, t: loader(ds).set_epoch(2**32)),
    bad_call(ValueError, "seed must be at least 0, got -1", lambda ds, t: ds.get(0, seed=-1)),
    bad_call(ValueError, "size must be in 1..65536", lambda ds, t: ds.center_crop(2**32)),
    bad_call(ValueError, "size must be in 1..65536", lambda ds, t: ds.resize(2**62)),
    bad_call(ValueError, "10{30} is too large", lambda ds, t: ds.resize(10**30)),
    bad_call(TypeError, r"use get\(id", lambda ds, t: ds[0]),
    bad_call(ValueError, "prefetch.* at least 1", lambda ds, t: loader(ds, prefetch_factor=0)),
    bad_call(ValueError, "output must be .*got 'jax'", lambda ds, t: loader(ds, output="jax")),
    bad_call(ValueError, "epoch must be at least 0, got -1", lambda ds, t: loader(ds).set_epoch(-1)),
    bad_call(ValueError, "one iterator at a time", lambda ds, t: [i := iter(feed := loader(ds)), iter(feed), next(i)]),
    bad_call(ValueError, "already has ops .decode.", lambda ds, t: ds.apply("imagenet-val")),
    bad_call(ValueError, "no labels", lambda ds, t: cw.files([ds.path(1)]).label(0)),
    bad_call(IndexError, "24 is out of range: the data set has 24 samples", lambda ds, t: ds.get(24)),
    bad_call(ValueError, "no cut 'flip'", lambda ds, t: ds.run(1, upto="flip")),
    bad_call(ValueError, "2 paths, but 1 labels", lambda ds, t: cw.files(["a", "b"], labels=[1])),
    bad_call(ValueError, "list of files: it is empty", lambda ds, t: cw.files([])),
    bad_call(ValueError, "a table has its own label column", lambda ds, t: cw.files(t / "t.csv", labels=[1])),
    bad_call(FileNotFoundError, "t.csv.*No such file", lambda ds, t: cw.files(t / "t.csv")),
    bad_call(FileNotFoundError, "nowhere.*No such file", lambda ds, t: cw.folder(t / "nowhere")),
    bad_call(FileNotFoundError, "no image .*looked for .jpg", lambda ds, t: [(t / "e").mkdir(), cw.folder(t / "e")]),
    bad_call(FileNotFoundError, "no file matches", lambda ds, t: cw.tar(str(t / "*.tar"))),
    bad_call(TypeError, "size", lambda ds, t: ds.resize()),
    bad_call(ValueError, "size must be .*got \"big\"", lambda ds, t: ds.resize("big")),
]  # fmt: skip


@pytest.mark.parametrize(("error", "match", "call"), WRONG_CALLS)
def test_wrong_arguments_are_named(error: type, match: str, call: Any, ds: cw.Dataset, tmp_path: Path) -> None:
    with pytest.raises(error, match=match):
        call(ds, tmp_path)


@pytest.mark.parametrize(("error", "match", "call"), [c for c in WRONG_CALLS if c.values[1] != "size"])
def test_what_is_raised_on_purpose_is_a_cutwater_error(
    error: type, match: str, call: Any, ds: cw.Dataset, tmp_path: Path
) -> None:
    with pytest.raises(cw.Error):
        call(ds, tmp_path)


def test_numbers_of_numpy_and_torch_are_numbers(ds: cw.Dataset) -> None:
    import torch

    plain = ds.resize((8, 9)).to_tensor().normalize([0.5, 0.25, 1.0], [1.0, 2.0, 4.0])
    arrays = ds.resize(np.array([8, 9])).to_tensor().normalize(torch.tensor([0.5, 0.25, 1]), np.array([1, 2, 4]))
    assert arrays.pipeline == plain.pipeline
    assert same(image_of(ds.resize(np.int64(8)), np.int64(1), epoch=np.int64(2)), image_of(ds.resize(8), 1, epoch=2))
    assert ids_of(loader(ds, on_error="skip", batch_size=np.int64(4), seed=np.int64(5), num_workers=np.int64(2)))
