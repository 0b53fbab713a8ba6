#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reading from storage: files and tar shards, cold and warm, with many reads in flight and without.

usage: bench/reading.py [--samples 2000] [--bytes 110000] [--workers 2] [--rounds 5] [--folder DIR] [--pipeline TEXT]
                        [--json OUT]

Writes its own data into a folder on the disk that is to be measured, or, with --pipeline (such as "imagenet-train"),
takes the images of --images. Before each cold round, the page cache forgets the files (posix_fadvise DONTNEED).
Each round is the second epoch of a loader. Prints the median samples per second.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import pathlib
import shutil
import statistics
import tarfile
import tempfile
import time

import numpy as np

import cutwater as cw


def forget(paths: list[pathlib.Path]) -> None:
    """Drops the files from the page cache."""
    for path in paths:
        fd = os.open(path, os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def write_data(root: pathlib.Path, options: argparse.Namespace) -> tuple[list[pathlib.Path], list[pathlib.Path]]:
    """The same samples as files and as tar shards, on the disk and not only in the page cache."""
    rng = np.random.default_rng(1)
    images = sorted(p for p in options.images.iterdir() if p.suffix.lower() in (".jpg", ".jpeg"))[: options.samples]
    files, shards = [], []
    (root / "files").mkdir()
    for i in range(options.samples):
        path = root / "files" / f"{i:06d}.jpg"
        if options.pipeline:
            shutil.copyfile(images[i % len(images)], path)
        else:
            path.write_bytes(rng.bytes(options.bytes))
        files.append(path)
    for begin in range(0, options.samples, 1000):
        shards.append(root / f"shard-{begin // 1000:03d}.tar")
        with tarfile.open(shards[-1], "w") as shard:
            for path in files[begin : begin + 1000]:
                content = path.read_bytes()
                member = tarfile.TarInfo(path.name)
                member.size = len(content)
                shard.addfile(member, io.BytesIO(content))
    os.sync()
    return files, shards


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--bytes", type=int, default=110_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--pipeline", default="")
    parser.add_argument(
        "--images", type=pathlib.Path, default=pathlib.Path(os.environ.get("DATA_DIR", ".")) / "imagenet"
    )
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()

    results: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
        files, shards = write_data(pathlib.Path(scratch), options)
        sources = {"files": (cw.files(files), files), "tar": (cw.tar([str(s) for s in shards]), shards)}

        def measure(kind: str, reads: int, cold: bool) -> float:
            source, stored = sources[kind]
            ds = source.apply(options.pipeline) if options.pipeline else source
            loader = cw.DataLoader(
                ds,
                batch_size=50,
                shuffle=True,
                num_workers=options.workers,
                output="numpy",
                on_error="skip",
                reads_in_flight=reads,
            )
            for _ in loader:  # threads, buffers and, for the warm case, files are there
                pass
            if cold:
                forget(stored)
            begin = time.perf_counter()
            count = sum(len(batch.ids) for batch in loader)
            seconds = time.perf_counter() - begin
            loader.close()
            return count / seconds

        cases = [(kind, reads, cold) for cold in (True, False) for kind in sources for reads in (32, 0)]
        rounds: dict[tuple[str, int, bool], list[float]] = {case: [] for case in cases}
        for _ in range(options.rounds):
            for case in cases:
                rounds[case].append(measure(*case))
    print(f"{options.samples} samples, {options.workers} workers, pipeline '{options.pipeline or 'as stored'}'")
    for (kind, reads, cold), rates in rounds.items():
        name = f"{kind}, {'cold' if cold else 'warm'}, {reads or 'no'} reads in flight"
        results[name] = {"median": statistics.median(rates), "worst": min(rates), "best": max(rates)}
        print(f"  {name:38} {statistics.median(rates):8.0f} samples/s ({min(rates):.0f}..{max(rates):.0f})")
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
