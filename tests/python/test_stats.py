# SPDX-License-Identifier: Apache-2.0
"""stats() and explain(): what was done, in numbers that add up and in words."""

from __future__ import annotations

import json
from pathlib import Path

from helpers import noise, save, stream

import cutwater as cw


def test_stats_are_plain_and_add_up(photos: Path) -> None:
    feed = cw.DataLoader(cw.folder(photos).apply("decode | resize([8, 8])"), batch_size=4, num_workers=2)
    before = feed.stats()
    assert (before["samples"], before["batches"], before["skipped"]) == (0, 0, [])
    stream(feed, epochs=2)
    feed.close()
    stats = feed.stats()
    assert json.loads(json.dumps(stats)) == stats
    assert stats.keys() >= {"samples", "bytes", "seconds", "ops", "waits", "skipped", "bound_by", "threads", "memory"}
    assert (stats["samples"], stats["batches"], stats["threads"]) == (46, 12, 2)
    assert stats["ops"].keys() == {"decode+resize"}
    assert all(op["calls"] >= 46 and op["seconds"] > 0 for op in stats["ops"].values())
    assert stats["bound_by"].split(":")[0] in ("storage", "cpu", "consumer", "memory")


def test_bytes_are_those_of_the_files(tmp_path: Path) -> None:
    path = save(tmp_path / "x.png", noise(20, 20))
    feed = cw.DataLoader(cw.files([path], labels=[1]).decode(), num_workers=1)
    stream(feed, epochs=3)
    read = feed.stats()["bytes"]  # the worker may be an epoch ahead
    assert read >= 3 * path.stat().st_size and read % path.stat().st_size == 0


def test_explain_names_what_was_decided(photos: Path) -> None:
    feed = cw.DataLoader(cw.folder(photos).apply("decode | resize([8, 8])"), 4, num_workers=2, memory_limit="64MiB")
    stream(feed)
    text = feed.explain()
    for part in ("23 samples", "6 batches", "decode | resize(size=[8, 8])", "threads: 2", "64 MiB", "bound by"):
        assert part in text


def test_pinning_without_a_gpu_changes_nothing(photos: Path) -> None:
    import torch

    feed = cw.DataLoader(cw.folder(photos).apply("decode | resize([8, 8])"), 4, pin_memory=True)
    batch = next(iter(feed))
    if not torch.cuda.is_available():
        assert batch.pin() is batch and not batch[0].is_pinned()
    else:
        assert batch[0].is_pinned() and batch.pin_memory()[0].is_pinned()
