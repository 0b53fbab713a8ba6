# SPDX-License-Identifier: Apache-2.0
"""What all peers share: the clock, the books, and the line of JSON that peers.py reads."""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
BATCH = 64


def arguments() -> tuple[str, int, int]:
    """Data folder, cores, timed epochs."""
    return sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


def report(
    start: float, epochs: int, epoch: Callable[[], Iterable[Any]], max_pixel_difference: Callable[[], int]
) -> None:
    """Runs a warm-up epoch and the timed ones. Every batch is touched, so that it must really be there."""
    touched = 0.0

    def consume() -> tuple[int, float]:
        nonlocal touched
        count, first = 0, 0.0
        for images, _ in epoch():
            first = first or time.perf_counter()
            count += len(images)
            touched += float(images[:, :, ::64, ::64].sum())
        return count, first

    _, first = consume()
    cpu = cpu_seconds()
    begin = time.perf_counter()
    images = sum(consume()[0] for _ in range(epochs))
    seconds = time.perf_counter() - begin
    cpu = cpu_seconds() - cpu
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(
        json.dumps(
            {
                "images_per_s": images / seconds,
                "first_batch_s": first - start,
                "cpu_us_per_image": 1e6 * cpu / images,
                "rss_mb": (own.ru_maxrss + children.ru_maxrss) / 1024,
                "max_pixel_difference": max_pixel_difference(),  # last: it may import a lot
                "touched": touched,
            }
        )
    )


def cpu_seconds() -> float:
    """Of this process and of its children, also of those still running."""
    ticks = os.sysconf("SC_CLK_TCK")
    total = 0.0
    pids = [os.getpid()]
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat") as file:
                fields = file.read().rsplit(") ", 1)[1].split()
            with open(f"/proc/{pid}/task/{pid}/children") as file:
                pids.extend(int(child) for child in file.read().split())
        except FileNotFoundError:
            continue
        total += (int(fields[11]) + int(fields[12])) / ticks
    return total
