# SPDX-License-Identifier: Apache-2.0
"""The Seneca paper's data sets and machines, simulated with the product's own planner, order and eviction. What the
paper prints beside it was measured there, or found by its equations; nothing here has run on such a machine."""

from __future__ import annotations

from typing import Any

from seneca_setup import Setup

DATA = {  # images, mean bytes
    "ImageNet-1K": (1_300_000, 114_620),
    "OpenImages": (1_900_000, 315_840),
    "ImageNet-22K": (14_000_000, 91_390),
}
# Samples per second: decode and augment, augment, consumers. Bytes per second: storage, cache, link. The cache's bytes.
MACHINES = {
    "in-house": (2132, 4050, 4550, 500e6, 1.25e9, 1.25e9, 115e9),
    "AWS": (3432, 6520, 9989, 256e6, 1.25e9, 1.25e9, 400e9),
    "Azure": (9783, 12930, 14301, 250e6, 3.75e9, 10e9, 400e9),
}
PRINTED = {  # percent of the cache: encoded, decoded, augmented
    ("ImageNet-1K", "in-house"): (58, 42, 0),
    ("ImageNet-1K", "AWS"): (0, 81, 19),
    ("ImageNet-1K", "Azure"): (0, 48, 52),
    ("OpenImages", "in-house"): (62, 37, 1),
    ("OpenImages", "AWS"): (52, 48, 0),
    ("OpenImages", "Azure"): (5, 95, 0),
    ("ImageNet-22K", "in-house"): (100, 0, 0),
    ("ImageNet-22K", "AWS"): (100, 0, 0),
    ("ImageNet-22K", "Azure"): (100, 0, 0),
}
JOBS = (1, 4)
SIMULATED = 20_000  # samples of each data set: a part of it, with that part of the cache, behaves the same


def one(setup: Setup, data: str, machine: str, jobs: int) -> dict[str, Any]:
    samples, sample_bytes = DATA[data]
    decode, augment, consumer, storage, cache_rate, link, cache = MACHINES[machine]
    count = SIMULATED // 10 if setup.quick else SIMULATED
    found = setup.command(
        "sim", "--samples", samples, "--sample-bytes", sample_bytes, "--decode-rate", decode, "--augment-rate", augment,
        "--consumer", consumer, "--storage-rate", f"{storage:.0f}B/s", "--cache-rate", f"{cache_rate:.0f}B/s",
        "--link-rate", f"{link:.0f}B/s", "--cache", int(cache), "--jobs", jobs, "--epochs", 3, "--scale",
        count / samples,
    )  # fmt: skip
    last, plan = found["epochs"][-1], found["plan"]["cache"]
    return {
        "data": data,
        "machine": machine,
        "jobs": jobs,
        "printed": PRINTED[data, machine],
        "by_its_equations": {
            name: plan["paper"][name] for name in ("encoded", "decoded", "augmented", "samples_per_s")
        },
        "its_split_by_our_model": plan["paper"]["by_our_model"],
        "split": plan["split"],
        "predicted": plan["samples_per_s"],
        "simulated": last["samples_per_s"],
        "hit_rate": last["hit_rate"],
        "bound_by": last["bound_by"],
        "issued_twice": found["issued_twice"],
        "never_issued": found["never_issued"],
    }


def measure(setup: Setup) -> dict[str, Any]:
    return {"cells": [one(setup, data, machine, jobs) for data, machine in PRINTED for jobs in JOBS]}


def text(found: dict[str, Any]) -> list[str]:
    lines = [
        "the paper's data sets and machines, simulated; splits of the cache's bytes as encoded-decoded-augmented",
        f"  {'':<31} {'printed':>10} {'equations':>10} {'they say':>9} {'our model':>10} | "
        f"{'predicted':>9} {'simulated':>10} {'hits':>6}  bound by; our split of the samples",
    ]
    for row in found["cells"]:
        by = row["by_its_equations"]
        split = "-".join(f"{100 * by[name]:.0f}" for name in ("encoded", "decoded", "augmented"))
        lines.append(
            f"  {row['data']:<13} {row['machine']:<9} {row['jobs']} jobs {'-'.join(map(str, row['printed'])):>10} "
            f"{split:>10} {by['samples_per_s']:9.0f} {row['its_split_by_our_model']:10.0f} | {row['predicted']:9.0f} "
            f"{row['simulated']:10.0f} {100 * row['hit_rate']:5.1f}%  {row['bound_by']}; {row['split']}"
        )
    return lines


def failed(found: dict[str, Any]) -> bool:
    return any(row["issued_twice"] or row["never_issued"] for row in found["cells"])
