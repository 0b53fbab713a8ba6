#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Images per second, ours beside other loaders: the RandomResizedCrop(224) + flip + normalize training job,
JPEG files in the page cache to float32 CHW batches of 64 in host memory.

All alternate in one run, each in a process and an environment of its own, pinned to the same cores: one
warm-up epoch, then whole timed epochs. A peer that cannot be installed or fails is in the table with the
reason. docs/performance.md says what the columns mean.

usage: bench/peers.py [--peers torch,dali] [--cores 1,2] [--rounds 5] [--epochs 2]
                      [--images 1760] [--data DIR] [--json OUT] [--markdown docs/performance.md]
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

from job import MEAN, STD, Crop, Job, files, random_box
from report import rewrite, text_table
from rows import OURS, PEERS, ROOT, CannotRun, Row, python_of, reason, surroundings

TIMEOUT_S = 900
Key = tuple[str, str]  # a row's name and a variant


def data_folder(given: str | None, least: int, scratch: pathlib.Path) -> tuple[str, str]:
    """A class folder of links to JPEGs, and what they are in words: those given, DATA_DIR's ImageNet files, or
    made ones. Repeated up to `least` images: some loaders drain at the end of an epoch, and it must not be short."""
    real = pathlib.Path(os.environ.get("DATA_DIR") or ROOT.parent / "shared" / "data") / "imagenet"
    made = ROOT / "demo-data"
    folder, kind = (given, "files") if given else (str(real), "ImageNet files")
    if not given and not real.is_dir():
        folder, kind = str(made), "made photographs"
        if not made.is_dir():
            subprocess.run([sys.executable, str(ROOT / "tools/make_photos.py"), folder], check=True)
    listed = files(folder)
    copies = max(1, round(least / max(1, len(listed))))
    for file in listed:
        flat = file.parent == pathlib.Path(folder)  # then the class is the beginning of the name
        links = scratch / (file.name.split("_")[0] if flat else file.parent.name)
        links.mkdir(parents=True, exist_ok=True)
        for k in range(copies):
            (links / f"{k}_{file.name}").symlink_to(os.path.realpath(file))
    return str(scratch), f"{len(listed)} {kind}" + (f", each {copies} times" if copies > 1 else "")


def call(row: Row, task: str, job: Job, extra: str) -> dict[str, Any]:
    """One process of measure.py, pinned to the first `job.cores` cores that this process may use."""
    cores = sorted(os.sched_getaffinity(0))[: job.cores]
    pinned = ["taskset", "-c", ",".join(map(str, cores))]
    command = [python_of(row), str(ROOT / "bench/measure.py"), task, json.dumps(job._asdict()), extra]
    try:
        done = subprocess.run(
            pinned + command, capture_output=True, text=True, env=surroundings(row, job.cores), timeout=TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        raise CannotRun(f"{task}: no end after {TIMEOUT_S} s") from None
    if done.returncode:
        raise CannotRun(f"{task}: {reason(done.stderr) if done.stderr else f'exit status {done.returncode}'}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


class Bench:
    """The data in the form that each row takes, and which rows have failed so far."""

    def __init__(self, rows: list[Row], data: str, cores: int, scratch: pathlib.Path) -> None:
        self.rows = rows
        self.scratch = scratch
        self.images = len(files(data))
        self.failed: dict[Key, str] = {}
        self.prepared: dict[Key, dict[str, Any]] = {}
        self.pixels: dict[Key, dict[str, Any]] = {}
        self._data = data
        self._cores = cores
        self._references: dict[str, Any] = {}

    def runnable(self) -> list[tuple[Row, Key]]:
        every = [(row, (row.name, variant)) for row in self.rows for variant in row.variants]
        return [(row, key) for row, key in every if key not in self.failed]

    def job(self, row: Row, variant: str, cores: int) -> Job:
        data = self.prepared.get((row.name, variant), {}).get("data", self._data)
        return Job(row.peer, variant, data, cores)

    def prepare(self) -> None:
        """Environments, prepared formats, and a check of the pixels: all that is outside the clock."""
        for row, key in self.runnable():
            try:
                if row.own_format:
                    self.prepared[key] = self._prepare(row, key)
                self.pixels[key] = self._compare(row, key)
            except CannotRun as error:
                self.failed[key] = str(error)
                print(f"{' '.join(filter(None, key))} cannot run: {error}", file=sys.stderr)

    def measure(self, row: Row, key: Key, cores: int, epochs: int) -> dict[str, Any] | None:
        try:
            run = call(row, "speed", self.job(row, key[1], cores), str(epochs))
            if min(run["images_per_epoch"], run["images_in_warm_up"]) < self.images:
                raise CannotRun(f"an epoch had {run['images_per_epoch']:.0f} images of {self.images}")
            return run
        except CannotRun as error:
            self.failed[key] = str(error)
            print(f"{' '.join(filter(None, key))} cannot run: {error}", file=sys.stderr)
            return None

    def _prepare(self, row: Row, key: Key) -> dict[str, Any]:
        folder = self.scratch / "-".join(filter(None, key))
        folder.mkdir()
        begin = time.perf_counter()
        made = call(row, "prepare", Job(row.peer, key[1], self._data, self._cores), str(folder))
        megabytes = sum(file.stat().st_size for file in folder.iterdir()) / 1e6
        return {**made, "seconds": time.perf_counter() - begin, "megabytes": megabytes}

    def _compare(self, row: Row, key: Key) -> dict[str, Any]:
        """Largest and mean difference to torchvision on Pillow, in steps of 8 bits."""
        import numpy as np

        asked = self._crops()
        images, crops = self._images(row, key[1], asked)
        if crops not in self._references:
            self._references[crops], _ = self._images(PEERS["torch"][0], "", crops)
        expected = self._references[crops]
        mean, std = (np.array(values, np.float64).reshape(3, 1, 1) for values in (MEAN, STD))
        steps = [np.rint((values * std + mean) * 255).astype(int) for values in (images, expected)]
        difference = np.abs(steps[0] - steps[1])
        return {
            "max": int(difference.max()),
            "mean": float(difference.mean()),
            "equal_to_the_bit": bool(np.array_equal(images, expected)),
            "images": len(images),
            "boxes": "given" if crops == asked else "its own: drawn, or the whole image",
        }

    def _images(self, row: Row, variant: str, crops: str) -> tuple[Any, str]:
        import numpy as np

        with tempfile.TemporaryDirectory(dir=self.scratch) as folder:
            (pathlib.Path(folder) / "crops.json").write_text(crops)
            answer = call(row, "pixels", self.job(row, variant, self._cores), folder)
            return np.load(pathlib.Path(folder) / "images.npy"), json.dumps(answer["crops"])

    def _crops(self, count: int = 64) -> str:
        """The same for all: distinct files, with boxes and flips of the training job."""
        from PIL import Image

        distinct = sorted({os.path.realpath(file) for file in files(self._data)})
        random.seed(7)
        crops = []
        for path in distinct[:: max(1, len(distinct) // count)][:count]:
            with Image.open(path) as image:
                crops.append(Crop(path, *random_box(*image.size), random.random() < 0.5))
        return json.dumps(crops)


def summary(runs: list[dict[str, Any]], ours: list[dict[str, Any]], torch: list[dict[str, Any]]) -> dict[str, Any]:
    """Ratios are medians of the ratios inside each round: the machine's mood of the hour cancels out."""

    def ratio(above: list[dict[str, Any]], below: list[dict[str, Any]]) -> float | None:
        pairs = [a["images_per_s"] / b["images_per_s"] for a, b in zip(above, below, strict=False)]
        return statistics.median(pairs) if pairs else None

    def middle(what: str) -> float:
        return statistics.median(run[what] for run in runs)

    rates = sorted(run["images_per_s"] for run in runs)
    return {
        "median": statistics.median(rates),
        "best": rates[-1],
        "worst": rates[0],
        "spread": (rates[-1] - rates[0]) / statistics.median(rates),
        "ours_to_it": ratio(ours, runs),
        "it_to_torch": ratio(runs, torch),
        "cpu_us_per_image": middle("cpu_us_per_image"),
        "memory_mb": max(run["memory_mb"] for run in runs),
        "first_batch_s": middle("first_batch_s"),
        "first_epoch_images_per_s": middle("first_epoch_images_per_s"),
        "versions": runs[0]["versions"],
        "settings": runs[0]["settings"],
        "rounds": rates if len(rates) < 2 else [run["images_per_s"] for run in runs],
    }


def one_table(bench: Bench, cores: int, rounds: int, epochs: int) -> dict[str, Any]:
    """All rows, alternating. Of a row with several variants, the fastest; the others stand in it."""
    runs: dict[Key, list[dict[str, Any]]] = {}
    for _ in range(rounds):
        for row, key in bench.runnable():
            run = bench.measure(row, key, cores, epochs)
            if run:
                runs.setdefault(key, []).append(run)
    for key in bench.failed:
        runs.pop(key, None)
    table = {}
    for row in bench.rows:
        variants: dict[str, dict[str, Any]] = {}
        for variant in row.variants:
            key = (row.name, variant)
            if key in bench.failed:
                variants[variant] = {"cannot_run": bench.failed[key]}
            else:
                found = summary(runs[key], runs.get(("cutwater", "files"), []), runs.get(("torch", ""), []))
                variants[variant] = found | {
                    "pixels": bench.pixels[key],
                    "made_beforehand": {k: v for k, v in bench.prepared.get(key, {}).items() if k != "data"},
                }
        best = max(variants, key=lambda variant: variants[variant].get("median", 0))
        table[row.name] = {"variant": best, "prepared": row.prepared, **variants[best]}
        if len(variants) > 1:
            table[row.name]["variants"] = variants
    return table


def processor() -> str:
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", default=",".join(PEERS), help=f"of {','.join(PEERS)}; default: all")
    parser.add_argument("--ours", default=",".join(row.name for row in OURS), help="rows of ours; default: all")
    parser.add_argument("--cores", default="1,2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--images", type=int, default=1760, help="per epoch; fewer files are repeated")
    parser.add_argument("--data", help="a folder with a subfolder of JPEGs per class")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--markdown", type=pathlib.Path, help="a document whose table is to be replaced")
    options = parser.parse_args()
    names = [name for name in options.peers.split(",") if name]
    ours = options.ours.split(",")
    unknown = [name for name in names if name not in PEERS] + [n for n in ours if n not in [row.name for row in OURS]]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; peers are {', '.join(PEERS)}")
    rows = [row for row in OURS if row.name in ours] + [row for name in names for row in PEERS[name]]
    if options.data and not files(options.data):
        parser.error(f"--data {options.data}: no JPEG files there")
    counts = [int(count) for count in options.cores.split(",")]
    if max(counts) > len(os.sched_getaffinity(0)):
        parser.error(f"--cores {max(counts)}: this process may use {len(os.sched_getaffinity(0))}")

    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        data, words = data_folder(options.data, options.images, scratch / "data")
        bench = Bench(rows, data, max(counts), scratch)
        bench.prepare()
        report: dict[str, Any] = {
            "data": words,
            "images": bench.images,
            "rounds": options.rounds,
            "epochs": options.epochs,
            "processor": processor(),
            "python": platform.python_version(),
            "cores": {},
        }
        for cores in counts:
            before = os.getloadavg()[0]
            report["cores"][str(cores)] = one_table(bench, cores, options.rounds, options.epochs)
            report.setdefault("load_average_before", []).append(before)
            print(text_table(report, str(cores)), flush=True)
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n")
    if options.markdown:
        rewrite(options.markdown, report)
    wrong = [key[0] for key, found in bench.pixels.items() if key[0] in ours and not found["equal_to_the_bit"]]
    if wrong:
        print(f"other pixels than torchvision: {', '.join(wrong)}", file=sys.stderr)
    return 1 if wrong or ("cutwater", "files") in bench.failed else 0


if __name__ == "__main__":
    sys.exit(main())
