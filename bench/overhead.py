#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the engine itself costs: samples of 10 KB from memory that are only copied into batches.

usage: bench/overhead.py [--bytes 10240] [--samples 8192] [--rounds 7] [--workers 1] [--batch 64] [--json OUT]

One process on one core (as many as --workers). Rounds alternate with copying the same bytes in the same order into
batches by memcpy, which no loader can beat. Prints the median microseconds per sample of each.
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
    loader = cw.DataLoader(
        ds, batch_size=options.batch, shuffle=True, seed=3, num_workers=options.workers, output="numpy"
    )

    cpu: list[float] = []

    def ours() -> float:
        begin, cpu_begin = time.perf_counter(), time.process_time()
        count = sum(len(batch.ids) for batch in loader)
        assert count == options.samples
        cpu.append(time.process_time() - cpu_begin)
        return time.perf_counter() - begin

    order = rng.permutation(options.samples)
    batch = np.empty((options.batch, options.bytes), np.uint8)
    # One call copies a batch: Python's own cost per sample must not count.
    sources = [np.ascontiguousarray(order[i : i + options.batch]) for i in range(0, len(order), options.batch)]

    def copies() -> float:
        begin = time.perf_counter()
        for ids in sources:
            np.take(stored, ids, axis=0, out=batch[: len(ids)], mode="clip")
        return time.perf_counter() - begin

    for warm_up in (ours, copies):
        warm_up()
    rounds = [(ours(), copies()) for _ in range(options.rounds)]
    per_sample = [[1e6 * seconds / options.samples for seconds in each] for each in zip(*rounds, strict=True)]
    result = {
        "bytes": options.bytes,
        "batch": options.batch,
        "workers": options.workers,
        "us_per_sample": statistics.median(per_sample[0]),
        "cpu_us_per_sample": 1e6 * statistics.median(cpu[1:]) / options.samples,
        "memcpy_us_per_sample": statistics.median(per_sample[1]),
        "rounds_us": per_sample,
    }
    print(
        f"{options.bytes} bytes, batches of {options.batch}, {options.workers} worker(s): "
        f"{result['us_per_sample']:.2f} us per sample ({min(per_sample[0]):.2f}..{max(per_sample[0]):.2f}), "
        f"{result['cpu_us_per_sample']:.2f} us of CPU, "
        f"memcpy alone {result['memcpy_us_per_sample']:.2f} us"
    )
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
