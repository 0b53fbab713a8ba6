# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of seneca.py: what is compared, and how. Standard library only, nothing is run here."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

SATURATED = 0.9  # a resource that works so much of the time bounds, even if another works a little more


def sharing_bound(share: float, jobs: int) -> float:
    """The highest hit rate of equal jobs: a part of the samples stays, and of the rest one job makes each."""
    return 1 - (1 - share) / jobs


def runs_test(order: Sequence[int]) -> float:
    """How many deviations the number of runs (neighbours on the same side of the median) is from that of a random
    order: large and negative where like follows like, large and positive where sides alternate."""
    middle = statistics.median(order)
    sides = [value > middle for value in order if value != middle]
    above = sum(sides)
    below = len(sides) - above
    count = above + below
    runs = 1 + sum(a != b for a, b in itertools.pairwise(sides))
    expected = 1 + 2 * above * below / count
    variance = (expected - 1) * (expected - 2) / (count - 1)
    return (runs - expected) / math.sqrt(variance)


def chance_of(deviations: float) -> float:
    """That a random order is at least so far off, on either side."""
    return math.erfc(abs(deviations) / math.sqrt(2))


def least_chance(tests: Iterable[float]) -> float:
    """That the strangest of so many tests is as strange as it is, by chance."""
    chances = [chance_of(deviations) for deviations in tests]
    return 1 - (1 - min(chances)) ** len(chances)


def error_of(predicted: float, measured: float) -> float:
    """As a share of what was measured."""
    return abs(predicted - measured) / measured


def is_named_right(named: str, use: dict[str, float]) -> bool:
    """Whether what a plan names is the busiest resource of a run, or one that hardly rests."""
    return use[named] >= min(SATURATED, max(use.values()))


def regret(chosen: Sequence[float], other: Sequence[float]) -> float:
    """By which share of its speed the chosen one is slower; inside each round, so that moods cancel out."""
    return max(0.0, statistics.median(o / c for c, o in zip(chosen, other, strict=True)) - 1)


def later_rate(jobs: list[dict[str, Any]]) -> float:
    """Samples per second of all jobs together, each from its second epoch on, while all of them run."""
    later = [epoch for job in jobs for epoch in job["epochs"][1:]]
    return len(jobs) * sum(epoch["samples"] for epoch in later) / sum(epoch["seconds"] for epoch in later)


def later_hit_rate(jobs: list[dict[str, Any]]) -> float:
    later = [epoch for job in jobs for epoch in job["epochs"][1:]]
    hits = sum(epoch["hits"] for epoch in later)
    return hits / max(1, hits + sum(epoch["misses"] for epoch in later))


def epochs_for(seconds: float, rate: float, samples: int, jobs: int) -> int:
    """The first one, and later ones that take about so long altogether: two at least, ten at most."""
    return 1 + min(10, max(2, math.ceil(seconds * rate / (samples * jobs))))


def makespan(plan: dict[str, Any], samples: int, jobs: int, epochs: int) -> float:
    """Seconds that a plan predicts for equal jobs, the first epoch included."""
    first, later = plan["first_epoch_samples_per_s"], plan["samples_per_s"]
    return samples * jobs * (1 / first + (epochs - 1) / later)


def samples_of_bytes(plan: dict[str, Any], bytes_of: dict[str, float], cache: float, samples: int) -> dict[str, float]:
    """The paper's partition of a cache's bytes as shares of the samples: decoded pixels and encoded files."""
    decode = min(1.0, plan["paper"]["decoded"] * cache / bytes_of["decode"] / samples)
    source = min(1 - decode, plan["paper"]["encoded"] * cache / bytes_of["source"] / samples)
    return {"decode": decode, "source": source}


def verdict(reached: bool) -> str:
    return "reached" if reached else "NOT reached"


def split_text(shares: dict[str, float]) -> str:
    """As `cutwater run --split` takes it."""
    return ",".join(f"{cut}={math.floor(share * 1e6) / 1e6:g}" for cut, share in shares.items())
