# SPDX-License-Identifier: Apache-2.0
"""Whatever happens to servers and to the network: an epoch is complete and exact, or there is a clear error in time.

Seeded trials of one to three servers, each behind a proxy. A trial is repeated by its number: -k 'exact[137]'.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from pathlib import Path
from threading import Lock, Timer
from typing import Any

import pytest
from helpers import COMMAND, noise, save
from serve_process import Fault, Loop, Proxy, ServeProcess

TRIALS = 200
AT_ONCE = 6
SAMPLES = 60
EPOCHS = 2
PATIENCE = 3
DEADLINE = 60  # seconds, of a whole run: nobody waits for servers longer than PATIENCE at a time
PIPELINE = "decode | random_resized_crop(24) | random_horizontal_flip | to_tensor"
POLICIES = ["auto", "sophon", "none", "no-off", "all-off", "resize-off", "paper"]
NETWORK_FAULTS = ["corrupt", "cut", "truncate", "stall", "trickle"]
SERVER_FAULTS = ["kill", "restart", "stop"]
FIRST_WORDS = 4000  # bytes that certainly have gone through when the data set is known


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of some kB, in classes."""
    root = tmp_path_factory.mktemp("served")
    for k in range(SAMPLES):
        (root / f"class{k % 3}").mkdir(exist_ok=True)
        save(root / f"class{k % 3}" / f"{k:03}.jpg", noise(60 + k, 150 - k, seed=k, block=3))
    return root


def run(data: str, stream: tuple[object, ...], *options: object) -> subprocess.CompletedProcess[str]:
    words = [COMMAND, "run", "--json", "--hash", "--data", data, "--pipeline", PIPELINE, *stream, *options]
    return subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=DEADLINE)


@cache
def truth(folder: Path, stream: tuple[object, ...]) -> list[str]:
    """What the same run delivers without servers."""
    local = run(str(folder), stream)
    assert local.returncode == 0, local.stderr
    return hashes(json.loads(local.stdout), stream)


def hashes(result: dict[str, Any], stream: tuple[object, ...]) -> list[str]:
    kind = "stream_hash" if "strict" in stream else "set_hash"
    return [epoch[kind] for epoch in result["epochs"]]


class Replica:
    """One server, and what will happen to it."""

    def __init__(self, folder: Path, loop: Loop, options: list[object], faults: list[Fault], log: Path) -> None:
        self._folder, self._options, self._log = folder, options, log
        self._lock = Lock()
        self._timers: list[Timer] = []
        self._closed = False
        self._server: ServeProcess | None = self._start()
        actions = {"kill": self._kill, "restart": self._restart, "stop": self._stop}
        self.proxy = Proxy(loop, self._server.port, faults, actions)

    def _start(self) -> ServeProcess:
        return ServeProcess(f"data={self._folder}", options=tuple(self._options), log=self._log)

    def _kill(self) -> None:
        with self._lock:
            if self._server:
                self._server.end(signal.SIGKILL)
                self._server = None

    def _restart(self) -> None:
        self._kill()
        with self._lock:
            if not self._closed:
                self._server = self._start()
                self.proxy.port = self._server.port

    def _stop(self) -> None:
        """For a while."""
        with self._lock:
            if self._server:
                process = self._server.process
                process.send_signal(signal.SIGSTOP)
                self._timers.append(Timer(0.7, process.send_signal, [signal.SIGCONT]))
                self._timers[-1].start()

    def close(self) -> None:
        with self._lock:
            self._closed = True
        self.proxy.close()
        for timer in self._timers:
            timer.cancel()
        self._kill()


class Trial:
    """All that a number decides."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.rng = rng = random.Random(number)
        self.stream = (
            "--epochs", EPOCHS, "--seed", rng.choice([1, 2]), "--batch", rng.choice([4, 16]),
            "--order", rng.choice(["strict", "strict", "ready"]),
        )  # fmt: skip
        self.how = ["--policy", rng.choice(POLICIES), "--threads", rng.randint(1, 2), "--patience", f"{PATIENCE}s"]
        if rng.random() < 0.3:
            self.how += ["--link", rng.choice(["20Mb/s", "200Mb/s"])]
        self.fallback = rng.random() < 0.3
        self.replicas = [self._replica() for _ in range(rng.randint(1, 3))]
        if not any(faults for _, faults in self.replicas):
            self.replicas[0][1].append(self._fault())

    def _replica(self) -> tuple[list[object], list[Fault]]:
        rng = self.rng
        options: list[object] = ["--threads", rng.randint(0, 2)]
        if rng.random() < 0.3:  # full queues
            options += ["--in-flight", rng.choice([1, 3, 8]), "--memory", rng.choice(["1kB", "20kB"])]
        return options, [self._fault() for _ in range(rng.choice([0, 1, 1, 2, 3]))]

    def _fault(self) -> Fault:
        rng = self.rng
        kind = rng.choice(NETWORK_FAULTS + SERVER_FAULTS)
        to_client = rng.random() < 0.8
        early = rng.random() < 0.1
        least, most = (1, FIRST_WORDS) if early else (FIRST_WORDS, 80_000 if to_client else 3 * FIRST_WORDS)
        seconds = rng.choice([0, 0.3, 0.3, 4]) if kind == "stall" else 0
        return Fault(rng.randint(least, most), to_client, kind, rng.random() < 0.3, seconds)

    @property
    def must_succeed(self) -> bool:
        """Bytes that are changed may turn a word into a refusal; all else can be overcome by who has a way left."""
        faults = [fault for _, its in self.replicas for fault in its]
        untouched = any(not its for _, its in self.replicas)
        sure = all(fault.at >= FIRST_WORDS and fault.kind != "corrupt" for fault in faults)
        return sure and (untouched or self.fallback)

    def __str__(self) -> str:
        told = [
            f"{' '.join(map(str, options))} with {', '.join(str(fault) for fault in faults) or 'no fault'}"
            for options, faults in self.replicas
        ]
        how = " ".join(map(str, [*self.stream, *self.how]))
        return f"trial {self.number}: {how}{' and a fallback' if self.fallback else ''}; servers: {'; '.join(told)}"

    def run(self, folder: Path, loop: Loop, log: Path) -> subprocess.CompletedProcess[str]:
        replicas: list[Replica] = []
        try:
            for options, faults in self.replicas:
                replicas.append(Replica(folder, loop, options, faults, log))
            servers = ",".join(f"127.0.0.1:{replica.proxy.own_port}" for replica in replicas)
            fallback = ["--fallback", folder] if self.fallback else []
            return run(f"grpc://{servers}/data", self.stream, *self.how, *fallback)
        finally:
            for replica in replicas:
                replica.close()


Ran = tuple[Trial, subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def trials(
    request: pytest.FixtureRequest, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[int, Future[Ran]]]:
    """Those that were asked for, some at a time: most of them wait for something most of the time."""
    logs = tmp_path_factory.mktemp("logs")
    loop = Loop()

    def run_one(number: int) -> Ran:
        trial = Trial(number)
        return trial, trial.run(folder, loop, logs / f"{number}.log")

    asking = [item for item in request.session.items if "trials" in item.fixturenames]  # type: ignore[attr-defined]
    numbers = [item.callspec.params["number"] for item in asking if hasattr(item, "callspec")]
    pool = ThreadPoolExecutor(AT_ONCE)
    yield {number: pool.submit(run_one, number) for number in numbers}
    pool.shutdown(cancel_futures=True)
    loop.close()


@pytest.mark.parametrize("number", range(TRIALS))
def test_an_epoch_is_complete_and_exact(number: int, folder: Path, trials: dict[int, Future[Ran]]) -> None:
    trial, ran = trials[number].result()
    if ran.returncode == 0:
        assert hashes(json.loads(ran.stdout), trial.stream) == truth(folder, trial.stream), trial
        return
    assert not trial.must_succeed, f"{trial}: {ran.stderr}"
    assert ran.returncode == 1, f"{trial} ended with {ran.returncode}: {ran.stderr}"
    assert ran.stdout == "", trial
    lines = ran.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("cutwater: "), f"{trial}: {ran.stderr}"
    assert "127.0.0.1:" in lines[0], f"{trial}: {ran.stderr} does not say which server"


def test_most_faults_happen_and_most_are_overcome(trials: dict[int, Future[Ran]]) -> None:
    """Otherwise the trials above would prove little."""
    if len(trials) < TRIALS:
        pytest.skip("not all trials were run")
    ran = [future.result() for future in trials.values()]
    faults = [fault for trial, _ in ran for _, its in trial.replicas for fault in its]
    happened = sum(fault.happened > 0 for fault in faults)
    overcome = sum(process.returncode == 0 for _, process in ran)
    assert happened >= len(faults) / 2, f"{happened} of {len(faults)}"
    assert overcome >= TRIALS / 2, f"{overcome} of {TRIALS}"
