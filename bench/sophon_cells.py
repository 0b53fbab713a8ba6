# SPDX-License-Identifier: Apache-2.0
"""What goes over the link, how long an epoch takes and whose CPU it costs: policies by data, bandwidth and threads
near the storage. Each side has cores of its own, as two machines have. Ours runs twice: as it measures the link
itself, and told of its rate."""

from __future__ import annotations

import itertools
import random
import statistics
from typing import Any

from sophon_setup import Setup, verdict

OTHERS = ("no-off", "all-off", "resize-off", "paper")
OURS = "sophon"
TOLD = "sophon, told"  # of the link's rate
POLICIES = (*OTHERS, OURS, TOLD)
# Both sides learn what ways cost, and what parts of files are where: the first epoch is shown apart, and where the
# cores bound, that takes some more.
EPOCHS = {2000: 8}
USUAL_EPOCHS = 5
# Samples in an epoch, by rate: as stored it must take a second or so, or starting up is all that is measured.
SAMPLES = {100: 220, 500: 660, 2000: 1320}
WANTED = {"imagenet": 1.9, "photos": 2.5}
AS_MANY = 1.01  # bytes: what was asked for ahead at the end, and the sizes of packets, differ a little
NOISE = 1.10  # of epoch times
CLOSE = 1.25  # to the fastest: what is measured again in later rounds
BUSY = 0.9  # of its time, a link that bounds
SLOW = "all-off"  # sends five times as much, so that the link bounds it: once is enough


def measured(setup: Setup, kind: str, mbit: int, threads: int, policy: str) -> dict[str, float]:
    """One run: a server, a trainer, their bytes and seconds."""
    setup.network.rate(mbit)
    more = ["--link", f"{mbit}Mb/s"] if policy == TOLD else []
    epochs = 1 if policy == SLOW else EPOCHS.get(mbit, USUAL_EPOCHS)
    data = setup.data(kind, SAMPLES.get(mbit, 660))
    with setup.server({"data": data}, threads, apart=True) as server:
        sent, cpu = server.sent, server.cpu_s
        run = setup.trainer(server, "data", "imagenet-train", policy.partition(",")[0], epochs, *more).end()
        sent, cpu = server.sent - sent, server.cpu_s - cpu
    offload, samples = run["offload"], run["samples"]
    asked_for = sum(way["samples"] for way in offload["by_way"].values())  # some of them for an epoch that never was
    later = run["epochs"][1:]
    headers = sent / offload["wire_bytes"]  # and TLS, retransmissions and all else at the interface, beside payload

    def bytes_of(epoch: dict[str, Any]) -> float:
        return float(headers * epoch["wire_bytes"] / epoch["samples"])

    return {
        "bytes_per_sample": statistics.median(map(bytes_of, later)) if later else sent / asked_for,
        "first_epoch_bytes": bytes_of(run["epochs"][0]),  # with what came ahead for the second
        "bytes_of_all_epochs": sent / asked_for,
        "samples": samples / epochs,
        "first_epoch_s": run["epochs"][0]["seconds"],
        "epoch_s": statistics.median(epoch["seconds"] for epoch in later or run["epochs"]),
        "storage_cpu_ms": 1e3 * cpu / asked_for,
        "trainer_cpu_ms": 1e3 * run["cpu_s"] / samples,
        "ran_less": offload["ran_less"] / asked_for,
    }


def middle(runs: list[dict[str, float]]) -> dict[str, float]:
    return {key: statistics.median(run[key] for run in runs) for key in runs[0]}


def one_cell(setup: Setup, kind: str, mbit: int, threads: int) -> dict[str, Any]:
    """All policies once; then, in other orders, ours beside those that came close in time."""
    runs: dict[str, list[dict[str, float]]] = {policy: [] for policy in POLICIES}
    contenders = list(POLICIES)
    for number in range(setup.rounds):
        if number:
            best = min(middle(each)["epoch_s"] for each in runs.values())
            near = [policy for policy in OTHERS if middle(runs[policy])["epoch_s"] <= CLOSE * best]
            contenders = [OURS, TOLD, *(policy for policy in near if policy != SLOW)]
        for policy in random.Random(number).sample(contenders, len(contenders)):
            runs[policy].append(measured(setup, kind, mbit, threads, policy))
    return judged({"data": kind, "mbit": mbit, "threads": threads}, runs)


def judged(cell: dict[str, Any], runs: dict[str, list[dict[str, float]]]) -> dict[str, Any]:
    """With medians, and ours beside the best other policy."""
    rows = {policy: middle(each) for policy, each in runs.items()}
    cell |= {"policies": rows, "rounds": runs}
    for what, key in (("bytes_per_sample", "bytes"), ("epoch_s", "time")):
        best = min(OTHERS, key=lambda policy: rows[policy][what])
        cell[f"best_{key}"] = best
        cell[f"{key}_to_best"] = {ours: rows[ours][what] / rows[best][what] for ours in (OURS, TOLD)}
    raw = rows["no-off"]["bytes_per_sample"]
    cell["less_than_raw"] = {policy: raw / row["bytes_per_sample"] for policy, row in rows.items()}
    return cell


def measure(setup: Setup) -> dict[str, Any]:
    hashes = {kind: same_streams(setup, kind) for kind in setup.kinds}
    cells = []
    for kind, mbit, threads in itertools.product(setup.kinds, setup.mbits, setup.threads):
        cells.append(one_cell(setup, kind, mbit, threads))
        print("\n".join(table([cells[-1]])), flush=True)
    return {"cells": cells, "same_streams": hashes}


def same_streams(setup: Setup, kind: str) -> bool:
    """Whether every policy delivers what local files do."""
    setup.network.rate(1000)
    data = setup.data(kind, 1)
    wanted = setup.local_hash(data)
    with setup.server({"data": data}, 1) as server:
        runs = (setup.trainer(server, "data", "imagenet-train", p.partition(",")[0], 1, "--hash") for p in POLICIES)
        return all(run.end()["epochs"][0]["stream_hash"] == wanted for run in runs)


def table(cells: list[dict[str, Any]]) -> list[str]:
    lines = []
    for cell in cells:
        lines.append(
            f"  {cell['data']}, {cell['mbit']} Mb/s, {cell['threads']} threads: kB a sample in the first and in later "
            "epochs (times less than raw), their seconds, CPU ms of storage and trainer"
        )
        for policy, row in cell["policies"].items():
            lines.append(
                f"    {policy:<13} {row['first_epoch_bytes'] / 1e3:7.1f} {row['bytes_per_sample'] / 1e3:7.1f} "
                f"({cell['less_than_raw'][policy]:4.2f}x)  "
                f"{row['first_epoch_s']:6.2f} {row['epoch_s']:6.2f}  {row['storage_cpu_ms']:5.2f} "
                f"{row['trainer_cpu_ms']:5.2f}"
                + (f"  {100 * row['ran_less']:.0f} % ran less" if row["ran_less"] > 0.005 else "")
            )
    return lines


def worst(cells: list[dict[str, Any]], key: str, ours: str) -> tuple[float, str]:
    """The largest ratio of all cells, and where."""
    cell = max(cells, key=lambda one: one[f"{key}_to_best"][ours])
    return cell[f"{key}_to_best"][ours], (
        f"{cell['data']}, {cell['mbit']} Mb/s, {cell['threads']} threads, beside {cell[f'best_{key}']}"
    )


def is_beaten(cell: dict[str, Any], ours: str) -> bool:
    """Whether another policy has fewer bytes and takes no longer."""
    rows = cell["policies"]
    mine = rows[ours]
    return any(
        AS_MANY * rows[other]["bytes_per_sample"] < mine["bytes_per_sample"]
        and rows[other]["epoch_s"] <= mine["epoch_s"]
        for other in OTHERS
    )


def link_bounds(cell: dict[str, Any]) -> bool:
    """Whether the run as stored waits for the link."""
    raw = cell["policies"]["no-off"]
    return bool(raw["samples"] * raw["bytes_per_sample"] / (cell["mbit"] * 125_000) >= BUSY * raw["epoch_s"])


def saved(cells: list[dict[str, Any]], kind: str, ours: str) -> tuple[float, str]:
    """The least of the cells in which something can be saved, and where: the link bounds and there are threads. None
    of them: nothing was."""
    those = [cell for cell in cells if cell["data"] == kind and cell["threads"] and link_bounds(cell)]
    if not those:
        return 0.0, "the link bounds nowhere"
    cell = min(those, key=lambda one: one["less_than_raw"][ours])
    return cell["less_than_raw"][ours], f"{cell['mbit']} Mb/s, {cell['threads']} threads, of {len(those)} cells"


def verdicts(found: dict[str, Any]) -> list[tuple[bool, str]]:
    cells = found["cells"]
    lines = [(all(found["same_streams"].values()), "every policy delivers the stream of local files")]
    for ours in (OURS, TOLD):
        ratio, where = worst(cells, "bytes", ours)
        over = sum(cell["bytes_to_best"][ours] > AS_MANY for cell in cells)
        lines.append((over == 0, f"{ours}: never more bytes than the best other policy; {over} of {len(cells)} cells "
                                 f"have more, worst {ratio:.3f} ({where})"))  # fmt: skip
        beaten = [cell for cell in cells if is_beaten(cell, ours)]
        lines.append((not beaten, f"{ours}: no other policy has fewer bytes in no more time; {len(beaten)} of "
                                  f"{len(cells)} cells have one"))  # fmt: skip
        ratio, where = worst(cells, "time", ours)
        over = sum(cell["time_to_best"][ours] > NOISE for cell in cells)
        lines.append((over == 0, f"{ours}: epoch time likewise, within {100 * (NOISE - 1):.0f} %; {over} of "
                                 f"{len(cells)} cells are slower, worst {ratio:.2f} ({where})"))  # fmt: skip
        for kind in {cell["data"]: None for cell in cells}:
            times, where = saved(cells, kind, ours)
            wanted = WANTED[kind]
            lines.append((times >= wanted, f"{ours}: {kind} {times:.2f}x less than raw, wherever the link bounds, at "
                                           f"least (wanted {wanted}x; {where})"))  # fmt: skip
    return lines


def text(found: dict[str, Any]) -> list[str]:
    return ["verdicts of all cells", *(f"  {words}: {verdict(held)}" for held, words in verdicts(found))]


def failed(found: dict[str, Any]) -> bool:
    return not all(held for held, _ in verdicts(found))
