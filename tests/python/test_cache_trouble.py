# SPDX-License-Identifier: Apache-2.0
"""A cache whose server is killed in the middle of training, or gives other bytes: one warning, the same stream, and
all is well again."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import pytest
from helpers import stream, until
from trial_caches import serve

import cutwater as cw

TRAIN = "decode | random_resized_crop(12) | random_horizontal_flip"


@pytest.mark.parametrize("kind", ["daemon", "redis"])
def test_training_goes_on_and_the_cache_comes_back(kind: str, photos: Path, tmp_path: Path) -> None:
    ds = cw.folder(photos).apply(TRAIN)
    options = {"batch_size": 4, "shuffle": True, "seed": 3, "num_workers": 2}
    plain = cw.DataLoader(ds, **options)
    with serve(kind, 1 << 20, tmp_path) as server, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with cw.DataLoader(ds, **options, cache=server.name, cache_cut="decode") as feed:

            def after_an_epoch() -> dict[str, Any]:
                assert stream(feed) == stream(plain)
                books: dict[str, Any] = feed.stats()["cache"]
                return books

            after_an_epoch()
            before = after_an_epoch()
            assert before["hits"] > 0 and before["trouble"] is None and not told
            server.stop_or_start()
            # Some epochs are made already.
            assert until(lambda: after_an_epoch()["misses"] >= before["misses"] + len(ds))
            without = after_an_epoch()
            assert str(server.name).split(":")[-1].lstrip("/") in without["trouble"]
            server.stop_or_start()
            assert until(lambda: after_an_epoch()["trouble"] is None)
            assert until(lambda: after_an_epoch()["hits"] > without["hits"])
    mine = [str(warning.message) for warning in told if warning.category is RuntimeWarning]
    assert len(mine) == 1, mine


@pytest.mark.parametrize("kind", ["daemon", "redis"])
def test_a_server_that_comes_later_is_found(kind: str, photos: Path, tmp_path: Path) -> None:
    ds = cw.folder(photos).apply(TRAIN)
    with serve(kind, 1 << 20, tmp_path) as server:
        server.stop_or_start()
        with pytest.warns(RuntimeWarning), cw.DataLoader(ds, 4, cache=server.name, cache_cut="decode") as feed:
            expected = stream(cw.DataLoader(ds, 4))
            assert stream(feed) == expected
            server.stop_or_start()
            assert until(lambda: bool(stream(feed)) and feed.stats()["cache"]["hits"] > 0)


def test_other_bytes_than_were_kept_are_told_of_once(photos: Path, tmp_path: Path) -> None:
    ds = cw.folder(photos).apply(TRAIN)
    plain = cw.DataLoader(ds, 4)
    with serve("redis", 32 << 20, tmp_path) as server, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        # One thread: who finds a damaged value drops it before anybody else can find it.
        with cw.DataLoader(ds, 4, cache=server.name, cache_cut="decode", num_workers=1) as feed:

            def after_an_epoch() -> dict[str, Any]:
                assert stream(feed) == stream(plain)
                books: dict[str, Any] = feed.stats()["cache"]
                return books

            assert stream(feed) == stream(plain) and not told
            names = re.findall(rb"cutwater:\{\w+:\w+\}\S+", server.ask("KEYS", "*"))  # type: ignore[attr-defined]
            for name in names[:2]:
                server.ask("SETRANGE", name.decode(), "100", "other bytes")  # type: ignore[attr-defined]
            # Some epochs are made already.
            assert until(lambda: after_an_epoch()["damaged"] == 2)
            after_an_epoch()
            assert feed.stats()["cache"]["trouble"] is None
            assert "other bytes than were kept, 2 times" in feed.explain()
            assert "does not work" not in feed.explain()
            server.stop_or_start()
            assert until(lambda: bool(after_an_epoch()["trouble"]))
            after_an_epoch()  # who gets a batch is told
            assert "does not work" in feed.explain()
    mine = [str(warning.message) for warning in told if warning.category is RuntimeWarning]
    assert len(mine) == 2 and "other bytes than were kept" in mine[0] and "redis" in mine[1], mine
