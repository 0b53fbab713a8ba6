# SPDX-License-Identifier: Apache-2.0
"""state_dict: continue exactly there, with other workers, in both orders; refuse another stream's state."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from helpers import ids_of, noise, save, seen, stream

import cutwater as cw

TRAIN = "decode | random_resized_crop(12) | random_horizontal_flip"
BATCH, SAMPLES = 5, 23
BATCHES = math.ceil(SAMPLES / BATCH)


@pytest.fixture
def ds(photos: Path) -> cw.Dataset:
    return cw.folder(photos).apply(TRAIN)


def loader(ds: cw.Dataset, **options: Any) -> cw.DataLoader:
    return cw.DataLoader(ds, **{"batch_size": BATCH, "shuffle": True, "seed": 3, "num_workers": 2} | options)


def stop_after(feed: cw.DataLoader, batches: int) -> tuple[list[Any], dict[str, Any]]:
    """Reads so many batches and gives them with the state as a file would have kept it."""
    had, batches_left = [], batches
    while batches_left:
        for batch in feed:
            had.append(seen(batch))
            batches_left -= 1
            if not batches_left:
                break
    state = json.loads(json.dumps(feed.state_dict()))
    feed.close()
    return had, state


@pytest.mark.parametrize("workers", [(1, 7), (7, 1), (2, 3)])
@pytest.mark.parametrize("stop", range(1, 2 * BATCHES + 1))
def test_strict_goes_on_as_if_nothing_had_happened(ds: cw.Dataset, stop: int, workers: tuple[int, int]) -> None:
    whole = stream(loader(ds), epochs=3)
    had, state = stop_after(loader(ds, num_workers=workers[0]), stop)
    resumed = loader(ds, num_workers=workers[1])
    resumed.load_state_dict(state)
    assert resumed.state_dict() == state
    rest = [seen(batch) for _ in range(3) for batch in resumed]
    assert (had + rest)[: len(whole)] == whole


@pytest.mark.parametrize("workers", [(1, 7), (7, 1)])
@pytest.mark.parametrize("stop", range(1, BATCHES + 1))
def test_ready_delivers_the_rest_once(ds: cw.Dataset, stop: int, workers: tuple[int, int]) -> None:
    had, state = stop_after(loader(ds, num_workers=workers[0], order="ready"), stop)
    resumed = loader(ds, num_workers=workers[1], order="ready")
    resumed.load_state_dict(state)
    rest = [seen(batch) for batch in resumed]
    assert {epoch for epoch, *_ in had + rest} == {0}
    assert [index for _, index, *_ in had + rest] == list(range(BATCHES))
    assert sorted(id for _, _, ids, _ in had + rest for id in ids) == list(range(SAMPLES))
    assert sorted(ids_of(resumed)) == list(range(SAMPLES))


@pytest.mark.parametrize("order", ["strict", "ready"])
def test_state_after_the_last_batch_leaves_an_empty_rest(ds: cw.Dataset, order: str) -> None:
    feed = loader(ds, order=order)
    it = iter(feed)
    for _ in range(BATCHES):
        next(it)
    state = feed.state_dict()
    resumed = loader(ds, order=order)
    resumed.load_state_dict(state)
    assert stream(resumed) == []
    following = list(resumed)
    assert {batch.epoch for batch in following} == {1} and sorted(ids_of(following)) == list(range(SAMPLES))


def test_state_between_epochs(ds: cw.Dataset) -> None:
    whole = stream(loader(ds), epochs=2)
    feed = loader(ds)
    before, _, after = feed.state_dict(), stream(feed), feed.state_dict()
    for state, rest in ((before, whole), (after, whole[BATCHES:])):
        resumed = loader(ds)
        resumed.load_state_dict(state)
        assert (stream(resumed, epochs=2))[: len(rest)] == rest


def test_the_same_loader_can_go_back(ds: cw.Dataset) -> None:
    feed = loader(ds)
    it = iter(feed)
    next(it)
    state = feed.state_dict()
    rest = [seen(batch) for batch in it]
    feed.load_state_dict(state)
    assert stream(feed) == rest
    with pytest.raises((ValueError, StopIteration)):  # the old iterator is of the past
        next(it)


@pytest.mark.parametrize("order", ["strict", "ready"])
@pytest.mark.parametrize("stop", range(1, 6))
def test_skipped_samples_stay_skipped(order: str, stop: int, tmp_path: Path) -> None:
    paths = [save(tmp_path / f"{k:02}.png", noise(6, 6, k)) for k in range(20)]
    bad = {0, 3, 4, 11, 19}
    for k in bad:
        paths[k].write_text("broken")
    ds = cw.files(paths).decode()
    options: dict[str, Any] = {"batch_size": 3, "order": order, "on_error": "skip", "max_errors": len(bad)}
    had, state = stop_after(loader(ds, **options), stop)
    resumed = loader(ds, num_workers=1, **options)
    resumed.load_state_dict(state)
    rest = stream(resumed)
    assert sorted(id for _, _, ids, _ in had + rest for id in ids) == sorted(set(range(20)) - bad)
    if order == "strict":
        assert had + rest == stream(loader(ds, **options))


def test_drop_last_counts_over_both_parts(ds: cw.Dataset) -> None:
    whole = stream(loader(ds, drop_last=True))
    had, state = stop_after(loader(ds, drop_last=True), 2)
    resumed = loader(ds, drop_last=True)
    resumed.load_state_dict(state)
    assert had + stream(resumed) == whole and len(whole) == SAMPLES // BATCH


@pytest.mark.parametrize(
    ("option", "value"), [("seed", 4), ("batch_size", 6), ("shuffle", False), ("drop_last", True), ("order", "ready")]
)
def test_another_streams_state_is_refused_naming_the_difference(ds: cw.Dataset, option: str, value: Any) -> None:
    _, state = stop_after(loader(ds), 2)
    with pytest.raises(ValueError, match=rf"differs in {option} \(saved .*, now {str(value).lower()}\);") as caught:
        loader(ds, **{option: value}).load_state_dict(state)
    assert isinstance(caught.value, cw.Error)


def test_another_pipeline_or_source_is_refused(ds: cw.Dataset, photos: Path) -> None:
    _, state = stop_after(loader(ds), 2)
    with pytest.raises(ValueError, match=r"differs in pipeline"):
        loader(cw.folder(photos).apply(TRAIN.replace("12", "13"))).load_state_dict(state)
    with pytest.raises(ValueError, match=r"differs in source .*samples \(saved 23, now 8\)"):
        loader(cw.folder(photos / "class0").apply(TRAIN)).load_state_dict(state)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"position": -1}, "damaged: position -1 of 23"),
        ({"position": 24}, "damaged: position 24 of 23"),
        ({"done_beyond": "000004"}, "damaged: what is done beyond position 0 of 23"),
        ({"done_beyond": "0x"}, "damaged"),
        ({"done_beyond": [21, 22]}, "wrong type"),
        ({"batch": -2}, "damaged"),
        ({"batch": "two"}, "wrong type"),
        ({"version": 99}, "version 99, this cutwater reads 2"),
        ({"version": 1}, "version 1, this cutwater reads 2"),
        ({"stream": None}, "wrong type|lacks a key"),
    ],
)
def test_damaged_states_are_refused(ds: cw.Dataset, change: dict[str, Any], message: str) -> None:
    state = loader(ds).state_dict()
    with pytest.raises(ValueError, match=message):
        loader(ds).load_state_dict(state | change)
    with pytest.raises(ValueError, match="lacks a key"):
        loader(ds).load_state_dict({})


def test_a_state_is_small_and_plain(ds: cw.Dataset) -> None:
    _, state = stop_after(loader(ds, order="ready", num_workers=7), 3)
    assert len(json.dumps(state)) < 1000


def test_set_epoch_after_a_restore_keeps_the_place(photos: Path) -> None:
    """The usual loop restores a checkpoint, then sets the epoch that it continues."""
    ds = cw.folder(photos).apply("decode | resize([8, 8])")
    first = cw.DataLoader(ds, batch_size=8, shuffle=True, seed=3)
    next(iter(first))
    resumed = cw.DataLoader(ds, batch_size=8, shuffle=True, seed=3)
    resumed.load_state_dict(first.state_dict())
    resumed.set_epoch(0)
    assert [batch.index for batch in resumed] == [1, 2]
    resumed.load_state_dict(first.state_dict())
    resumed.set_epoch(5)  # another epoch: from its start
    assert [(batch.epoch, batch.index) for batch in resumed] == [(5, 0), (5, 1), (5, 2)]


def test_set_epoch_inside_an_epoch_is_what_the_state_says_at_its_end(photos: Path) -> None:
    feed = cw.DataLoader(cw.folder(photos).apply("decode | resize([8, 8])"), batch_size=8)
    for _ in feed:
        feed.set_epoch(10)
    assert feed.state_dict()["epoch"] == 10
    assert {batch.epoch for batch in feed} == {10}
