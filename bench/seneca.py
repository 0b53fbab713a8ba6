#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One cache for several jobs: what is promised of it, measured. The training pipeline of ImageNet, files in the page
cache, all on the same cores. Parts:

  hit-rates  three equal jobs with a cache for 20 % and for 40 % of the samples, beside the bound and the paper
  cells      samples per second as predicted and as measured, by cache size, jobs, storage and consumer rate; and the
             chosen split beside a sweep of others
  makespan   four jobs of three epochs: torch's DataLoaders; ours without a cache, with other splits, with the plan's
  hit-cost   a claim, and a hit in memory, in the daemon's memory and in Redis
  paper      the paper's data sets and machines, simulated

What is not reached is said so, and the exit status is 1. docs/performance.md says how rounds and ratios are taken.

usage: bench/seneca.py [--parts hit-rates,cells,makespan,hit-cost,paper] [--rounds 5] [--samples N] [--cores 2]
                       [--data DIR] [--quick] [--json OUT]
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import sys
import tempfile
from typing import Any

import seneca_cells
import seneca_cost
import seneca_hits
import seneca_makespan
import seneca_paper
from peers import processor
from seneca_setup import Setup

PARTS: dict[str, Any] = {
    "hit-rates": seneca_hits,
    "cells": seneca_cells,
    "makespan": seneca_makespan,
    "hit-cost": seneca_cost,
    "paper": seneca_paper,
}
SAMPLES = 660  # of an epoch, where a part does not need more


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--rounds", type=int, default=5, help="of what is compared in ratios")
    parser.add_argument("--samples", type=int, help="per epoch; fewer files are repeated (default: as each part needs)")
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--data", help="a folder of JPEGs instead of DATA_DIR's")
    parser.add_argument("--quick", action="store_true", help="few cells, one round: to see that all of it runs")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    names = options.parts.split(",")
    if unknown := [name for name in names if name not in PARTS]:
        parser.error(f"unknown: {', '.join(unknown)}; parts are {', '.join(PARTS)}")
    if options.cores > len(os.sched_getaffinity(0)):
        parser.error(f"--cores {options.cores}: this process may use {len(os.sched_getaffinity(0))}")
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.cores])

    with tempfile.TemporaryDirectory() as scratch:
        report: dict[str, Any] = {
            "processor": processor(),
            "cores": options.cores,
            "rounds": options.rounds,
            "load_average_before": os.getloadavg()[0],
        }
        print(f"{options.cores} cores of {report['processor']}", flush=True)
        not_reached = []
        setups: dict[int, Setup] = {}
        for name in names:
            samples = options.samples or (SAMPLES if options.quick else getattr(PARTS[name], "SAMPLES", SAMPLES))
            if samples not in setups:
                setups[samples] = Setup(options, samples, pathlib.Path(scratch) / str(samples))
            setup = setups[samples]
            print(f"\n{name}: {setup.words}", flush=True)
            found = PARTS[name].measure(setup)
            report[name] = {"data": setup.words, "samples": setup.samples, **found}
            print("\n".join([f"\n{name}: " + PARTS[name].text(found)[0], *PARTS[name].text(found)[1:]]), flush=True)
            if PARTS[name].failed(found):
                not_reached.append(name)
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n")
    if not_reached:
        print(f"\nnot all of it was reached: {', '.join(not_reached)}")
    return 1 if not_reached else 0


if __name__ == "__main__":
    sys.exit(main())
