#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Resident memory over ten epochs, beside memory_limit and the process's own size before loading.

usage: bench/memory.py [DATA] [--limit 256MiB] [--epochs 10] [--json OUT]
"""

from __future__ import annotations

import argparse
import json
import pathlib
import tempfile

from peers import data_folder

import cutwater as cw


def resident_mb() -> float:
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("no VmRSS in /proc/self/status")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?")
    parser.add_argument("--limit", default="256MiB")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()

    scratch = tempfile.TemporaryDirectory()
    data, _ = data_folder(options.data, pathlib.Path(scratch.name))
    ds = cw.folder(data).apply("imagenet-train")
    own = resident_mb()
    loader = cw.DataLoader(ds, batch_size=64, shuffle=True, memory_limit=options.limit, output="numpy")
    rss = []
    for _ in range(options.epochs):
        for _ in loader:
            pass
        rss.append(resident_mb())
    stats = loader.stats()
    limit = stats["memory"]["limit"] / 2**20
    peak = stats["memory"]["peak"] / 2**20
    print(f"own size before loading {own:.0f} MB, memory_limit {limit:.0f} MB, pool's peak {peak:.0f} MB")
    print("RSS after each epoch, MB:", " ".join(f"{mb:.0f}" for mb in rss))
    print(
        f"highest RSS - own size: {max(rss) - own:.0f} MB; growth from epoch 2 to the last: {rss[-1] - rss[1]:+.1f} MB"
    )
    if options.json:
        options.json.write_text(json.dumps({"own_mb": own, "limit_mb": limit, "rss_mb": rss}, indent=2) + "\n")


if __name__ == "__main__":
    main()
