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
        self._rounds: dict[Strategy, dict[int, dict[str, float]]] = {}
        self._bytes: dict[Strategy, int] = {}
        self.hashes: dict[Strategy, list[str]] = {}  # of what each delivers, epoch by epoch

    def measure(self, strategy: Strategy, number: int) -> None:
        """A run of this round. A store is built anew, timed, and removed: all would not fit every disk."""
        begin = time.perf_counter()
        arguments = self._arguments(strategy)
        build_s = time.perf_counter() - begin if strategy.place == "store" else 0.0
        run = self._run(*arguments, "--epochs", EPOCHS)
        seconds = [epoch["seconds"] for epoch in run["epochs"]]
        if any(epoch["samples"] != self._samples for epoch in run["epochs"]):
            raise RuntimeError(f"{strategy}: an epoch did not have {self._samples} samples")
        later_s = statistics.median(seconds[1:])
        times = {"build_s": build_s, "first_epoch_s": seconds[0], "epoch_s": later_s}
        self._rounds.setdefault(strategy, {})[number] = times
        if strategy.place == "memory":
            self._bytes[strategy] = run["cache"]["bytes"]
        if strategy not in self.hashes:
            run = self._run(*arguments, "--epochs", 2, "--hash")
            self.hashes[strategy] = [epoch["stream_hash"] for epoch in run["epochs"]]
        shutil.rmtree(self._store(strategy), ignore_errors=True)

    def again(self, strategies: list[Strategy], rounds: int) -> dict[Strategy, dict[str, Any]]:
        """Figures of these alone, alternating, in runs of their own."""
        apart = Runs(self._command, self._pipeline, self._data, self._samples, self._scratch, self._memory)
        apart.hashes = self.hashes
        for number in range(rounds):
            for strategy in strategies if number % 2 == 0 else strategies[::-1]:
                apart.measure(strategy, number)
        return apart.figures()

    def figures(self) -> dict[Strategy, dict[str, Any]]:
        """Medians of all rounds, and the rounds themselves."""
        return {
            strategy: {
                **{
                    key: statistics.median(times[key] for times in rounds.values())
                    for key in rounds[next(iter(rounds))]
                },
                "bytes": self._bytes.get(strategy, 0),
                "rounds": rounds,
            }
            for strategy, rounds in self._rounds.items()
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
        made = self._command("materialize", "--data", self._data, "--pipeline", self._pipeline, "--cut", strategy.cut,
                             "--codec", strategy.codec, "--threads", self._command.cores, "-o", store)  # fmt: skip
        self._bytes[strategy] = made["bytes"]
        return ["--data", store]

    def _store(self, strategy: Strategy) -> pathlib.Path:
        return self._scratch / f"store-{strategy.cut}-{strategy.codec.replace(':', '')}"
