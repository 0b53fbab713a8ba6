# SPDX-License-Identifier: Apache-2.0
"""How long it takes until the last of several jobs has had all its epochs: processes on the same cores that begin
together, torch's loaders or ours around one daemon's cache."""

from __future__ import annotations

import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import time
from typing import Any

from rows import OURS, PEERS, ROOT, surroundings
from seneca_servers import cpu_of, daemon, lru, pinned
from seneca_setup import Setup
from seneca_sums import error_of, makespan, samples_of_bytes, split_text, verdict

JOBS, EPOCHS, BATCH = 4, 3, 64
SAMPLES = 3960  # of an epoch: what a job takes to begin is then little
PROFILES = 3  # the plan is that of the middle one
CACHED = 0.4  # of the samples as pixels: the cache's bytes
WANTED = 2.5  # against torch
AS_PREDICTED = 0.1  # of what is measured
TORCH_ROUNDS = 3  # at most: it takes the longest by far
TORCH_WORKERS = (1, 2)  # of bench/peers/torch.py: 1 is in the process itself
ENGINE = "ours, without a cache"
OWN = "ours"
LRU = "encoded files, LRU"
NOTHING = "source=0"  # a split that keeps no stable form


def together(setup: Setup, requests: list[dict[str, Any]]) -> dict[str, Any]:
    """All jobs, from the word on which they begin to the last one's end. Getting ready is outside the clock."""
    row = PEERS["torch"][0] if requests[0]["loader"] == "torch" else OURS[0]
    jobs = [
        subprocess.Popen(
            [*pinned(setup), sys.executable, str(ROOT / "bench/seneca_job.py"), json.dumps(request)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=surroundings(row, setup.cores),
        )
        for request in requests
    ]  # fmt: skip
    try:
        if any(job.stdout and job.stdout.readline() != "ready\n" for job in jobs):
            raise RuntimeError(f"a job did not get ready: {requests[0]}")
        begin = time.perf_counter()
        for job in jobs:
            assert job.stdin
            job.stdin.write("go\n")
            job.stdin.flush()
        answers = [json.loads(job.stdout.readline()) for job in jobs if job.stdout]
        seconds = time.perf_counter() - begin
    finally:
        for job in jobs:
            job.kill()
            job.communicate()
    if any(answer["samples"] != EPOCHS * setup.samples for answer in answers):
        raise RuntimeError("a job did not have all samples")
    samples = sum(answer["samples"] for answer in answers)
    return {
        "makespan_s": seconds,
        "cpu_us_per_sample": 1e6 * sum(answer["cpu_s"] for answer in answers) / samples,
        "samples": samples,
        "epochs_s": [statistics.mean(times) for times in zip(*(a["epochs_s"] for a in answers), strict=True)],
        "books": [answer["cache"] for answer in answers],
    }


def torchs(setup: Setup, workers: int) -> dict[str, Any]:
    request = {"loader": "torch", "data": setup.data, "workers": workers, "epochs": EPOCHS}
    return together(setup, [request] * JOBS)


def ours(setup: Setup, cache: int, alike: bool = False, served: Any = daemon, **options: Any) -> dict[str, Any]:
    """With no cache where it has no bytes. Jobs that draw alike can share augmented samples, too."""
    common = {"batch_size": BATCH, "num_workers": max(1, setup.cores // JOBS), **options}

    def run(name: str | None) -> dict[str, Any]:
        common["cache"] = name
        requests = [
            {"loader": "ours", "data": setup.data, "pipeline": setup.pipeline, "epochs": EPOCHS,
             "options": {**common, "seed": 21 + (0 if alike else job)}}
            for job in range(JOBS)
        ]  # fmt: skip
        return together(setup, requests)

    if not cache:
        return run(None)
    with served(setup, cache) as (name, pid):
        found = run(name)
        found["cpu_us_per_sample"] += 1e6 * cpu_of(pid) / found["samples"]
    hits = sum(book["hits"] for book in found["books"])
    found["hit_rate"] = hits / sum(book["hits"] + book["misses"] for book in found["books"])
    found["cache_bytes"] = max(book["bytes"] for book in found["books"])
    if trouble := next((book["trouble"] for book in found["books"] if book["trouble"]), None):
        raise RuntimeError(f"the cache did not work: {trouble}")
    return found


def planned(setup: Setup, cache: int, profile: pathlib.Path, *more: str) -> dict[str, Any]:
    return setup.plan(JOBS, cache, "--processes", "--page-cache", "warm", "--epochs", EPOCHS, *more, profile=profile)


def forecast(setup: Setup, cache: int, number: int) -> dict[str, Any]:
    """What a profile of its own predicts: seconds without the cache and with it, and the split."""
    profile = setup.profile_number(number)
    plan, none = (planned(setup, size, profile) for size in (cache, 0))
    with_it, without = (makespan(of, setup.samples, JOBS, EPOCHS) for of in (plan, none))
    return {
        "profile": profile,
        "plan": plan,
        "makespan_s": with_it,
        "without_s": without,
        "against_none": without / with_it,
    }


def measure(setup: Setup) -> dict[str, Any]:
    bytes_of = {cut: setup.bytes_of(cut) for cut in ("source", "decode")}
    cache = int(CACHED * setup.samples * bytes_of["decode"])
    forecasts = sorted(
        (forecast(setup, cache, number) for number in range(1 if setup.quick else PROFILES)),
        key=lambda one: one["against_none"],
    )
    middle = forecasts[len(forecasts) // 2]
    plan = middle["plan"]
    same = planned(setup, cache, middle["profile"], "--same-seed")
    papers = split_text(samples_of_bytes(plan, bytes_of, cache, setup.samples))
    alike = plan["paper"]["augmented"] > 0
    contenders: dict[str, Any] = {
        **{f"torch, {workers} per job": lambda w=workers: torchs(setup, w) for workers in TORCH_WORKERS},
        ENGINE: lambda: ours(setup, 0),
        "encoded files": lambda: ours(setup, cache, cache_cut="source", order="strict"),
        LRU: lambda: ours(setup, cache, served=lru, cache_cut="source", order="strict"),
        "paper's partition": lambda: ours(setup, cache, alike, cache_split=papers, order="ready"),
        OWN: lambda: ours(setup, cache, cache_split=plan["split"] or NOTHING, order="ready"),
        "ours, jobs of one seed": lambda: ours(setup, cache, True, cache_split=same["split"] or NOTHING, order="ready"),
    }
    if not shutil.which("redis-server"):
        del contenders[LRU]
    rounds: dict[str, list[dict[str, Any]]] = {name: [] for name in contenders}
    for number in range(1 if setup.quick else setup.rounds):
        for name, run in contenders.items():
            is_torch = name.startswith("torch")
            if number == 0 or not is_torch or (number < TORCH_ROUNDS and name == fastest_torch(rounds)):
                rounds[name].append(run())
    best = fastest_torch(rounds)
    rows = {name: summary(runs, rounds[OWN]) for name, runs in rounds.items()}
    return {
        "cache_limit": cache,
        "split": plan["split"],
        "split_of_one_seed": same["split"],
        "papers_split": papers,
        "papers_bytes": plan["paper"],
        "rows": rows,
        "torch": best,
        "against_torch": rows[best]["ours_is_faster"],
        "against_none": rows[ENGINE]["ours_is_faster"],
        "predicted_against_none": middle["against_none"],
        "predictions": [{**one, "profile": str(one["profile"])} for one in forecasts],
        "rounds": rounds,
    }


def fastest_torch(rounds: dict[str, list[dict[str, Any]]]) -> str:
    """By its first round: the slower way of torch is not measured again."""
    return min((name for name in rounds if name.startswith("torch")), key=lambda name: rounds[name][0]["makespan_s"])


def summary(runs: list[dict[str, Any]], own: list[dict[str, Any]]) -> dict[str, Any]:
    def middle(what: str) -> float:
        return statistics.median(run[what] for run in runs)

    row = {
        what: middle(what) for what in ("makespan_s", "cpu_us_per_sample", "hit_rate", "cache_bytes") if what in runs[0]
    }
    ratios = [run["makespan_s"] / ours["makespan_s"] for run, ours in zip(runs, own, strict=False)]
    return {**row, "ours_is_faster": statistics.median(ratios), "of_rounds": len(runs)}


def text(found: dict[str, Any]) -> list[str]:
    lines = [
        f"{JOBS} jobs of {EPOCHS} epochs each, processes on the same cores; a cache of "
        f"{found['cache_limit'] / 1e6:.0f} MB in a daemon, the room of {100 * CACHED:.0f} % of the samples as pixels",
        f"  {'':<24} {'makespan':>9} {'ours faster':>12} {'hit rate':>9} {'CPU us/sample':>14} {'cache':>8}",
    ]
    for name, row in found["rows"].items():
        hits = f"{100 * row['hit_rate']:.1f} %" if "hit_rate" in row else "-"
        cache = f"{row['cache_bytes'] / 1e6:.0f} MB" if "cache_bytes" in row else "-"
        lines.append(
            f"  {name:<24} {row['makespan_s']:7.2f} s {row['ours_is_faster']:11.2f}x {hits:>9} "
            f"{row['cpu_us_per_sample']:14.0f} {cache:>8}"
        )
    bytes_of = "-".join(f"{100 * found['papers_bytes'][form]:.0f}" for form in ("encoded", "decoded", "augmented"))
    alike = ", jobs of one seed, so that they can share what is augmented" if not bytes_of.endswith("-0") else ""
    return [
        *lines,
        f"  splits: ours {found['split']}, of one seed {found['split_of_one_seed']} and what is augmented besides; "
        f"the paper's {bytes_of} by bytes{alike}",
        "  page cache only is the row without a cache: the files lie there for all rows. Encoded files: strict order, "
        "in the daemon, where they make way by worth, and in a Redis that keeps what was used last"
        + ("" if LRU in found["rows"] else " (there is none here: NOT measured)"),
        f"  against torch {found['against_torch']:.2f}x (wanted {WANTED}x): "
        f"{verdict(found['against_torch'] >= WANTED)}",
        f"  against ours without a cache {found['against_none']:.2f}x, predicted "
        f"{found['predicted_against_none']:.2f}x (profiles: "
        + ", ".join(f"{one['against_none']:.2f}x" for one in found["predictions"])
        + f"; wanted within {100 * AS_PREDICTED:.0f} %): {verdict(is_as_predicted(found))}",
    ]


def is_as_predicted(found: dict[str, Any]) -> bool:
    return error_of(found["predicted_against_none"], found["against_none"]) <= AS_PREDICTED


def failed(found: dict[str, Any]) -> bool:
    return bool(found["against_torch"] < WANTED) or not is_as_predicted(found)
