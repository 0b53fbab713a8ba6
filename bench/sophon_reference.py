# SPDX-License-Identifier: Apache-2.0
"""The outside reference: torch's DataLoader, torchvision on Pillow, with the same files over HTTP (nginx where there is
one, else Python's server) across the same link; ours beside it."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from typing import Any

from rows import ROOT
from sophon_net import Refused
from sophon_raw import Http
from sophon_setup import Setup

MBIT, SAMPLES, ROUNDS, EPOCHS = 500, 660, 3, 2


def of_torch(setup: Setup, data: str, http: Http) -> dict[str, float]:
    before = setup.network.sent(http.pid)
    command = [*setup.network.trainer, sys.executable, str(ROOT / "bench/sophon_torch.py"), data, http.url, str(EPOCHS)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise Refused(f"torch's DataLoader: {done.stderr.strip()[-300:]}")
    said = json.loads(done.stdout.splitlines()[-1])
    sent = setup.network.sent(http.pid) - before
    return {"epoch_s": said["epoch_s"], "bytes_per_sample": sent / said["samples"]}


def of_ours(setup: Setup, data: str) -> dict[str, float]:
    with setup.server({"data": data}, 1) as server:
        before = server.sent
        run = setup.trainer(server, "data", "imagenet-train", "sophon", EPOCHS).end()
        sent = server.sent - before
    return {"epoch_s": run["epochs"][-1]["seconds"], "bytes_per_sample": sent / run["samples"]}


def measure(setup: Setup) -> dict[str, Any]:
    setup.network.rate(MBIT)
    data = setup.data("imagenet", SAMPLES)
    rounds: dict[str, list[dict[str, float]]] = {"torch over HTTP": [], "ours": []}
    with Http(data, setup.scratch / "http", setup.network) as http:
        for _ in range(ROUNDS):
            rounds["torch over HTTP"].append(of_torch(setup, data, http))
            rounds["ours"].append(of_ours(setup, data))
    return {
        "mbit": MBIT,
        "server": http.name,
        "rows": {
            name: {key: statistics.median(run[key] for run in runs) for key in runs[0]} for name, runs in rounds.items()
        },
        "rounds": rounds,
    }


def text(found: dict[str, Any]) -> list[str]:
    lines = [f"{found['mbit']} Mb/s, the last of {EPOCHS} epochs; files by {found['server']}"]
    for name, row in found["rows"].items():
        lines.append(f"  {name:<16} {row['epoch_s']:6.2f} s, {row['bytes_per_sample'] / 1e3:6.1f} kB a sample")
    return lines


def failed(found: dict[str, Any]) -> bool:
    """Whether it is the faster one, or spares the link."""
    ours, theirs = found["rows"]["ours"], found["rows"]["torch over HTTP"]
    return any(theirs[key] < ours[key] for key in ours)
