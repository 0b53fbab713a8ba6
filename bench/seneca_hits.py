# SPDX-License-Identifier: Apache-2.0
"""How many samples of equal jobs come from a cache that holds a part of them; and whether their order is random."""

from __future__ import annotations

import statistics
import threading
from typing import Any

from job import files
from seneca_setup import Setup
from seneca_sums import least_chance, runs_test, sharing_bound, verdict

JOBS, EPOCHS, BATCH = 3, 4, 32
REPEATED = 6  # samples that are just on their way from job to job take room: they must be few beside all
FORM = "decode"
PAPER = {0.2: 0.54, 0.4: 0.66}
WANTED = {0.2: 0.70, 0.4: 0.78}
STRANGE = 0.01  # an order that would come by chance less often is not random


class Course:
    """One job: what it was given, and its books after each epoch."""

    def __init__(self, loader: Any, cache: Any) -> None:
        self._loader = loader
        self._cache = cache
        self.orders: list[list[int]] = []
        self.books: list[tuple[int, int]] = []
        self.resident: list[int] = []  # samples in the cache, batch by batch after the first epoch

    def run(self) -> None:
        with self._loader as loader:
            for epoch in range(EPOCHS):
                self.orders.append([])
                for batch in loader:
                    self.orders[-1] += batch.ids.tolist()
                    if epoch > 0:
                        self.resident.append(self._cache.stats()["entries"])
                cache = loader.stats()["cache"]
                self.books.append((cache["hits"], cache["misses"]))


def rate(books: list[tuple[int, int]]) -> float:
    hits, misses = (sum(column) for column in zip(*books, strict=True))
    return hits / (hits + misses)


def one_share(setup: Setup, share: float) -> dict[str, Any]:
    import cutwater as cw

    listed = [str(file) for file in files(setup.data)] * (1 if setup.quick else REPEATED)
    samples = len(listed)
    room = int(share * samples * setup.bytes_of(FORM))
    cache = cw.cache(room + cw.cache(room).stats()["bytes"])
    ds = cw.files(listed).apply(setup.pipeline)
    courses = [
        Course(
            cw.DataLoader(ds, BATCH, shuffle=True, seed=11 + job, order="ready", output="numpy", cache=cache,
                          cache_cut=FORM, num_workers=max(1, setup.cores // JOBS), prefetch_factor=2),
            cache,
        )
        for job in range(JOBS)
    ]  # fmt: skip
    threads = [threading.Thread(target=course.run) for course in courses]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    orders = [order for course in courses for order in course.orders]
    if any(sorted(order) != list(range(samples)) for order in orders):
        raise RuntimeError("an epoch did not have every sample once")
    first, last = ([course.books[at] for course in courses] for at in (0, -1))
    later = [(b[0] - a[0], b[1] - a[1]) for a, b in zip(first, last, strict=True)]
    tests = [runs_test(order) for order in orders]
    return {
        "share": share,
        "cache_bytes": room,
        "samples": samples,
        "resident": statistics.mean(courses[0].resident) / samples,
        "hit_rate": rate(later),
        "hit_rate_with_the_first_epoch": rate(last),
        "by_job": [rate([job]) for job in later],
        "bound": sharing_bound(share, JOBS),
        "paper": PAPER[share],
        "wanted": WANTED[share],
        "runs_tests": tests,
        "chance": least_chance(tests),
    }


def measure(setup: Setup) -> dict[str, Any]:
    return {"form": FORM, "jobs": JOBS, "epochs": EPOCHS, "shares": [one_share(setup, share) for share in PAPER]}


def text(found: dict[str, Any]) -> list[str]:
    lines = [
        f"{found['jobs']} equal jobs, {found['epochs']} epochs each, samples kept at the cut '{found['form']}'; the "
        "cache has room for a share of all their bytes, besides its books:"
    ]
    for row in found["shares"]:
        by_job = ", ".join(f"{100 * rate:.0f}" for rate in row["by_job"])
        lines.append(
            f"  {100 * row['share']:.0f} % cached: hit rate {100 * row['hit_rate']:.1f} % from the second epoch on "
            f"(by job {by_job}), {100 * row['hit_rate_with_the_first_epoch']:.1f} % in all; bound "
            f"{100 * row['bound']:.1f} %, paper {100 * row['paper']:.0f} %; wanted {100 * row['wanted']:.0f} %: "
            f"{verdict(row['hit_rate'] >= row['wanted'])}"
        )
        random = "random" if row["chance"] >= STRANGE else "NOT random"
        lines.append(
            f"    order: runs tests of {len(row['runs_tests'])} epochs between {min(row['runs_tests']):+.1f} and "
            f"{max(row['runs_tests']):+.1f} deviations; the chance of that is {row['chance']:.2f}: {random}; "
            f"{100 * row['resident']:.1f} % of {row['samples']} samples were resident on average"
        )
    return lines


def failed(found: dict[str, Any]) -> bool:
    return any(row["hit_rate"] < row["wanted"] or row["chance"] < STRANGE for row in found["shares"])
