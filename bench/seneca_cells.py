# SPDX-License-Identifier: Apache-2.0
"""What the planner predicts for jobs that share a cache, beside what becomes of it: cells of cache size, number of
jobs, storage rate and consumer rate. Storage is a link of that rate, a consumer one that takes its time. A
machine that others share is now faster, now slower: each cell is planned by a profile that is made right before it, and
what is predicted is the mean of that and of what one says that is made right after it."""

from __future__ import annotations

import itertools
import random
import statistics
from typing import Any, NamedTuple

from seneca_setup import Setup
from seneca_sums import epochs_for, error_of, is_named_right, later_hit_rate, later_rate, regret, split_text, verdict

BATCH = 30  # epochs are whole batches: a consumer takes as long for a part of one
LATER_S = 2.5  # that later epochs take at least, where ten of them do
CACHES = (0.2, 0.8, 3.0)  # of the bytes of the encoded files
JOBS = (1, 4)
# Of the rate of all cores without a cache: slow ones bound, fast ones do not, and what lies between is the plan's.
STORAGE = (0.4, 1.5)
CONSUMERS = (1.1, 0.0)  # all jobs' together; 0: as fast as samples come
ERROR_WANTED, NAMED_WANTED, REGRET_WANTED = 0.10, 0.90, 0.05
DUELS = 5  # rounds in which the chosen split meets the luckiest of all


class Cell(NamedTuple):
    cache: int
    jobs: int
    storage: int  # bytes per second
    consumer: float  # samples per second of each job; 0: no bound

    def __str__(self) -> str:
        consumer = f"{self.consumer:.0f}/s each" if self.consumer else "no consumer"
        return f"{self.cache / 1e6:5.0f} MB, {self.jobs} jobs, {self.storage / 1e6:4.0f} MB/s, {consumer}"

    def for_plan(self) -> list[Any]:
        return ["--storage-rate", f"{self.storage}B/s", *(["--consumer", self.consumer] if self.consumer else [])]

    def for_run(self, split: str, epochs: int) -> list[Any]:
        step_ms = 1e3 * BATCH / self.consumer if self.consumer else 0
        return ["--cache", self.cache, *(["--split", split] if split else ["--cache-cut", "source"]), "--order",
                "ready", "--link", f"{self.storage}B/s", "--step-ms", step_ms, "--batch", BATCH, "--epochs",
                epochs]  # fmt: skip


def all_cells(setup: Setup) -> list[Cell]:
    """Rates follow from what this machine does without a cache: the same cells are of interest on any."""
    alone = setup.plan(1, 0)["samples_per_s"]
    source = setup.bytes_of("source")
    cells = []
    for cache, jobs, storage, consumer in itertools.product(CACHES, JOBS, STORAGE, CONSUMERS):
        cells.append(
            Cell(
                int(cache * source * setup.samples), jobs, int(storage * alone * source), round(consumer * alone / jobs)
            )
        )
    return cells


def uses(setup: Setup, cell: Cell, jobs: list[dict[str, Any]]) -> dict[str, float]:
    """How much of the time each resource worked, in later epochs; the cores and the link are all jobs' own."""
    later = [epoch for job in jobs for epoch in job["epochs"][1:]]
    seconds = sum(epoch["seconds"] for epoch in later)
    return {
        "cpu": sum(epoch["cpu_s"] for epoch in later) / seconds / setup.cores,
        "storage": sum(epoch["wire_bytes"] for epoch in later) / seconds / cell.storage,
        "consumer": sum(epoch["busy_s"] for epoch in later) / seconds,
    }


def epochs_of(setup: Setup, cell: Cell, plan: dict[str, Any]) -> int:
    return epochs_for(LATER_S, plan["samples_per_s"], setup.samples, cell.jobs)


def one_cell(setup: Setup, cell: Cell, number: int) -> dict[str, Any]:
    """Between the profiles of this number and the next."""

    def planned(by: int) -> dict[str, Any]:
        return setup.plan(cell.jobs, cell.cache, *cell.for_plan(), profile=setup.profile_number(by))

    plan = planned(number)
    jobs = setup.run(cell.jobs, *cell.for_run(plan["split"], epochs_of(setup, cell, plan)))
    measured, use = later_rate(jobs), uses(setup, cell, jobs)
    sides = [plan["samples_per_s"], planned(number + 1)["samples_per_s"]]
    predicted = statistics.mean(sides)
    return {
        "cell": cell._asdict(),
        "in_words": str(cell),
        "split": plan["split"],
        "predicted": predicted,
        "predicted_before_and_after": sides,
        "measured": measured,
        "error": error_of(predicted, measured),
        "predicted_hit_rate": plan["hit_rate"],
        "hit_rate": later_hit_rate(jobs),
        "paper_predicts": plan["paper"]["samples_per_s"],
        "named": plan["bound_by"],
        "use": use,
        "named_right": is_named_right(plan["bound_by"], {plan["bound_by"]: 0.0, **use}),
    }


def other_splits() -> list[str]:
    """Each form alone, and pairs by halves."""
    forms = ("source", "entropy", "decode")
    pairs = (split_text({a: 0.5, b: 0.5}) for a, b in itertools.combinations(forms, 2))
    return [*(split_text({form: 1.0}) for form in forms), *pairs]


def sweep(setup: Setup, cell: Cell, rounds: int, number: int) -> dict[str, Any]:
    """The chosen split beside others, measured; then once more beside the luckiest of them, in runs of their own."""
    plan = setup.plan(cell.jobs, cell.cache, *cell.for_plan(), profile=setup.profile_number(number))
    chosen, epochs = plan["split"], epochs_of(setup, cell, plan)
    splits = list(dict.fromkeys([chosen, *other_splits()]))

    def rate(split: str) -> float:
        return later_rate(setup.run(cell.jobs, *cell.for_run(split, epochs)))

    rates: dict[str, list[float]] = {split: [] for split in splits}
    for number in range(rounds):
        for split in random.Random(number).sample(splits, len(splits)):
            rates[split].append(rate(split))
    luckiest = max(rates, key=lambda split: statistics.median(rates[split]))
    duel: dict[str, list[float]] = {split: [] for split in dict.fromkeys([chosen, luckiest])}
    for number in range(DUELS if luckiest != chosen else 0):
        for split in list(duel)[:: 1 if number % 2 else -1]:
            duel[split].append(rate(split))
    return {
        "in_words": str(cell),
        "chosen": chosen,
        "luckiest": luckiest,
        "rates": rates,
        "duel": duel,
        "regret_of_luckiest": regret(rates[chosen], rates[luckiest]),
        "regret": regret(duel[chosen], duel[luckiest]) if luckiest != chosen else 0.0,
    }


def measure(setup: Setup) -> dict[str, Any]:
    cells = all_cells(setup)
    numbers = itertools.count(1)  # of profiles; the first one is what the cells' rates go by
    rows = [one_cell(setup, cell, next(numbers)) for cell in (cells[::7] if setup.quick else cells)]
    # Where jobs share and the choice matters: a middling cache before slow and before fast storage.
    middling = sorted({cell.cache for cell in cells})[1]
    swept = [cell for cell in cells if cell.jobs > 1 and not cell.consumer and cell.cache == middling]
    return {
        "cells": rows,
        "mean_error": statistics.mean(row["error"] for row in rows),
        "named_right": statistics.mean(row["named_right"] for row in rows),
        "sweeps": [sweep(setup, cell, 2, next(numbers)) for cell in ([] if setup.quick else swept)],
    }


def text(found: dict[str, Any]) -> list[str]:
    lines = [
        f"{'':<40} {'predicted':>9} {'measured':>9} {'error':>7} {'hits':>11}  bound by; use of cpu, storage, consumer"
    ]
    for row in found["cells"]:
        use = ", ".join(f"{100 * value:.0f}" for value in row["use"].values())
        split = row["split"] or "no cache"
        hits = f"{100 * row['predicted_hit_rate']:.0f}/{100 * row['hit_rate']:.0f} %"
        lines.append(
            f"  {row['in_words']:<45} {row['predicted']:9.0f} {row['measured']:9.0f} {100 * row['error']:6.1f}% "
            f"{hits:>11}  {row['named']}{'' if row['named_right'] else ' (NOT so)'}: {use} %; {split}"
        )
    count = len(found["cells"])
    error, named = found["mean_error"], found["named_right"]
    lines.append(
        f"  mean absolute error over {count} cells {100 * error:.1f} % (wanted {100 * ERROR_WANTED:.0f} %): "
        f"{verdict(error <= ERROR_WANTED)}; what bounds named right in {100 * named:.0f} % (wanted "
        f"{100 * NAMED_WANTED:.0f} %): {verdict(named >= NAMED_WANTED)}"
    )
    for row in found["sweeps"]:
        near = "within" if row["regret"] <= REGRET_WANTED else "NOT within"
        lines.append(
            f"  {row['in_words']}: chosen {row['chosen']} of {len(row['rates'])} splits; luckiest {row['luckiest']} "
            f"({100 * row['regret_of_luckiest']:.1f} % faster, {100 * row['regret']:.1f} % in runs of their own): "
            f"{near} 5 %"
        )
    return lines


def failed(found: dict[str, Any]) -> bool:
    return (
        found["mean_error"] > ERROR_WANTED
        or found["named_right"] < NAMED_WANTED
        or any(row["regret"] > REGRET_WANTED for row in found["sweeps"])
    )
