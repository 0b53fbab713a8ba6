# SPDX-License-Identifier: Apache-2.0
"""Jobs that a trial moves on step by step: a loader of this process, or one in a process of its own, which can be
killed. A job that is not asked for a batch waits, however fast its neighbours are: no trial needs a clock."""

from __future__ import annotations

import hashlib
import multiprocessing
import signal
import warnings
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import cutwater as cw

_processes = multiprocessing.get_context("forkserver")  # children have no threads of this process
_processes.set_forkserver_preload(["trial_jobs"])


class Work(NamedTuple):
    """What a job does. Any process can make the same of it."""

    files: list[Path]
    pipeline: str
    epochs: int
    options: dict[str, Any]  # of the DataLoader
    state: dict[str, Any] | None = None  # where it goes on


class Delivered(NamedTuple):
    """One batch, and the state after it."""

    epoch: int
    samples: list[tuple[int, bytes]]  # ids, and hashes of what came with them
    state: dict[str, Any]
    cache: dict[str, Any] | None  # the loader's books


def digest(image: Any) -> bytes:
    return hashlib.blake2b(image.tobytes(), digest_size=8).digest()


def deliveries(work: Work) -> Iterator[Delivered]:
    """Batch by batch. Trouble with a cache is what trials are about: its warnings are no news."""
    ds = cw.files(work.files).apply(work.pipeline)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        loader = cw.DataLoader(ds, shuffle=True, output="numpy", **work.options)
    if work.state:
        loader.load_state_dict(work.state)
    with loader:
        # What is left of the epoch of a state may be nothing: it counts as that epoch all the same.
        for _ in range(work.state["epoch"] if work.state else 0, work.epochs):
            for batch in _quiet(loader):
                images = zip(batch.ids, batch["image"], strict=True)
                samples = [(int(id), digest(image)) for id, image in images]
                yield Delivered(batch.epoch, samples, loader.state_dict(), loader.stats()["cache"])


def _quiet(loader: cw.DataLoader) -> Iterator[cw.Batch]:
    batches = iter(loader)
    while True:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


class Job(Protocol):
    def ask(self) -> None:
        """For a batch; it need not wait for it."""

    def answer(self) -> Delivered | None:
        """What was asked for; None: the job has done all its epochs."""

    def leave(self) -> None:
        """In order."""

    def kill(self) -> None:
        """Without a word, where that can be done."""


class OwnJob:
    """In this process: its threads work on while others are asked."""

    def __init__(self, work: Work) -> None:
        self._deliveries = deliveries(work)

    def ask(self) -> None:
        pass

    def answer(self) -> Delivered | None:
        return next(self._deliveries, None)

    def leave(self) -> None:
        self._deliveries.close()  # type: ignore[attr-defined]

    kill = leave


class ProcessJob:
    def __init__(self, work: Work) -> None:
        self._pipe, theirs = _processes.Pipe()
        self._process = _processes.Process(target=_serve, args=(theirs, work), daemon=True)
        self._process.start()
        theirs.close()

    def ask(self) -> None:
        self._pipe.send(True)

    def answer(self) -> Delivered | None:
        given: Delivered | None = self._pipe.recv()
        return given

    def leave(self) -> None:
        self._pipe.close()
        self._process.join()
        assert self._process.exitcode == 0

    def kill(self) -> None:
        self._process.kill()
        self._process.join()
        self._pipe.close()
        assert self._process.exitcode == -signal.SIGKILL, "it had ended by itself"


def _serve(pipe: Connection, work: Work) -> None:
    given = deliveries(work)
    try:
        while pipe.recv():
            pipe.send(next(given, None))
    except (EOFError, OSError):  # it may go, perhaps with an answer that nobody waits for
        given.close()  # type: ignore[attr-defined]
