# SPDX-License-Identifier: Apache-2.0
"""Several forms, several loaders and several jobs in one cache: each has the stream that it has without."""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from cache_client import Daemon
from helpers import command, seen, stream, until
from trial_caches import serve

import cutwater as cw

TRAIN = "decode | random_resized_crop(12) | random_horizontal_flip | to_tensor"
RESIZED = "decode | resize(24) | center_crop(20) | random_crop(16) | to_tensor"


def loader(ds: cw.Dataset, **options: Any) -> cw.DataLoader:
    return cw.DataLoader(ds, **{"batch_size": 5, "shuffle": True, "seed": 3, "num_workers": 2} | options)


def cache_of(feed: cw.DataLoader) -> dict[str, Any]:
    cache: dict[str, Any] = feed.stats()["cache"]
    return cache


@pytest.mark.parametrize("pipeline", [TRAIN, RESIZED])
def test_any_split_gives_the_same_stream(photos: Path, pipeline: str) -> None:
    ds = cw.folder(photos).apply(pipeline)
    expected = stream(loader(ds), 3)
    splits = ["source=1", "0=0.30,entropy=0.70", "decode=0.5", "source:lz4=0.2,entropy:zstd:1=0.2,decode=0.6", "1=0"]
    for split in splits:
        for cache in ("50kB", "8MiB"):
            feed = loader(ds, cache=cache, cache_split=split)
            assert stream(feed, 3) == expected, (split, cache)
            books = cache_of(feed)
            assert sum(form["hits"] for form in books["by_form"].values()) == books["hits"]


def test_a_split_says_what_it_did(photos: Path) -> None:
    ds = cw.folder(photos).apply(TRAIN)
    with loader(ds, cache="8MiB", cache_split="source=0.5,decode:lz4=0.5") as feed:
        stream(feed, 2)
    cache = cache_of(feed)
    assert set(cache["by_form"]) == {"source", "decode:lz4"} and cache["cut"] == "decode, source"
    assert sum(form["entries"] for form in cache["by_form"].values()) == cache["entries"] == len(ds)
    assert all(0 < form["entries"] < len(ds) for form in cache["by_form"].values())
    for part in ("50 % of the samples at 'source'", "forms: 'decode:lz4'"):
        assert part in feed.explain()


def test_loaders_share_a_cache(photos: Path) -> None:
    """Also of different pipelines and data sets; what is common to them is made once."""
    cache = cw.cache("8MiB")
    sets = [cw.folder(photos).apply(f"decode | random_resized_crop({size}) | to_tensor") for size in (10, 12)]
    expected = [stream(loader(ds), 2) for ds in sets]
    first = loader(sets[0], cache=cache, cache_cut="decode")
    assert stream(first, 2) == expected[0]
    second = loader(sets[1], cache=cache, cache_cut="decode")
    assert stream(second, 2) == expected[1]
    assert cache_of(second)["misses"] == 0 and cache.stats()["entries"] == len(sets[0])
    resized = [cw.folder(photos).apply(f"decode | resize({size}) | random_crop(16)") for size in (20, 22)]
    for ds in resized:  # two sizes never meet
        feed = loader(ds, cache=cache, cache_cut="resize", job="other")
        assert stream(feed) == stream(loader(ds))
        assert cache_of(feed)["by_form"]["resize"]["entries"] == len(ds)
    part = cw.files(sorted(photos.rglob("*.jpg"))[5:]).apply(TRAIN)
    feed = loader(part, cache=cache, cache_cut="decode")
    assert stream(feed) == stream(loader(part)) and cache_of(feed)["misses"] >= len(part)
    assert repr(cache) == "cutwater.cache('8MiB')" and cache.stats()["trouble"] is None


def test_two_versions_of_a_file_never_meet(photos: Path, tmp_path: Path) -> None:
    files = sorted(photos.rglob("*.jpg"))[:6]
    paths = [Path(shutil.copy(file, tmp_path / f"{i}.jpg")) for i, file in enumerate(files)]
    cache = cw.cache("8MiB")
    before = stream(loader(cw.files(paths).apply(TRAIN), cache=cache))
    for path, other in zip(paths, reversed(files), strict=True):
        shutil.copy(other, path)
    changed = cw.files(paths).apply(TRAIN)
    after = stream(loader(changed, cache=cache))
    assert after == stream(loader(changed)) != before


def test_fresh_forms_are_shared_by_loaders_that_draw_alike(photos: Path) -> None:
    """Side by side, in every epoch; each has its own stream, and another seed never meets them."""
    ds = cw.folder(photos).apply(TRAIN)
    expected = {seed: stream(loader(ds, seed=seed), 3) for seed in (3, 4)}
    for cut in (None, "decode", "source"):
        cache = cw.cache("8MiB")
        got: list[Any] = [None] * 3
        feeds = [loader(ds, cache=cache, cache_cut=cut, seed=seed, num_workers=1) for seed in (3, 3, 4)]

        def run(k: int, feeds: list[cw.DataLoader] = feeds, got: list[Any] = got) -> None:
            got[k] = stream(feeds[k], 3)

        threads = [threading.Thread(target=run, args=(k,)) for k in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert got == [expected[3], expected[3], expected[4]]
        books = [cache_of(feed) for feed in feeds]
        assert not books[2]["by_form"].get("random_horizontal_flip (fresh)", {"hits": 0})["hits"]
        assert all(sum(form["hits"] for form in book["by_form"].values()) == book["hits"] for book in books)
        for feed in feeds:
            feed.close()


def test_what_was_cleared_is_made_again_while_the_consumer_is_busy(photos: Path, tmp_path: Path) -> None:
    """Two batches are wanted, and then nothing for a while: what the cache lacks is made by whoever has time."""
    ds = cw.folder(photos).apply(TRAIN)
    expected = stream(loader(ds), 3)
    (tmp_path / "own").mkdir(mode=0o700)
    with Daemon(tmp_path / "own" / "cache.sock") as daemon:
        feed = loader(ds, cache=f"unix:{daemon.path}", cache_cut="decode", prefetch_factor=1)
        got = stream(feed, 2)
        assert cache_of(feed)["made_ahead"] == 0, "in the first epoch all are made anyway, and then nothing is lacking"
        assert daemon.ask("clear", "--all")["entries"] == len(ds)
        third = iter(feed)
        got += [seen(next(third)), seen(next(third))]
        assert until(lambda: daemon.ask("stat")["entries"] == len(ds))
        # Of the third epoch two batches of five were taken, and one more is ready.
        assert until(lambda: cache_of(feed)["hits"] + cache_of(feed)["misses"] == 2 * len(ds) + 3 * 5)
        books = cache_of(feed)
        assert books["made_ahead"] > 0
        assert [*got, *map(seen, third)] == expected
        assert cache_of(feed)["misses"] == books["misses"], "what was left of the epoch came from the cache"


def test_refusals(photos: Path) -> None:
    ds = cw.folder(photos).apply(TRAIN)
    for options, message in (
        ({"cache": "1MiB", "cache_split": "decode=0.7,source=0.4"}, "more than all samples"),
        ({"cache": "1MiB", "cache_split": "random_resized_crop=0.5"}, "past the frontier"),
        ({"cache": "1MiB", "cache_split": "decode"}, "each part must be CUT=SHARE"),
        ({"cache": "1MiB", "cache_split": "decode=1", "cache_cut": "decode"}, "a cut or a split, not both"),
        ({"cache_split": "decode=1"}, "go with cache="),
        ({"job": "mine"}, "go with cache="),
        ({"cache": "tape:1"}, "cache must be a size such as 8GiB, shared, unix:PATH.*got 'tape:1'"),
        ({"cache": ""}, "cache must be a size"),
    ):
        with pytest.raises(ValueError, match=message):
            loader(ds, **options)


def test_a_cache_that_does_not_answer_is_one_warning(photos: Path, tmp_path: Path) -> None:
    ds = cw.folder(photos).apply(TRAIN)
    expected = stream(loader(ds), 2)
    feed = loader(ds, cache=f"unix:{tmp_path / 'nobody'}")
    with pytest.warns(RuntimeWarning) as warned:
        assert stream(feed, 2) == expected
    assert len(warned) == 1
    assert cache_of(feed)["trouble"] and "the cache does not work" in feed.explain()


def run(*args: object) -> dict[str, Any]:
    done = command("run", "--batch", 5, "--hash", "--json", *args)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def sets_of(result: dict[str, Any]) -> list[str]:
    return [epoch["set_hash"] for epoch in result["epochs"]]


@pytest.mark.parametrize("how", ["break", "failure", "restored"])
def test_who_has_left_an_epoch_counts_no_more(photos: Path, how: str) -> None:
    """However it was left: others need not keep anything for it."""
    image = (photos / "class0" / "00.jpg").read_bytes()
    ds = cw.memory([image, *([image, b"bad"] if how == "failure" else [image]) * 1000]).apply(TRAIN)
    options: dict[str, Any] = {"cache": cw.cache("8MiB"), "order": "ready", "batch_size": 1, "memory_limit": "1MiB"}
    other = loader(ds, **options, on_error="raise")
    batches = iter(other)
    with loader(ds, **options, seed=4, on_error="skip", max_errors=1.0) as feed:
        mine = iter(feed)
        if how != "failure":
            next(batches)
            next(mine)
            assert cache_of(feed)["jobs"] == 2
        if how == "break":
            del batches
        elif how == "failure":
            with pytest.raises(cw.SampleError):
                list(batches)
        else:
            other.load_state_dict(other.state_dict())
        next(mine)
        assert cache_of(feed)["jobs"] == 1
    if how != "failure":
        rest = sorted(int(sample) for batch in other for sample in batch.ids)
        assert len(set(rest)) == len(rest) == len(ds) - (how == "restored")
    other.close()


@pytest.mark.parametrize("order", ["strict", "ready"])
def test_the_command_runs_jobs(photos: Path, order: str) -> None:
    base = ["--data", photos, "--pipeline", TRAIN, "--epochs", 3, "--order", order, "--threads", 1, "--seed", 5]
    alone = {seed: sets_of(run(*base[:-1], seed)) for seed in (5, 6, 7)}
    for more in ([], ["--cache", "8MiB"], ["--cache", "40kB", "--split", "source=0.5,decode=0.5", "--job", "mine"]):
        done = run(*base, "--jobs", 3, *more)
        assert [sets_of(job) for job in done["jobs"]] == [alone[5], alone[6], alone[7]]
        assert done["samples"] == 9 * 23 == sum(job["samples"] for job in done["jobs"])
        assert [epoch["samples"] for epoch in done["epochs"]] == [69] * 3
        assert "set_hash" not in done["epochs"][0] and done["threads"] == 3
        if more:
            cache = done["cache"]
            for key in ("hits", "misses"):
                assert cache[key] == sum(job["cache"][key] for job in done["jobs"])
            assert cache["by_form"].keys() == {name for job in done["jobs"] for name in job["cache"]["by_form"]}
            assert cache["trouble"] is None
    same = run(*base, "--jobs", 2, "--seeds", "same", "--cache", "8MiB")
    assert [sets_of(job) for job in same["jobs"]] == [alone[5]] * 2
    text = command("run", *base, "--batch", 5, "--jobs", 2, "--cache", "8MiB").stdout
    assert "2 jobs together" in text and "job 2: 69 samples" in text


def test_a_link_is_as_slow_as_it_says(photos: Path) -> None:
    """What was delivered cannot have come faster than the rate, however many jobs read; the link's clock starts a
    moment before the run's."""
    bytes_of_data = sum(path.stat().st_size for path in photos.rglob("*.jpg"))
    base = ["--data", photos, "--pipeline", TRAIN, "--epochs", 1]
    plain = run(*base)
    for jobs, flags in ((1, []), (2, ["--seeds", "same", "--threads", 1])):
        done = run(*base, "--jobs", jobs, "--link", f"{4 * bytes_of_data}B/s", *flags)
        assert done["seconds"] >= jobs * 0.24
        assert done["wire_bytes"] >= jobs * bytes_of_data
        for job in done.get("jobs", [done]):
            assert sets_of(job) == sets_of(plain)
    assert "wire_bytes" not in plain


def test_the_command_refuses(photos: Path) -> None:
    base = ["run", "--data", photos, "--pipeline", TRAIN]
    for flags, message in (
        (["--split", "decode=1"], "--split and --job go with --cache"),
        (["--job", "mine"], "--split and --job go with --cache"),
        (["--link", "fast"], "--link must be a rate like 500Mb/s"),
        (["--jobs", 2, "--profile", "x"], "are for one job"),
        (["--cache", "8MiB", "--split", "decode=2"], "CUT=SHARE"),
    ):
        wrong = command(*base, *flags)
        assert wrong.returncode == 2 and message in wrong.stderr, wrong.stderr
    assert command(*base, "--jobs", 0).returncode == 2


def test_a_failing_job_ends_them_all(photos: Path, tmp_path: Path) -> None:
    (tmp_path / "broken.jpg").write_bytes(b"no image")
    for path in sorted(photos.rglob("*.jpg"))[:8]:
        shutil.copy(path, tmp_path)
    done = command("run", "--data", tmp_path, "--pipeline", TRAIN, "--jobs", 3, "--epochs", 50, "--link", "1MB/s")
    assert done.returncode == 1 and "broken.jpg" in done.stderr


def test_what_is_in_redis_is_counted_and_cleared(photos: Path, tmp_path: Path) -> None:
    def ask(verb: str, *words: str) -> Any:
        said = command("cache", verb, *words, "--socket", redis.name, "--json")
        assert said.returncode == 0, said.stderr
        return json.loads(said.stdout)

    ds = cw.folder(photos).apply(TRAIN)
    with serve("redis", 32 << 20, tmp_path) as redis:
        with loader(ds, cache=redis.name, cache_split="source=0.5,decode=0.5") as feed:
            stream(feed, 2)
        forms = ask("ls")["forms"]
        assert len(forms) == 2 and sum(form["entries"] for form in forms) == len(ds)
        assert ask("stat")["entries"] == len(ds)
        assert ask("clear", "--form", forms[0]["form"])["entries"] == forms[0]["entries"]
        assert [form["form"] for form in ask("ls")["forms"]] == [forms[1]["form"]]
        assert "entries" in command("cache", "clear", "--all", "--socket", redis.name).stdout
        assert ask("stat")["entries"] == 0
        assert command("cache", "stat", "--socket", redis.name).stdout.startswith("0 bytes in 0 entries")
    gone = command("cache", "clear", "--all", "--socket", redis.name)
    assert gone.returncode == 1 and str(redis.socket) in gone.stderr  # type: ignore[attr-defined]
