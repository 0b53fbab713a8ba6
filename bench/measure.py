# SPDX-License-Identifier: Apache-2.0
"""One process of the benchmark: runs one loader in the environment made for it, and prints one line of JSON.

usage: measure.py prepare|speed|pixels JOB EXTRA    (JOB as JSON; called by peers.py, not by hand)
  prepare SCRATCH   lets the peer write the files into its own format, once, outside the clock
  speed EPOCHS      a warm-up epoch, then EPOCHS timed ones
  pixels FOLDER     the images for the crops in FOLDER/crops.json, as FOLDER/images.npy

A peer's file, peers/NAME.py, has

  PACKAGES                     what decides its speed, for the table of versions
  SETTINGS                     how it was set up, in words
  epochs(job)                  returns a function; each call is an epoch, an iterable of float32 CHW batches
  pixels(job, crops)           returns the images for these crops by the same kernels, and the crops: its own
                               where it cannot be told which to take
  prepare(folder, scratch, variant)   returns the path of its own format. Only where it needs one
"""

from __future__ import annotations

import time

START = time.perf_counter()  # before the peer is imported: the time to the first batch has that in it

import importlib  # noqa: E402
import importlib.metadata  # noqa: E402
import importlib.util  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import pathlib  # noqa: E402
import sys  # noqa: E402
from collections.abc import Callable, Iterable, Iterator  # noqa: E402
from typing import Any  # noqa: E402

from job import Crop, Job  # noqa: E402


def load(peer: str) -> Any:
    """peers/torch.py and others, under names that do not hide the libraries they are named after."""
    spec = importlib.util.spec_from_file_location(f"peer_{peer}", pathlib.Path(__file__).parent / f"peers/{peer}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # so that worker processes find its functions
    spec.loader.exec_module(module)
    return module


def processes() -> Iterator[pathlib.Path]:
    """/proc of this process and of all below it."""
    found = [os.getpid()]
    for pid in found:
        folder = pathlib.Path(f"/proc/{pid}")
        try:
            for children in folder.glob("task/*/children"):
                found.extend(int(child) for child in children.read_text().split())
        except OSError:  # it has just ended
            continue
        yield folder


def cpu_seconds() -> float:
    """Of all processes, also of those that have ended."""
    total = 0
    for folder in processes():
        try:
            fields = (folder / "stat").read_text().rsplit(") ", 1)[1].split()
        except OSError:
            continue
        total += sum(map(int, fields[11:15]))
    return total / os.sysconf("SC_CLK_TCK")


def memory_mb() -> float:
    """Proportional set size of all processes: what they share counts once."""
    total = 0
    for folder in processes():
        try:
            lines = (folder / "smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024


def speed(epoch: Callable[[], Iterable[Any]], timed_epochs: int) -> dict[str, Any]:
    """Every batch is touched, so that it must really be there. Between warm-up and clock there is no pause, in
    which a loader that works ahead could fill its queues for nothing."""
    touched = 0.0
    images = 0

    def consume(batch: Any) -> None:
        nonlocal touched, images
        if tuple(batch.shape[1:]) != (3, 224, 224) or "float32" not in str(batch.dtype):
            raise ValueError(f"a batch is {batch.dtype} {tuple(batch.shape)}, not float32 (n, 3, 224, 224)")
        images += len(batch)
        touched += float(batch[:, :, ::64, ::64].sum())

    first, memory = 0.0, 0.0
    begin = time.perf_counter()
    for number, batch in enumerate(epoch()):
        first = first or time.perf_counter() - START
        consume(batch)
        memory = memory_mb() if number == 4 else memory  # in full swing
    warm_up, images, warm_up_s = images, 0, time.perf_counter() - begin
    cpu = cpu_seconds()
    begin = time.perf_counter()
    for _ in range(timed_epochs):
        for batch in epoch():
            consume(batch)
    seconds = time.perf_counter() - begin
    cpu = cpu_seconds() - cpu
    return {
        "images_per_s": images / seconds,
        "images_per_epoch": images / timed_epochs,
        "images_in_warm_up": warm_up,
        "first_epoch_images_per_s": warm_up / warm_up_s,
        "first_batch_s": first,
        "cpu_us_per_image": 1e6 * cpu / images,
        "memory_mb": max(memory, memory_mb()),
        "touched": touched,
    }


def pixels(peer: Any, job: Job, folder: pathlib.Path) -> dict[str, Any]:
    wanted = [Crop(*crop) for crop in json.loads((folder / "crops.json").read_text())]
    images, crops = peer.pixels(job, wanted)
    import numpy as np

    np.save(folder / "images.npy", np.asarray(images, np.float32))
    return {"crops": crops}


def version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:  # ours, imported from the build folder
        return str(importlib.import_module(package).__version__)


def main() -> None:
    task, request, extra = sys.argv[1:]
    job = Job(**json.loads(request))
    peer = load(job.peer)
    if task == "prepare":
        answer = {"data": peer.prepare(job.data, extra, job.variant)}
    elif task == "pixels":
        answer = pixels(peer, job, pathlib.Path(extra))
    else:
        answer = speed(peer.epochs(job), int(extra))
        answer |= {"versions": {package: version(package) for package in peer.PACKAGES}, "settings": peer.SETTINGS}
    print("\n" + json.dumps(answer), flush=True)
    os._exit(0)  # threads of some peers outlive their loader and would keep the process


if __name__ == "__main__":
    main()
