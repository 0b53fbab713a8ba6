#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Near the storage: what is promised of a server that sends samples part of the way through their pipeline, measured.
Both sides are on this machine, in network namespaces with a link of a known rate between them. Parts:

  cells      bytes on the wire, epoch seconds and CPU seconds of both sides, by policy, data, bandwidth and threads
  change     a link that becomes slow and fast again while a trainer runs, beside runs that began at these rates
  reference  torch's DataLoader with the same files over HTTP
  tenants    three trainers and one server: bytes saved, beside the best of all static splits of the server
  planner    the time to decide for a million samples
  raw        CPU seconds of the server for a byte as stored, beside nginx

What is not reached is said so, and the exit status is 1. All of it takes a quarter of an hour.

usage: bench/sophon.py [--parts cells,change,reference,tenants,planner,raw] [--kinds imagenet,photos]
                       [--mbits 100,500,2000] [--threads 0,1,2,3,4] [--rounds 1] [--json OUT]
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import signal
import sys
import tempfile
from typing import Any

import sophon_cells
import sophon_change
import sophon_planner
import sophon_raw
import sophon_reference
import sophon_tenants
from peers import processor
from sophon_net import STORAGE_CORES, TRAINER_CORES, Network, Refused
from sophon_setup import Setup

PARTS: dict[str, Any] = {
    "cells": sophon_cells,
    "change": sophon_change,
    "reference": sophon_reference,
    "tenants": sophon_tenants,
    "planner": sophon_planner,
    "raw": sophon_raw,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--kinds", default="imagenet,photos", help="folders of DATA_DIR")
    parser.add_argument("--mbits", default="100,500,2000", help="of the link, in Mb/s")
    parser.add_argument("--threads", default="0,1,2,3,4", help="that run ops near the storage")
    parser.add_argument("--rounds", type=int, default=1, help="of what is close in time")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    names = options.parts.split(",")
    if unknown := [name for name in names if name not in PARTS]:
        parser.error(f"unknown: {', '.join(unknown)}; parts are {', '.join(PARTS)}")

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that nothing is left behind
    not_reached = []
    with tempfile.TemporaryDirectory() as scratch, Network() as network:
        try:
            setup = Setup(options, pathlib.Path(scratch), network)
        except Refused as error:
            parser.error(str(error))
        cores = len(os.sched_getaffinity(0))
        report: dict[str, Any] = {
            "processor": processor(),
            "cores": cores,
            "network": network.words,
            "rounds": options.rounds,
            "load_average_before": os.getloadavg()[0],
        }
        print(f"{cores} cores of {report['processor']}, for both sides; {network.words}")
        print(
            f"cells: the trainer has {len(TRAINER_CORES)} of them, the server {len(STORAGE_CORES)}, which more threads "
            "have to share; other parts: all of them for both",
            flush=True,
        )
        for name in names:
            try:
                found = report[name] = PARTS[name].measure(setup)
            except Refused as error:
                report[name] = {"not_measured": str(error)}
                print(f"\n{name}: NOT measured: {error}", flush=True)
                not_reached.append(name)
                continue
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
