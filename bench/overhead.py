#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the engine itself costs: samples of 0.01 MB that are only copied into batches, from a source in memory and
from the application cache.

usage: bench/overhead.py [--bytes 10240] [--samples 8192] [--rounds 7] [--workers 1] [--batch 64] [--json OUT]

One process on one core (as many as --workers). Rounds alternate with copying the same bytes in the same order into
batches by memcpy, which no loader can beat. Prints the median microseconds per sample of each, batches included.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import time

import numpy as np

import cutwater as cw


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bytes", type=int, default=10240)
    parser.add_argument("--samples", type=int, default=8192)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.workers])

    rng = np.random.default_rng(1)
    stored = rng.integers(0, 256, (options.samples, options.bytes), np.uint8)
    ds = cw.memory(list(stored), labels=list(range(options.samples)))
    settings = {"batch_size": options.batch, "shuffle": True, "seed": 3, "num_workers": options.workers}
    loader = cw.DataLoader(ds, output="numpy", **settings)
    room = 2 * stored.nbytes + 2**20
    cached = cw.DataLoader(ds, output="numpy", cache=room, cache_cut="source", **settings)

    def ours(feed: cw.DataLoader) -> tuple[float, float]:
        begin, cpu_begin = time.perf_counter(), time.process_time()
        count = sum(len(batch.ids) for batch in feed)
        assert count == options.samples
        return time.perf_counter() - begin, time.process_time() - cpu_begin

    order = rng.permutation(options.samples)
    batch = np.empty((options.batch, options.bytes), np.uint8)
    # One call copies a batch: Python's own cost per sample must not count.
    sources = [np.ascontiguousarray(order[i : i + options.batch]) for i in range(0, len(order), options.batch)]

    def copies() -> float:
        begin = time.perf_counter()
        for ids in sources:
            np.take(stored, ids, axis=0, out=batch[: len(ids)], mode="clip")
        return time.perf_counter() - begin

    def round_us() -> list[float]:
        seconds = [*ours(loader), *ours(cached), copies()]
        return [1e6 * each / options.samples for each in seconds]

    round_us()  # a warm-up, and what fills the cache
    filled = cached.stats()["cache"]
    rounds = list(zip(*(round_us() for _ in range(options.rounds)), strict=True))
    cache = cached.stats()["cache"]
    assert cache["entries"] == options.samples and cache["misses"] == filled["misses"]
    names = ["us", "cpu_us", "cache_us", "cache_cpu_us", "memcpy_us"]
    result = {
        "bytes": options.bytes,
        "batch": options.batch,
        "workers": options.workers,
        **{f"{name}_per_sample": statistics.median(each) for name, each in zip(names, rounds, strict=True)},
        "rounds_us": dict(zip(names, rounds, strict=True)),
    }
    print(f"{options.bytes} bytes, batches of {options.batch}, {options.workers} worker(s), us per sample:")
    for title, name in (
        ("from memory", "us"),
        ("from the application cache", "cache_us"),
        ("memcpy alone", "memcpy_us"),
    ):
        wall, cpu = result["rounds_us"][name], result.get(name.replace("us", "cpu_us") + "_per_sample")
        of_cpu = f", {cpu:.2f} of CPU" if cpu is not None else ""
        print(f"  {title:28} {statistics.median(wall):6.2f} ({min(wall):.2f}..{max(wall):.2f}){of_cpu}")
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
