#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws what is resident over time: three jobs, started one after another, around one daemon that holds a fifth.

usage: bench/residents.py [DATA] [-o docs/cache.svg] [--json OUT] [--samples 1320] [--epochs 3] [--share 0.2]
                          [--split entropy=0.5,decode=0.5]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import pathlib
import subprocess
import tempfile
import time
from collections.abc import Iterator
from typing import Any

from presto_data import data_set
from presto_runs import Command
from residents_svg import draw
from rows import ROOT

PIPELINE = "imagenet-train"
FORMS = ("source", "entropy", "decode")
JOBS = ("first job", "second job", "third job")
BATCH, STEP_MS = 32, 100
POLL_S, APART_S = 0.05, 4.0


@contextlib.contextmanager
def daemon(socket: pathlib.Path, memory: int) -> Iterator[None]:
    """Serves until the block ends."""
    words = [str(ROOT / "build/bin/cutwater"), "cache", "serve", "--socket", str(socket), "--memory", str(memory)]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        try:
            if process.stderr is None or not process.stderr.readline():
                raise RuntimeError(f"{' '.join(words)}: ended")
            yield
        finally:
            process.terminate()


def forms(command: Command, data: str, socket: pathlib.Path) -> dict[str, dict[str, Any]]:
    """What the daemon calls each form, and the bytes of all samples in it."""
    found: dict[str, dict[str, Any]] = {}
    for name in FORMS:
        with daemon(socket, 12 << 30):
            command("run", "--data", data, "--pipeline", PIPELINE, "--cache", f"unix:{socket}", "--cache-cut", name)
            rows = command("cache", "ls", "--socket", socket)["forms"]
        largest = max(rows, key=lambda row: int(row["bytes"]))
        found[largest["form"]] = {"name": name, "bytes": largest["bytes"]}
    return found


def start(data: str, socket: pathlib.Path, job: int, epochs: int, split: str) -> subprocess.Popen[str]:
    words = ["run", "--data", data, "--pipeline", PIPELINE, "--cache", f"unix:{socket}", "--order", "ready",
             "--job", JOBS[job], "--seed", job, "--epochs", epochs, "--batch", BATCH, "--step-ms", STEP_MS,
             "--threads", 1, "--split", split, "--json"]  # fmt: skip
    command = [str(ROOT / "build/bin/cutwater"), *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def watch(command: Command, data: str, socket: pathlib.Path, epochs: int, split: str) -> dict[str, Any]:
    """Starts the jobs and asks the daemon how it is until the last one has ended."""
    running: list[subprocess.Popen[str]] = []
    rows: list[dict[str, Any]] = []
    begin = time.monotonic()
    try:
        while len(running) < len(JOBS) or any(job.poll() is None for job in running):
            now = time.monotonic() - begin
            if len(running) < len(JOBS) and now >= APART_S * len(running):
                running.append(start(data, socket, len(running), epochs, split))
            rows.append({"s": now, **command("cache", "stat", "--socket", socket)})
            time.sleep(POLL_S)
        answers = [json.loads(job.communicate()[0]) for job in running]
    finally:
        for job in running:
            job.kill()  # of no effect on those that have ended
    return {"rows": rows, "caches": [answer["cache"] for answer in answers]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?")
    parser.add_argument("-o", "--output", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--samples", type=int, default=1320)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--share", type=float, default=0.2, help="of all samples' pixels that there is room for")
    parser.add_argument("--split", default="entropy=0.5,decode=0.5", help="forms by share of samples; '': chosen")
    options = parser.parse_args()

    command = Command(2)
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        data, words, samples = data_set(PIPELINE, options.data, options.samples, scratch / "data")
        names = forms(command, data, scratch / "socket")
        pixels = next(form["bytes"] for form in names.values() if form["name"] == "decode")
        with daemon(scratch / "socket", int(options.share * pixels)):
            seen = watch(command, data, scratch / "socket", options.epochs, options.split)
    report = {
        "data": words, "samples": samples, "epochs": options.epochs, "share": options.share, "jobs": JOBS,
        "split": options.split, "step_ms": STEP_MS, "batch": BATCH, "forms": names, **seen,
    }  # fmt: skip
    for job, cache in zip(JOBS, seen["caches"], strict=True):
        rate = cache["hits"] / (cache["hits"] + cache["misses"])
        print(f"{job}: {100 * rate:.0f} % hits")
    if options.json:
        options.json.write_text(json.dumps(report) + "\n")
    if options.output:
        options.output.write_text(draw(report))


if __name__ == "__main__":
    main()
