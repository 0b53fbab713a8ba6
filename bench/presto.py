#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What to prepare once: the choice made from a profile, beside the best of all strategies when each is measured.

For every pipeline: a profile (timed), the choice for 1, 5 and 90 epochs, then every strategy really run: its build,
its first epoch and later ones, and the hash of what it delivers, which must be that of the unprepared pipeline.
The best strategy, full preprocessing and the unprepared pipeline stand beside the same pipeline in torch's
DataLoader and in tf.data, in one table. Data lies in the page cache.

usage: bench/presto.py [--pipelines imagenet,cubepp-jpg,cubepp-png,imagenet-train] [--epochs 1,5,90] [--rounds 5]
                       [--strategies all|chosen] [--samples 660] [--cores 2] [--peers torch,tfdata] [--data DIR]
                       [--json OUT]
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import random
import statistics
import sys
import tempfile
import time
from typing import Any

from job import Job
from peers import call, processor
from presto_data import DATA_OF, data_set
from presto_runs import Command, Runs, Strategy
from rows import PEERS, CannotRun

REGRET_WANTED = 0.05
CLOSE = 1.5  # strategies whose time is within this of the best are measured again


def total_seconds(measured: dict[str, Any], epochs: int) -> float:
    """From nothing to the end of the last epoch."""
    return float(measured["build_s"] + measured["first_epoch_s"] + (epochs - 1) * measured["epoch_s"])


def slower_than(chosen: dict[str, Any], other: dict[str, Any], epochs: int) -> float:
    """How many times as long the chosen one took: the median of the ratios inside each round that both were in,
    so that the machine's mood of the hour cancels out."""
    common = chosen["rounds"].keys() & other["rounds"].keys()
    ratios = (total_seconds(chosen["rounds"][n], epochs) / total_seconds(other["rounds"][n], epochs) for n in common)
    return statistics.median(ratios)


def compare(
    plans: dict[int, dict[str, Any]], measured: dict[Strategy, dict[str, Any]], runs: Runs, rounds: int
) -> list[dict[str, Any]]:
    """For each number of epochs: what was chosen, what would have been best, and the regret as a share.

    The best of many that are equally good is the luckiest: it meets the chosen one again, in runs of their own."""
    rows = []
    for epochs, plan in plans.items():
        chosen = Strategy.of(plan["choice"])
        ratios = {other: slower_than(measured[chosen], figures, epochs) for other, figures in measured.items()}
        best = max(ratios, key=lambda strategy: ratios[strategy])
        ratio = ratios[best]
        if ratio > 1:
            pair = runs.again([chosen, best], rounds)
            ratio = slower_than(pair[chosen], pair[best], epochs)
        rows.append(
            {
                "epochs": epochs,
                "chosen": str(chosen),
                "predicted_s": plan["choice"]["total_s"],
                "measured_s": total_seconds(measured[chosen], epochs),
                "best": str(best if ratio > 1 else chosen),
                "best_s": total_seconds(measured[best if ratio > 1 else chosen], epochs),
                "luckiest": str(best),
                "regret_of_luckiest": max(ratios[best] - 1, 0),
                "regret": max(ratio - 1, 0),
            }
        )
    return rows


class PeerRates:
    """Images per second of the same pipeline in other loaders; why not, where one cannot run it."""

    def __init__(self, names: list[str], pipeline: str, data: str, cores: int) -> None:
        self._names, self._pipeline, self._data, self._cores = names, pipeline, data, cores
        self._found: dict[str, Any] = {}

    def one_round(self) -> None:
        for name in self._names:
            row = PEERS[name][0]
            variant = "plain" if self._pipeline == "imagenet-train" else "centred-crop"
            if row.variants == ("",) and variant == "plain":
                variant = ""
            if "cannot_run" in self._found.get(name, {}):
                continue
            try:
                run = call(row, "speed", Job(row.peer, variant, self._data, self._cores), "1")
                self._found.setdefault(name, {"rounds": []})["rounds"].append(run["images_per_s"])
            except CannotRun as error:
                self._found[name] = {"cannot_run": str(error)}

    def figures(self) -> dict[str, Any]:
        return {
            name: rates | {"samples_per_s": statistics.median(rates["rounds"])} if "rounds" in rates else rates
            for name, rates in self._found.items()
        }


def is_compared_with(strategy: Strategy) -> bool:
    """The unprepared pipeline and the plain stores: what the table sets the best beside."""
    return strategy.codec == "none" and strategy.place != "memory"


def measure_all(
    runs: Runs, strategies: list[Strategy], rounds: int, horizons: list[int], peers: PeerRates
) -> dict[Strategy, Any]:
    """A round of all; then, alternating, those that came close to the best for some number of epochs, and those that
    the table compares with; each time, other loaders too."""
    for number in range(rounds):
        contenders = strategies
        if number >= 1:
            measured = runs.figures()
            contenders = [
                strategy
                for strategy in strategies
                if any(
                    total_seconds(measured[strategy], epochs)
                    <= CLOSE * min(total_seconds(other, epochs) for other in measured.values())
                    for epochs in horizons
                )
                or is_compared_with(strategy)
            ]
        # In another order each time: what one leaves behind must not always meet the same one.
        for strategy in random.Random(number).sample(contenders, len(contenders)):
            runs.measure(strategy, number)
        peers.one_round()
    return runs.figures()


def one_pipeline(name: str, options: argparse.Namespace, scratch: pathlib.Path) -> dict[str, Any]:
    data, words, count = data_set(name, options.data, options.samples, scratch / "data")
    command = Command(options.cores)
    begin = time.perf_counter()
    command("profile", "--data", data, "--pipeline", name, "--threads", options.cores, "-o", scratch / "profile")
    profile_s = time.perf_counter() - begin
    horizons = [int(epochs) for epochs in options.epochs.split(",")]
    plans = {
        epochs: command("plan", "--profile", scratch / "profile", "--policy", "presto", "--epochs", epochs, "--threads",
                        options.cores, "--memory", options.memory, "--page-cache", "warm")
        for epochs in horizons
    }  # fmt: skip
    first = plans[horizons[0]]
    # Rows that the machine's page cache makes the same are one strategy; what grows or does not fit is no candidate.
    strategies = sorted({Strategy.of(row) for row in [first["choice"], *first["alternatives"]] if row["feasible"]})
    if options.strategies == "chosen":
        chosen = {Strategy.of(plan["choice"]) for plan in plans.values()}
        strategies = [one for one in strategies if one in chosen or is_compared_with(one)]
    runs = Runs(command, name, data, count, scratch, options.memory)
    peers = PeerRates(options.peers.split(",") if options.peers else [], name, data, options.cores)
    measured = measure_all(runs, strategies, options.rounds, horizons, peers)
    unprepared = next(strategy for strategy in strategies if strategy.place == "none")
    rates = {strategy: count / figures["epoch_s"] for strategy, figures in measured.items()}
    stores = [strategy for strategy in strategies if strategy.place == "store" and strategy.codec == "none"]
    full = max(stores, key=lambda strategy: strategy.cut)
    best = max(rates, key=lambda strategy: rates[strategy])
    best_store = max(stores, key=lambda strategy: rates[strategy])
    return {
        "pipeline": name,
        "data": words,
        "samples": count,
        "profile_s": profile_s,
        "plans": compare(plans, measured, runs, max(options.rounds, 7)) if options.strategies == "all" else [],
        "strategies": {str(strategy): figures for strategy, figures in sorted(measured.items())},
        "other_bytes": [str(strategy) for strategy, found in runs.hashes.items() if found != runs.hashes[unprepared]],
        "samples_per_s": {
            "unprepared": rates[unprepared],
            "full": rates[full],
            "full_is": str(full),
            "best_store": rates[best_store],
            "best_store_is": str(best_store),
            "best": rates[best],
            "best_is": str(best),
        },
        "peers": peers.figures(),
    }


def text(report: dict[str, Any]) -> str:
    lines = [f"{report['cores']} cores of {report['processor']}; {report['rounds']} alternating rounds"]
    for result in report["pipelines"]:
        lines.append(
            f"\n{result['pipeline']}: {result['data']}; {len(result['strategies'])} strategies, "
            f"profile {result['profile_s']:.1f} s"
        )
        for row in result["plans"]:
            verdict = "within" if row["regret"] <= REGRET_WANTED else "NOT within"
            lines.append(
                f"  {row['epochs']:>3} epochs: chosen {row['chosen']:<28} {row['measured_s']:8.2f} s "
                f"(predicted {row['predicted_s']:8.2f}); best {row['best']:<28} {row['best_s']:8.2f} s: "
                f"{100 * row['regret']:5.1f} %, {verdict} 5 %"
            )
        wrong = result["other_bytes"]
        lines.append(f"  stream hashes: {'all equal' if not wrong else 'OTHER BYTES from ' + ', '.join(wrong)}")
        rate = result["samples_per_s"]
        lines.append(
            f"  samples/s: unprepared {rate['unprepared']:.0f}, full preprocessing on disk {rate['full']:.0f}, "
            f"best on disk {rate['best_store']:.0f} ({rate['best_store_is']}), "
            f"best {rate['best']:.0f} ({rate['best_is']})"
        )
        lines.append(
            f"  best on disk against none {rate['best_store'] / rate['unprepared']:.2f}x, against full "
            f"{rate['best_store'] / rate['full']:.2f}x; best against none {rate['best'] / rate['unprepared']:.2f}x, "
            f"against full {rate['best'] / rate['full']:.2f}x (wanted 3x each)"
        )
        for peer, found in result["peers"].items():
            if "cannot_run" in found:
                lines.append(f"  {peer}: cannot run: {found['cannot_run']}")
            else:
                theirs = found["samples_per_s"]
                lines.append(
                    f"  {peer}: {theirs:.0f} samples/s; ours unprepared {rate['unprepared'] / theirs:.2f}x, "
                    f"best {rate['best'] / theirs:.2f}x"
                )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pipelines", default=",".join(DATA_OF))
    parser.add_argument("--epochs", default="1,5,90")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--strategies", choices=("all", "chosen"), default="all",
                        help="chosen: what the plans choose, the plain stores and the unprepared pipeline alone, for "
                        "the table beside other loaders; whether a better one was there is not asked")  # fmt: skip
    parser.add_argument("--samples", type=int, default=660, help="per epoch; fewer files are repeated")
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--memory", default="8GiB", help="for caches, in the plan and in the runs")
    parser.add_argument("--peers", default="torch,tfdata")
    parser.add_argument("--data", help="a folder of JPEGs for all pipelines instead of DATA_DIR's")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    names = options.pipelines.split(",")
    if unknown := [name for name in names if name not in DATA_OF]:
        parser.error(f"unknown: {', '.join(unknown)}; pipelines are {', '.join(DATA_OF)}")
    report: dict[str, Any] = {
        "processor": processor(),
        "cores": options.cores,
        "rounds": options.rounds,
        "load_average_before": os.getloadavg()[0],
        "pipelines": [],
    }
    for name in names:
        with tempfile.TemporaryDirectory() as scratch:
            report["pipelines"].append(one_pipeline(name, options, pathlib.Path(scratch)))
        print(text({**report, "pipelines": report["pipelines"][-1:]}), flush=True)
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n")
    failed = [row for result in report["pipelines"] for row in result["plans"] if row["regret"] > REGRET_WANTED]
    wrong = [result["pipeline"] for result in report["pipelines"] if result["other_bytes"]]
    return 1 if failed or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
