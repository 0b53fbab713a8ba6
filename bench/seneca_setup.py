# SPDX-License-Identifier: Apache-2.0
"""What all parts of seneca.py measure with: the data, the cores, the command, and the sizes of forms."""

from __future__ import annotations

import functools
import os
import pathlib
from typing import Any

from presto_data import data_set
from presto_runs import Command

PIPELINE = "imagenet-train"
PROFILED = 1000  # samples at most: of the 256 that a profile takes by itself, means are known to 10 or 15 %


class Setup:
    pipeline = PIPELINE

    def __init__(self, options: Any, samples: int, scratch: pathlib.Path) -> None:
        scratch.mkdir()
        self.data, self.words, self.samples = data_set(PIPELINE, options.data, samples, scratch / "data")
        self.cores: int = options.cores
        self.rounds: int = options.rounds
        self.quick: bool = options.quick
        self.scratch = scratch
        self.command = Command(options.cores)
        self._bytes: dict[str, float] = {}
        self.pinned = sorted(os.sched_getaffinity(0))[: self.cores]

    @functools.cache  # noqa: B019  (a few of these in a process)
    def profile_number(self, number: int) -> pathlib.Path:
        """Of the data with all cores; each number's is made once."""
        folder = self.scratch / f"profile-{number}"
        self.command("profile", "--data", self.data, "--pipeline", PIPELINE, "--threads", self.cores,
                     "--samples", min(self.samples, PROFILED), "-o", folder)  # fmt: skip
        return folder

    def bytes_of(self, cut: str) -> float:
        """Of a sample in the cache at this cut, on average over all of them."""
        if cut not in self._bytes:
            self._bytes[cut] = self._measured_bytes(cut)
        return self._bytes[cut]

    def _measured_bytes(self, cut: str) -> float:
        run = self.command("run", "--data", self.data, "--pipeline", PIPELINE, "--cache", "12GiB", "--cache-cut", cut,
                           "--threads", self.cores)  # fmt: skip
        form = run["cache"]["by_form"][cut]
        if form["entries"] != self.samples:
            raise RuntimeError(f"only {form['entries']} of {self.samples} samples could be kept at '{cut}'")
        return float(form["bytes"] / form["entries"])

    def plan(self, jobs: int, cache: float, *more: Any, profile: pathlib.Path | None = None) -> dict[str, Any]:
        """What the planner says of a cache; the rest of the plan is not of interest here."""
        made = self.command("plan", "--profile", profile or self.profile_number(0), "--policy", "seneca",
                            "--threads", self.cores, "--jobs", jobs, "--cache", int(cache), *more)  # fmt: skip
        answer: dict[str, Any] = made["cache"]
        return answer

    def run(self, jobs: int, *more: Any) -> list[dict[str, Any]]:
        """What became of so many jobs at once, which share the cores."""
        run = self.command("run", "--data", self.data, "--pipeline", PIPELINE, "--jobs", jobs, "--seed", 5, *more)
        each: list[dict[str, Any]] = run.get("jobs", [run])
        if any(epoch["samples"] != self.samples for job in each for epoch in job["epochs"]):
            raise RuntimeError(f"an epoch did not have {self.samples} samples")
        return each
