# SPDX-License-Identifier: Apache-2.0
"""Stores: samples prepared once, at a stable cut, as tar shards that other tools read as well."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any, Literal

from cutwater import _core
from cutwater.dataset import Dataset, PathLike, whole_number


def store(path: PathLike) -> Dataset:
    """The samples of a store. They stand at its cut, and its pipeline is the one they were made by: further ops
    go on from there."""
    source = _core.open_store(os.fspath(path))
    return Dataset(source, _core.parse(source.pipeline) if source.pipeline else None)


def materialize(
    ds: Dataset,
    cut: int | str,
    codec: str = "none",
    *,
    out: PathLike,
    num_workers: int | Literal["auto"] = "auto",
    progress: bool | None = None,
) -> dict[str, Any]:
    """Runs the ops up to a stable cut on every sample, once, and writes the results to the folder ``out``.

    cut: a number, or the op it follows; the frontier at most, for what is random differs in every epoch.
    codec: "none", "lz4", "zstd:3", "shuffle-zstd:1" (floats), "delta-zstd:1" (uint8).
    progress: a line on stderr; by default where that is a terminal.

    The same call goes on with what was interrupted, to the same bytes. Returns what was written.
    """
    threads = None if num_workers == "auto" else whole_number("num_workers", num_workers, 1, 1024)
    shown = sys.stderr.isatty() if progress is None else progress
    line = _progress_line() if shown else None
    start = time.perf_counter()
    try:
        made = _core.materialize(
            ds.source, ds.pipeline, ds.pipeline.cut(str(cut)), codec, os.fspath(out), threads, line
        )
    finally:
        if shown:
            print(file=sys.stderr)
    return {**made, "seconds": time.perf_counter() - start}


def _progress_line() -> Callable[[int, int, int], None]:
    """Shows what is done, at most ten times a second."""
    last = 0.0

    def show(done: int, samples: int, size: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < 0.1 and done < samples:
            return
        last = now
        print(f"\rmaterialize {done}/{samples}  {size / 1e6:.0f} MB", end="", file=sys.stderr, flush=True)

    return show
