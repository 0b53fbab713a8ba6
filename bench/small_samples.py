#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small samples are slow: the same bytes as ever more, ever smaller samples, ours beside tf.data.

usage: bench/small_samples.py [--total 512MB] [--sizes 20.5,1.28,0.08,0.01] [--rounds 3] [--cores 1] [--folder DIR]
                              [--json OUT]

Random bytes without any op, in order, in shards: tar for ours, TFRecord for tf.data. An epoch is timed without a
cache (the page cache has forgotten the shards), from the page cache, and from the application cache (ours: cache=;
tf.data: .cache() in memory). tf.data is timed in batches as ours are, and sample by sample as PRESTO did. Each
measurement is a process of its own, pinned to the same cores; rounds alternate; medians are shown.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from typing import Any

MODES = ["no cache", "page cache", "application cache"]
LARGEST_MB, HALVINGS = 20.5, 11  # down to 0.01 MB
BATCH_BYTES, BATCH_SAMPLES = 20_500_000, 64  # a batch is no larger than either
SHARDS = 4


def forget(paths: Iterable[pathlib.Path]) -> None:
    """Drops the files from the page cache."""
    for path in paths:
        fd = os.open(path, os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def batch_of(size: int) -> int:
    return max(1, min(BATCH_SAMPLES, BATCH_BYTES // size))


def parts(count: int) -> list[range]:
    """Which samples are in which shard."""
    bounds = [count * k // SHARDS for k in range(SHARDS + 1)]
    return [range(a, b) for a, b in itertools.pairwise(bounds) if b > a]


# What runs in a process of its own, in the environment of the loader.


def timed(epoch: Callable[[], Iterable[Any]], count: int) -> float:
    begin = time.perf_counter()
    had = sum(len(batch) if getattr(batch, "ndim", 2) > 1 else 1 for batch in epoch())
    seconds = time.perf_counter() - begin
    assert had == count, f"{had} of {count} samples"
    return seconds


def run_cutwater(job: dict[str, Any]) -> list[float]:
    import cutwater as cw

    shards = sorted(pathlib.Path(job["folder"]).glob("*.tar"))
    ds = cw.tar([str(shard) for shard in shards])
    settings = {"batch_size": batch_of(job["size"]), "num_workers": job["cores"], "output": "numpy"}

    def epochs(**more: Any) -> Callable[[], Iterable[Any]]:
        loader = cw.DataLoader(ds, **settings, **more)
        return lambda: (batch["image"] for batch in loader)

    plain = epochs()
    timed(plain, job["count"])
    plain = epochs()  # a new loader has read nothing ahead
    forget(shards)
    times = [timed(plain, job["count"])]
    timed(plain, job["count"])  # now all shards are in the page cache
    times.append(timed(plain, job["count"]))
    cached = epochs(cache=job["count"] * (job["size"] + 1024) + 2**24, cache_cut="source")
    timed(cached, job["count"])
    return [*times, timed(cached, job["count"])]


def run_tfdata(job: dict[str, Any]) -> list[float]:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(job["cores"])
    tf.config.threading.set_inter_op_parallelism_threads(job["cores"])
    shards = sorted(pathlib.Path(job["folder"]).glob("*.tfrecord"))
    options = tf.data.Options()
    options.threading.private_threadpool_size = job["cores"]

    def epochs(cache: bool) -> Callable[[], Iterable[Any]]:
        data = tf.data.TFRecordDataset([str(shard) for shard in shards])
        data = data.map(lambda record: tf.io.decode_raw(record, tf.uint8), num_parallel_calls=job["cores"])
        data = data.cache() if cache else data
        data = data.batch(batch_of(job["size"])) if job["batches"] else data
        data = data.prefetch(2).with_options(options)
        return data.as_numpy_iterator

    plain = epochs(cache=False)
    timed(plain, job["count"])
    forget(shards)
    times = [timed(plain, job["count"])]
    timed(plain, job["count"])
    times.append(timed(plain, job["count"]))
    cached = epochs(cache=True)
    timed(cached, job["count"])
    return [*times, timed(cached, job["count"])]


def write_tfrecords(job: dict[str, Any]) -> list[float]:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    for shard, ids in enumerate(parts(job["count"])):
        with tf.io.TFRecordWriter(f"{job['folder']}/{shard}.tfrecord") as writer:
            for _ in ids:
                writer.write(os.urandom(job["size"]))
    return []


def write_tars(job: dict[str, Any]) -> list[float]:
    import io
    import tarfile

    for shard, ids in enumerate(parts(job["count"])):
        with tarfile.open(f"{job['folder']}/{shard}.tar", "w") as tar:
            for id in ids:
                member = tarfile.TarInfo(f"{id:08d}.jpg")
                member.size = job["size"]
                tar.addfile(member, io.BytesIO(os.urandom(job["size"])))
    return []


JOBS = {"cutwater": run_cutwater, "tf.data": run_tfdata, "tfrecords": write_tfrecords, "tars": write_tars}
ROWS = {"cutwater": ("cutwater", True), "tf.data": ("tf.data", True), "tf.data, one by one": ("tf.data", False)}


# What calls them.


def call(python: str, env: dict[str, str], kind: str, job: dict[str, Any]) -> list[float]:
    from rows import CannotRun, reason

    cores = ",".join(map(str, sorted(os.sched_getaffinity(0))[: job["cores"]]))
    command = ["taskset", "-c", cores, python, __file__, "--job", kind, json.dumps(job)]
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    if done.returncode:
        raise CannotRun(f"{kind}: {reason(done.stderr)}")
    times: list[float] = json.loads(done.stdout.splitlines()[-1])
    return times


def measure(options: argparse.Namespace, size: int, folder: str) -> dict[str, Any]:
    """All rows at one size: the seconds of an epoch in each mode."""
    from rows import OURS, PEERS, python_of, surroundings

    count = max(2 * SHARDS, options.total // size)
    job = {"folder": folder, "size": size, "count": count, "cores": options.cores, "batches": True}
    rows = {"cutwater": OURS[0], "tars": OURS[0], "tf.data": PEERS["tfdata"][0], "tfrecords": PEERS["tfdata"][0]}
    places = {kind: (python_of(row), surroundings(row, options.cores)) for kind, row in rows.items()}
    for kind in ("tars", "tfrecords"):
        call(*places[kind], kind, job)
    os.sync()  # what is still to be written cannot be forgotten
    rounds: dict[str, list[list[float]]] = {name: [] for name in ROWS}
    for _ in range(options.rounds):
        for name, (kind, batches) in ROWS.items():
            rounds[name].append(call(*places[kind], kind, {**job, "batches": batches}))
    for file in pathlib.Path(folder).iterdir():
        file.unlink()
    seconds = {
        name: {mode: statistics.median(times) for mode, times in zip(MODES, zip(*each, strict=True), strict=True)}
        for name, each in rounds.items()
    }
    return {"mb": size / 1e6, "samples": count, "batch": batch_of(size), "seconds": seconds, "rounds": rounds}


def show(result: dict[str, Any]) -> None:
    """Microseconds per sample, and how many times as long tf.data takes."""
    for mode in MODES:
        names = list(ROWS)
        print(f"\n{mode}, {result['cores']} core(s), us per sample:")
        print(f"  {'MB':>7} {'samples':>8}" + "".join(f"{name:>22}" for name in names) + f"{'tf.data / ours':>18}")
        for at in result["sizes"]:
            us = [1e6 * at["seconds"][name][mode] / at["samples"] for name in names]
            cells = "".join(f"{each:22.2f}" for each in us)
            print(f"  {at['mb']:7.3f} {at['samples']:8}{cells}{us[1] / us[0]:18.1f}")


def main() -> None:
    if sys.argv[1:2] == ["--job"]:
        print("\n" + json.dumps(JOBS[sys.argv[2]](json.loads(sys.argv[3]))), flush=True)
        os._exit(0)  # not held up by what a loader does at exit
    import cutwater as cw

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--total", type=lambda text: cw._core.parse_bytes("--total", text), default=512_000_000)
    parser.add_argument("--sizes", default=",".join(str(LARGEST_MB / 2**k) for k in range(HALVINGS + 1)))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()

    result: dict[str, Any] = {"total": options.total, "cores": options.cores, "sizes": []}
    for mb in options.sizes.split(","):
        print(f"{float(mb):.3f} MB", end="… ", flush=True, file=sys.stderr)
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            result["sizes"].append(measure(options, round(float(mb) * 1e6), folder))
    print(file=sys.stderr)
    show(result)
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
