#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Images per second, ours beside other loaders: the RandomResizedCrop(224) training job, files in the
page cache to float32 CHW batches of 64.

All peers alternate in one run, each in a process of its own pinned to the same cores, one warm-up epoch
and whole timed epochs. Reported: median, best and spread of the rounds, the ratio of medians to torch,
time to first batch, resident memory, and how far each peer's pixels are from torchvision on Pillow.

usage: bench/peers.py [--peers torch] [--cores 1,2] [--rounds 5] [--epochs 2] [--data DIR] [--json OUT]
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXTENSIONS = {".jpg", ".jpeg"}
LEAST_FILES = 900


def data_folder(given: str | None, scratch: pathlib.Path) -> tuple[pathlib.Path, str]:
    """A class folder of JPEGs, and what it is in words: given, DATA_DIR's ImageNet files, or made."""
    if given:
        return pathlib.Path(given), given
    real = pathlib.Path(os.environ.get("DATA_DIR") or ROOT.parent / "shared" / "data") / "imagenet"
    if real.is_dir():
        files = sorted(f for f in real.iterdir() if f.suffix.lower() in EXTENSIONS)
        copies = max(1, LEAST_FILES // len(files))
        for file in files:
            folder = scratch / file.name.split("_")[0]
            folder.mkdir(exist_ok=True)
            for k in range(copies):
                (folder / f"{k}_{file.name}").symlink_to(file)
        return scratch, f"{len(files)} ImageNet files, each {copies} times"
    made = ROOT / "demo-data"
    if not made.is_dir():
        subprocess.run([sys.executable, str(ROOT / "tools/make_photos.py"), str(made)], check=True)
    return made, "made photographs (set DATA_DIR for real ones)"


def measure(peer: str, data: pathlib.Path, cores: int, epochs: int) -> dict:
    """One process: a warm-up epoch, then `epochs` timed ones."""
    command = [sys.executable, str(ROOT / "bench/peers" / f"{peer}.py"), str(data), str(cores), str(epochs)]
    pinned = ["taskset", "-c", ",".join(map(str, sorted(os.sched_getaffinity(0))[:cores]))]
    quiet = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    run = subprocess.run(pinned + command, capture_output=True, text=True, env=quiet)
    if run.returncode:
        sys.exit(f"{peer} failed:\n{run.stderr}")
    return json.loads(run.stdout.splitlines()[-1])


def summary(runs: list[dict]) -> dict:
    rates = sorted(run["images_per_s"] for run in runs)
    return {
        "median": statistics.median(rates),
        "best": rates[-1],
        "worst": rates[0],
        "first_batch_s": statistics.median(run["first_batch_s"] for run in runs),
        "rss_mb": max(run["rss_mb"] for run in runs),
        "cpu_us_per_image": statistics.median(run["cpu_us_per_image"] for run in runs),
        "max_pixel_difference": max(run["max_pixel_difference"] for run in runs),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", default="torch")
    parser.add_argument("--cores", default="1,2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--data")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    peers = ["cutwater", *(p for p in options.peers.split(",") if p != "cutwater")]
    unknown = [p for p in peers if not (ROOT / "bench/peers" / f"{p}.py").exists()]
    if unknown:
        parser.error(f"unknown peers: {', '.join(unknown)}")

    with tempfile.TemporaryDirectory() as scratch:
        data, words = data_folder(options.data, pathlib.Path(scratch))
        report = {"data": words, "rounds": options.rounds, "load_average": os.getloadavg()[0], "cores": {}}
        for cores in map(int, options.cores.split(",")):
            runs: dict[str, list[dict]] = {peer: [] for peer in peers}
            for _ in range(options.rounds):
                for peer in peers:
                    runs[peer].append(measure(peer, data, cores, options.epochs))
            rows = {peer: summary(runs[peer]) for peer in peers}
            for row in rows.values():
                row["ratio_to_torch"] = row["median"] / rows["torch"]["median"] if "torch" in rows else None
            report["cores"][cores] = rows
            print(f"\n{cores} core{'s' if cores > 1 else ''}, {words}, {options.rounds} alternating rounds")
            print(
                f"  {'loader':<12}{'images/s':>9}{'worst-best':>14}{'x torch':>9}{'CPU us/img':>12}"
                f"{'first batch':>13}{'RSS':>10}{'max pixel diff':>16}"
            )
            for peer, row in rows.items():
                ratio = f"{row['ratio_to_torch']:.2f}" if row["ratio_to_torch"] else "-"
                spread = f"{row['worst']:.0f}-{row['best']:.0f}"
                print(
                    f"  {peer:<12}{row['median']:>9.0f}{spread:>14}{ratio:>9}{row['cpu_us_per_image']:>12.0f}"
                    f"{row['first_batch_s']:>11.2f} s{row['rss_mb']:>7.0f} MB{row['max_pixel_difference']:>16}"
                )
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
