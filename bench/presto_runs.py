# SPDX-License-Identifier: Apache-2.0
"""Strategies of preparing a pipeline, really run: build, first epoch, later epochs, and what they deliver."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import statistics
import subprocess
import time
from typing import Any, NamedTuple

from rows import ROOT

EPOCHS = 4  # of one run: the first, and three later ones
BATCH = 64


class Strategy(NamedTuple):
    """A cut, how its samples are kept, and where."""

    cut: int
    cut_name: str
    codec: str
    place: str  # none, store or memory

    @staticmethod
    def of(row: dict[str, Any]) -> Strategy:
        return Strategy(row["cut"], row["cut_name"], row["codec"], row["place"])

    def __str__(self) -> str:
        return "unprepared" if self.place == "none" else f"{self.place}:{self.cut_name}/{self.codec}"


class Command:
    """The command, pinned to the first cores that this process may use; each call returns its JSON."""

    def __init__(self, cores: int) -> None:
        self.cores = cores
        self._pin = ["taskset", "-c", ",".join(map(str, sorted(os.sched_getaffinity(0))[:cores]))]

    def __call__(self, *arguments: Any) -> dict[str, Any]:
        command = [*self._pin, str(ROOT / "build/bin/cutwater"), *map(str, arguments), "--json"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer


class Runs:
    """All runs of one pipeline's strategies so far."""

    def __init__(
        self, command: Command, pipeline: str, data: str, samples: int, scratch: pathlib.Path, memory: str
    ) -> None:
        self._command = command
        self._pipeline = pipeline
        self._data = data
        self._samples = samples
        self._scratch = scratch
        self._memory = memory
        self._builds: dict[Strategy, list[float]] = {}
        self._first: dict[Strategy, list[float]] = {}
        self._later: dict[Strategy, list[float]] = {}
        self._bytes: dict[Strategy, int] = {}
        self.hashes: dict[Strategy, list[str]] = {}  # of what each delivers, epoch by epoch

    def measure(self, strategy: Strategy) -> None:
        """One more run. A store is built anew, timed, and removed: all of them would not fit every disk."""
        arguments = self._arguments(strategy)
        run = self._run(*arguments, "--epochs", EPOCHS)
        seconds = [epoch["seconds"] for epoch in run["epochs"]]
        if any(epoch["samples"] != self._samples for epoch in run["epochs"]):
            raise RuntimeError(f"{strategy}: an epoch did not have {self._samples} samples")
        self._first.setdefault(strategy, []).append(seconds[0])
        self._later.setdefault(strategy, []).append(statistics.median(seconds[1:]))
        if strategy.place == "memory":
            self._bytes[strategy] = run["cache"]["bytes"]
        if strategy not in self.hashes:
            run = self._run(*arguments, "--epochs", 2, "--hash")
            self.hashes[strategy] = [epoch["stream_hash"] for epoch in run["epochs"]]
        shutil.rmtree(self._store(strategy), ignore_errors=True)

    def figures(self) -> dict[Strategy, dict[str, Any]]:
        return {
            strategy: {
                "build_s": statistics.median(self._builds.get(strategy, [0.0])),
                "first_epoch_s": statistics.median(first),
                "epoch_s": statistics.median(self._later[strategy]),
                "bytes": self._bytes.get(strategy, 0),
                "rounds_s": self._later[strategy],
            }
            for strategy, first in self._first.items()
        }

    def _run(self, *arguments: Any) -> dict[str, Any]:
        how = ["--batch", BATCH, "--seed", 5, "--threads", self._command.cores]
        return self._command("run", *arguments, "--pipeline", self._pipeline, *how)

    def _arguments(self, strategy: Strategy) -> list[Any]:
        if strategy.place == "none":
            return ["--data", self._data]
        if strategy.place == "memory":
            return ["--data", self._data, "--cache", self._memory, "--cache-cut", strategy.cut, "--cache-codec",
                    strategy.codec]  # fmt: skip
        store = self._store(strategy)
        begin = time.perf_counter()
        made = self._command("materialize", "--data", self._data, "--pipeline", self._pipeline, "--cut", strategy.cut,
                             "--codec", strategy.codec, "--threads", self._command.cores, "-o", store)  # fmt: skip
        self._builds.setdefault(strategy, []).append(time.perf_counter() - begin)
        self._bytes[strategy] = made["bytes"]
        return ["--data", store]

    def _store(self, strategy: Strategy) -> pathlib.Path:
        return self._scratch / f"store-{strategy.cut}-{strategy.codec.replace(':', '')}"
