# SPDX-License-Identifier: Apache-2.0
"""A cache in memory: the same stream as without it, within its budget, with books that add up."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from helpers import command, data_folder, stream

import cutwater as cw

TRAIN = "decode | random_resized_crop(12) | random_horizontal_flip | to_tensor"
RESIZED = "decode | resize(24) | center_crop(20) | random_crop(16) | to_tensor"
VAL = "decode | resize(20) | center_crop(16) | to_tensor"
CODECS = ["none", "lz4", "zstd:1", "delta-zstd:1", "shuffle-zstd:1"]


def loader(ds: cw.Dataset, **options: Any) -> cw.DataLoader:
    return cw.DataLoader(ds, **{"batch_size": 5, "shuffle": True, "seed": 3, "num_workers": 2} | options)


def samples(feed: cw.DataLoader, epochs: int) -> list[tuple[int, int, bytes]]:
    """What was delivered, in whichever batches."""
    return sorted(
        (batch.epoch, int(id), image.numpy().tobytes())
        for _ in range(epochs)
        for batch in feed
        for id, image in zip(batch.ids, batch["image"], strict=True)
    )


def bytes_at(ds: cw.Dataset, cut: str, codec: str) -> int:
    """What all samples take at a cut."""
    feed = loader(ds, cache="64MiB", cache_cut=cut, cache_codec=codec, on_error="skip")
    stream(feed)
    return sum(form["bytes"] for form in feed.stats()["cache"]["by_form"].values())


@pytest.mark.parametrize("pipeline", [TRAIN, RESIZED, VAL])
def test_every_cut_codec_and_budget_gives_the_same_stream(photos: Path, pipeline: str) -> None:
    ds = cw.folder(photos).apply(pipeline)
    expected = stream(loader(ds), 3)
    for cut in [cut["name"] for cut in ds.cuts() if cut["stable"]]:
        for codec in CODECS:
            all_bytes = bytes_at(ds, cut, codec)
            for budget, threads in ((0.1, 1), (0.5, 2), (2, 3)):
                options = {"cache": int(budget * all_bytes), "cache_cut": cut, "cache_codec": codec}
                feed = loader(ds, num_workers=threads, **options)
                assert stream(feed, 3) == expected, (cut, codec, budget)
                cache = feed.stats()["cache"]
                assert cache["bytes"] <= cache["limit"] == int(budget * all_bytes)
                assert (cache["cut"], cache["codec"]) == (cut, codec)
                if budget == 2:  # a sample may be read for two epochs at once
                    assert cache["misses"] >= cache["entries"] == len(ds)


@pytest.mark.parametrize("pipeline", [TRAIN, RESIZED])
def test_the_ready_order_has_the_same_samples(photos: Path, pipeline: str) -> None:
    ds = cw.folder(photos).apply(pipeline)
    expected = samples(loader(ds), 2)
    for cache in ("20kB", "1MiB"):
        for cut in ("source", "decode"):
            feed = loader(ds, order="ready", num_workers=3, cache=cache, cache_cut=cut)
            assert samples(feed, 2) == expected


def test_without_fusion_and_on_its_own_choice(photos: Path) -> None:
    ds = cw.folder(photos).apply(RESIZED)
    expected = stream(loader(ds), 2)
    for options in ({"fuse": False}, {"index": "off"}, {"reads_in_flight": 0}, {"memory_limit": "1MiB"}):
        assert stream(loader(ds, cache="1MiB", **options), 2) == expected


def test_books_add_up(photos: Path) -> None:
    ds = cw.folder(photos).apply(RESIZED)
    with loader(ds, cache="30kB", cache_cut="resize", num_workers=1) as feed:
        stream(feed, 4)
    stats = feed.stats()
    assert json.loads(json.dumps(stats)) == stats
    cache, ops = stats["cache"], stats["ops"]
    assert cache["damaged"] == 0
    assert 0 < cache["entries"] < len(ds) and cache["bytes"] <= cache["limit"] == 30_000
    form = cache["by_form"]["resize"]
    assert form["entries"] == cache["entries"] + cache["evicted"] and form["hits"] == cache["hits"] > 0
    # Samples that were kept ran in two parts, then only the second; all others in one.
    whole, first, second = "decode+resize+center_crop+random_crop+to_tensor", "decode+resize", ""
    second = next(name for name in ops if name.endswith("to_tensor") and name != whole)
    assert ops[first]["calls"] + ops[whole]["calls"] == cache["misses"]
    assert ops[second]["calls"] + ops[whole]["calls"] == cache["hits"] + cache["misses"]
    assert cache["hits"] + cache["misses"] >= stats["samples"] == 4 * len(ds)


def test_what_is_kept_is_not_read_again(photos: Path) -> None:
    ds = cw.folder(photos).apply(TRAIN)
    with loader(ds, cache="8MiB", cache_cut="decode", num_workers=1, reads_in_flight=0) as feed:
        stream(feed)
        read = feed.stats()["bytes"]
        stream(feed, 3)
    assert feed.stats()["bytes"] == read == sum(path.stat().st_size for path in photos.rglob("*.jpg"))


def test_bad_files_are_still_bad(photos: Path, tmp_path: Path) -> None:
    good = [str(path) for path in sorted(photos.rglob("*.jpg"))[:9]]
    (tmp_path / "text.jpg").write_text("no image")
    half = Path(good[0]).read_bytes()
    (tmp_path / "half.jpg").write_bytes(half[: len(half) // 2])
    ds = cw.files([*good[:4], tmp_path / "text.jpg", *good[4:], tmp_path / "gone.jpg", tmp_path / "half.jpg"])
    for pipeline in (TRAIN, RESIZED):
        chain = ds.apply(pipeline)
        for policy in ("skip", "substitute"):
            expected = loader(chain, on_error=policy)
            want = stream(expected, 3)
            for cut in ("source", "entropy", "decode"):
                got = loader(chain, on_error=policy, cache="8MiB", cache_cut=cut)
                assert stream(got, 3) == want
                for kind in ("skipped", "substituted"):
                    assert got.stats()[kind] == expected.stats()[kind]
        with pytest.raises(cw.SampleError, match=r"text\.jpg") as raised:
            stream(loader(chain, shuffle=False, cache="8MiB"), 2)
        assert raised.value.op == "decode"


def test_resume_in_mid_epoch(photos: Path) -> None:
    ds = cw.folder(photos).apply(TRAIN)
    plain, feed = loader(ds), loader(ds, cache="300kB", cache_cut="decode", num_workers=3)
    stream(feed)
    batches = iter(plain)
    next(batches)
    feed.load_state_dict(plain.state_dict())
    rest = [batch["image"].tolist() for batch in batches]
    assert [batch["image"].tolist() for batch in feed] == rest
    plain.load_state_dict(feed.state_dict())
    assert stream(plain) == stream(feed)


def test_two_loaders_of_two_pipelines(photos: Path) -> None:
    """Each its own stream and cache, also side by side."""
    sets = [cw.folder(photos).apply(f"decode | resize({size}) | random_crop(16) | to_tensor") for size in (20, 22)]
    expected = [stream(loader(ds), 2) for ds in sets]
    feeds = [loader(ds, cache="1MiB", cache_cut="resize") for ds in sets]
    for _ in range(2):
        pairs = list(zip(*feeds, strict=True))
        assert len(pairs) == 5
    feeds = [loader(ds, cache="1MiB", cache_cut="resize") for ds in sets]
    assert [stream(feed, 2) for feed in feeds] == expected


def test_a_held_source_keeps_a_later_cut(photos: Path) -> None:
    ds = cw.folder(photos).apply(RESIZED)
    held = ds.in_memory("decode")
    for cut in ("decode", "resize", "center_crop", None):
        assert stream(loader(held, cache="1MiB", cache_cut=cut), 2) == stream(loader(ds), 2)
    with pytest.raises(ValueError, match=r"the source stands at cut 2 \('decode'\) already"):
        loader(held, cache="1MiB", cache_cut="entropy")


def test_samples_as_stored(tmp_path: Path) -> None:
    """A pipeline without ops: a cache of files."""
    for i in range(30):
        (tmp_path / f"{i:02}.png").write_bytes(bytes([i]) * 1000)
    ds = cw.folder(tmp_path)
    with loader(ds, cache="1MiB", num_workers=1, reads_in_flight=0) as feed:
        assert stream(feed, 3) == stream(loader(ds), 3)
    assert feed.stats()["cache"]["misses"] == 30


def test_it_says_what_it_chose(photos: Path) -> None:
    ds = cw.folder(photos).apply(RESIZED)
    feed = loader(ds, cache="64MiB")
    stream(feed, 2)
    cache = feed.stats()["cache"]
    assert cache["cut"] in ("source", "entropy", "decode", "resize", "center_crop")
    assert "chosen on 16 samples: it holds all samples" in cache["why"]
    for part in ("cache: at most 64 MiB", f"at cut {cache['cut']!r}", "came from it", cache["why"]):
        assert part in feed.explain()
    assert loader(ds).stats()["cache"] is None


def test_refusals(photos: Path) -> None:
    ds = cw.folder(photos).apply(TRAIN)
    for options, message in (
        ({"cache": "1MiB", "cache_cut": "random_resized_crop"}, r"past the frontier, cut 2 \('decode'\)"),
        ({"cache": "1MiB", "cache_cut": "resize"}, "no cut 'resize'"),
        ({"cache": "1MiB", "cache_codec": "gzip"}, "codec 'gzip' is not known"),
        ({"cache": "900TiB"}, r"cache 900.0 TiB is more than the .* of memory that this process may use"),
        ({"cache": 0}, "cache must be at least 1"),
        ({"cache": "lots"}, "cache"),
        ({"cache_cut": "decode"}, "go with cache="),
        ({"cache_codec": "lz4"}, "go with cache="),
    ):
        with pytest.raises(ValueError, match=message):
            loader(ds, **options)


def test_the_command(photos: Path) -> None:
    base = ["run", "--data", photos, "--pipeline", RESIZED, "--epochs", 3, "--batch", 5, "--hash", "--json"]
    plain = json.loads(command(*base).stdout)
    assert "cache" not in plain
    for more in ([], ["--cache-cut", "resize"], ["--cache-cut", "decode", "--cache-codec", "zstd:1"]):
        done = json.loads(command(*base, "--cache", "1MiB", *more).stdout)
        hashes = [[epoch["stream_hash"] for epoch in run["epochs"]] for run in (plain, done)]
        assert hashes[0] == hashes[1]
        assert done["cache"]["hits"] + done["cache"]["misses"] >= 69 and done["cache"]["entries"] == 23
        assert done["cache"].keys() >= {"by_form", "bytes", "limit", "entries", "cut", "codec"}
    text = command(*base[:-1], "--cache", "1MiB", "--cache-cut", "resize").stdout
    assert "samples came from it; at cut 'resize', codec none (as given)" in text
    wrong = command(*base, "--cache-cut", "resize")
    assert wrong.returncode == 2 and "--split and --job go with --cache" in wrong.stderr


def test_real_files_in_a_cache_too_small_for_them() -> None:
    ds = cw.folder(data_folder("imagenet")).apply("imagenet-train")
    expected = stream(loader(ds, batch_size=16), 2)
    for cut in ("entropy", "decode"):
        assert stream(loader(ds, batch_size=16, cache="20MiB", cache_cut=cut, memory_limit="64MiB"), 2) == expected


# A store as a by-product of the first epoch.


@pytest.mark.parametrize("pipeline", [TRAIN, RESIZED])
def test_the_first_epoch_makes_a_store(photos: Path, tmp_path: Path, pipeline: str) -> None:
    ds = cw.folder(photos).apply(pipeline)
    expected = stream(loader(ds), 3)
    for cut, codec in (("source", "none"), ("entropy", "lz4"), ("decode", "delta-zstd:1"), (None, None)):
        path = tmp_path / f"{cut}-{codec}"
        with loader(ds, store=path, store_cut=cut, store_codec=codec) as feed:
            assert stream(feed, 3) == expected
        store = feed.stats()["store"]
        assert store["state"] == "finished" and store["samples"] == len(ds)
        assert f"store: {path}, cut {store['cut']!r}" in feed.explain()
        again = loader(ds, store=path)
        assert stream(again, 3) == expected and again.stats()["store"]["state"] == "source"
        made = tmp_path / "made"
        cw.materialize(ds, store["cut"], store["codec"], out=made)
        assert {file.name: file.read_bytes() for file in made.iterdir()} == {
            file.name: file.read_bytes() for file in path.iterdir()
        }
        for file in made.iterdir():
            file.unlink()
        made.rmdir()


def test_a_store_with_bad_files_and_with_a_cache(photos: Path, tmp_path: Path) -> None:
    (tmp_path / "text.jpg").write_text("no image")
    ds = cw.files([*sorted(photos.rglob("*.jpg")), tmp_path / "text.jpg"]).apply(RESIZED)
    plain = loader(ds, on_error="skip")
    expected = stream(plain, 3)
    for _ in range(2):
        with loader(ds, on_error="skip", store=tmp_path / "store", store_cut="resize", cache="20kB") as feed:
            assert stream(feed, 3) == expected
        assert feed.stats()["skipped"] == plain.stats()["skipped"]


def test_a_store_that_cannot_be_made_is_a_warning(photos: Path, tmp_path: Path) -> None:
    ds = cw.folder(photos).apply(RESIZED)
    feed = loader(ds, store=tmp_path / "store", store_cut="resize")
    (tmp_path / "store").write_text("in the way")
    with pytest.warns(RuntimeWarning, match="was not made"):
        for _ in range(50):
            stream(feed)
            if feed.stats()["store"]["state"] == "failed":
                break
        stream(feed)
    with pytest.raises(ValueError, match="neither a store nor an empty folder"):
        loader(ds, store=tmp_path / "store")
    with pytest.warns(RuntimeWarning, match="was not made"), loader(ds, store=tmp_path / "other") as feed:
        (tmp_path / "other").write_text("in the way")
        stream(feed)  # the last epoch: it is close() that finds out
    with pytest.raises(ValueError, match="go with store="):
        loader(ds, store_cut="resize")


def test_a_loader_that_is_dropped_is_closed(photos: Path, tmp_path: Path) -> None:
    """By Python, which waits for the store without the GIL; the native destructor would hold it."""
    ds = cw.folder(photos).apply(RESIZED)
    feed = loader(ds, store=tmp_path / "store", store_cut="resize")
    stream(feed)
    core = feed._core
    del feed
    assert core.stats()["store"]["state"] == "finished"
    core.set_epoch(7)
    with pytest.raises(cw.Closed, match="the loader was closed"):
        core.begin()


def test_a_forked_child_lets_go_of_a_store_in_the_making(photos: Path, tmp_path: Path) -> None:
    with loader(cw.folder(photos).apply(RESIZED), store=tmp_path / "store", store_cut="resize") as feed:
        stream(feed)
        child = os.fork()
        if child == 0:
            try:
                feed.close()
            except BaseException:
                os._exit(1)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    assert feed.stats()["store"]["state"] == "finished"


def test_the_command_makes_a_store(photos: Path, tmp_path: Path) -> None:
    base = ["run", "--data", photos, "--pipeline", RESIZED, "--batch", 5, "--hash", "--json"]
    hashes = []
    for more in ([], ["--store", tmp_path / "store", "--store-cut", "resize"], ["--store", tmp_path / "store"]):
        done = json.loads(command(*base, *more).stdout)
        hashes.append([epoch["stream_hash"] for epoch in done["epochs"]])
    assert hashes[0] == hashes[1] == hashes[2] and done["store"]["state"] == "source"
    assert command("verify", tmp_path / "store").returncode == 0
    wrong = command(*base, "--store-cut", "resize")
    assert wrong.returncode == 2 and "go with --store" in wrong.stderr
