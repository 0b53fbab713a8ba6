# SPDX-License-Identifier: Apache-2.0
"""Profiles that a loader collects by the way: the same stream, true sizes, and plans can be made of them."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import command, data_folder, stream

import cutwater as cw

TRAIN = "decode | random_resized_crop(12) | random_horizontal_flip | to_tensor"
RESIZED = "decode | resize(24) | center_crop(20) | random_crop(16) | to_tensor"
VAL = "decode | resize(20) | center_crop(16) | to_tensor"


def loader(ds: cw.Dataset, **options: Any) -> cw.DataLoader:
    return cw.DataLoader(ds, **{"batch_size": 5, "shuffle": True, "seed": 3, "num_workers": 2} | options)


def sizes(profile: cw.Profile, folder: Path) -> dict[int, list[float]]:
    """Bytes at every cut, by sample."""
    profile.save(folder)
    return dict(zip(profile.ids, np.load(folder / "bytes.npy").tolist(), strict=True))


@pytest.mark.parametrize("pipeline", [TRAIN, RESIZED, VAL])
def test_the_stream_is_the_same(photos: Path, tmp_path: Path, pipeline: str) -> None:
    ds = cw.folder(photos).apply(pipeline)
    expected = stream(loader(ds), 3)
    for threads in (1, 2, 5):
        for options in ({}, {"cache": "1MiB"}, {"cache": "20kB", "cache_cut": "decode"}, {"reads_in_flight": 0}):
            feed = loader(ds, num_workers=threads, profile=True, **options)
            assert stream(feed, 3) == expected, (threads, options)
            assert sorted(feed.profile().ids) == list(range(len(ds)))
    with loader(ds, profile=True, store=tmp_path / "store", store_cut="decode") as feed:
        assert stream(feed, 3) == expected
    assert feed.stats()["store"]["state"] == "finished"
    made = tmp_path / "made"
    cw.materialize(ds, "decode", "none", out=made)
    for file in made.iterdir():
        assert file.read_bytes() == (tmp_path / "store" / file.name).read_bytes()


@pytest.mark.parametrize("pipeline", [TRAIN, RESIZED, VAL])
def test_sizes_are_those_of_a_profile(photos: Path, tmp_path: Path, pipeline: str) -> None:
    ds = cw.folder(photos).apply(pipeline)
    feed = loader(ds, profile=True)
    stream(feed, 2)  # what the first epoch lacks was drawn by the second, which had begun by then
    live, measured = feed.profile(), cw.profile(ds, samples=len(ds), num_workers=1)
    assert sizes(live, tmp_path / "live") == sizes(measured, tmp_path / "measured")
    one, other = live.to_dict(), measured.to_dict()
    for key in ("pipeline", "fingerprint", "data", "data_samples", "samples", "engine_s", "bad"):
        assert one[key] == other[key], key
    assert [cut["name"] for cut in one["cuts"]] == [cut["name"] for cut in other["cuts"]]
    assert all(cut["op_s"] > 0 for cut in one["cuts"][1:])
    assert one["storage"]["reads_files"]
    assert cw.Profile.load(tmp_path / "live").to_dict() == one
    assert "not measured" in live.table()


def test_a_plan_of_it(photos: Path) -> None:
    feed = loader(cw.folder(photos).apply(RESIZED), profile=True)
    stream(feed)
    plan = cw.plan(feed.profile(), epochs=30)
    assert {row["codec"] for row in plan.to_dict()["alternatives"]} == {"none"}
    assert "no rates" in plan.explain()


def test_bad_files_are_named(photos: Path, tmp_path: Path) -> None:
    good = [str(path) for path in sorted(photos.rglob("*.jpg"))[:6]]
    (tmp_path / "text.jpg").write_text("no image")
    ds = cw.files([*good, tmp_path / "text.jpg", tmp_path / "gone.jpg"]).apply(TRAIN)
    for policy in ("skip", "substitute"):
        plain, feed = loader(ds, on_error=policy), loader(ds, on_error=policy, profile=True)
        assert stream(feed, 2) == stream(plain, 2)
        books = {"skip": "skipped", "substitute": "substituted"}[policy]
        assert feed.stats()[books] == plain.stats()[books] == feed.profile().to_dict()["bad"]
        assert sorted(feed.profile().ids) == list(range(6))
        assert cw.plan(feed.profile()).to_dict()["samples"] == 6
    with pytest.raises(cw.SampleError, match=r"text\.jpg"):
        stream(loader(ds, shuffle=False, profile=True))


def test_while_it_runs_from_another_thread(photos: Path) -> None:
    feed = loader(cw.folder(photos).apply(RESIZED), profile=True)
    batches = iter(feed)
    next(batches)
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(len(feed.profile().ids)))
    thread.start()
    thread.join()
    assert found[0] >= 5
    assert len(list(batches)) == 4


def test_what_is_refused(photos: Path) -> None:
    ds = cw.folder(photos).apply(RESIZED)
    feed = loader(ds)
    stream(feed)
    with pytest.raises(ValueError, match="make it with profile=True"):
        feed.profile()
    with pytest.raises(ValueError, match="take batches first"):
        loader(ds, profile=True).profile()
    with pytest.raises(ValueError, match="samples come prepared from cut 'decode' on"):
        loader(ds.in_memory("decode"), profile=True)


def test_the_command(photos: Path, tmp_path: Path) -> None:
    base = ["run", "--data", photos, "--pipeline", RESIZED, "--epochs", 2, "--batch", 5, "--hash", "--json"]
    plain = json.loads(command(*base).stdout)
    done = json.loads(command(*base, "--profile", tmp_path / "p").stdout)
    assert [epoch["stream_hash"] for epoch in plain["epochs"]] == [epoch["stream_hash"] for epoch in done["epochs"]]
    assert "profile" not in plain and done["profile"] == {"path": str(tmp_path / "p"), "samples": 23}
    profile = cw.Profile.load(tmp_path / "p")
    assert sorted(profile.ids) == list(range(23)) and profile.to_dict()["data"] == str(photos)
    assert command("plan", "--profile", tmp_path / "p").returncode == 0
    assert f"profile of 23 samples: {tmp_path / 'p'}" in command(*base[:-1], "--profile", tmp_path / "p").stdout
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    wrong = command(*base, "--profile", tmp_path / "full")
    assert (wrong.returncode, wrong.stdout) == (2, "") and "no part of a profile" in wrong.stderr


def test_real_files() -> None:
    ds = cw.folder(data_folder("imagenet")).apply("imagenet-train")
    expected = stream(loader(ds, batch_size=16), 2)
    small, feed = (loader(ds, batch_size=16, profile=True, memory_limit=limit) for limit in ("32MiB", None))
    assert stream(small, 2) == stream(feed, 2) == expected
    assert sorted(feed.profile().ids) == list(range(len(ds)))
