# SPDX-License-Identifier: Apache-2.0
"""Caches in processes of their own, for as long as seneca.py needs them: the daemon, and Redis."""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from typing import Any

from rows import ROOT
from seneca_setup import Setup


def pinned(setup: Setup) -> list[str]:
    """Words before a command that keep it to the measured cores."""
    return ["taskset", "-c", ",".join(map(str, setup.pinned))]


@contextlib.contextmanager
def daemon(setup: Setup, limit: int) -> Iterator[tuple[str, int]]:
    """A cache for the jobs of one run: its name, and its process."""
    folder = pathlib.Path(tempfile.mkdtemp())  # a socket's path must be short
    words = [str(ROOT / "build/bin/cutwater"), "cache", "serve", "--memory", str(limit), "--socket",
             str(folder / "cache.sock"), "--json"]  # fmt: skip
    served = subprocess.Popen([*pinned(setup), *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert served.stdout
        if not any(line == b"}\n" for line in served.stdout):
            raise RuntimeError("the cache's daemon has ended at once: " + " ".join(words))
        wait_until_it_rests(served.pid)
        yield f"unix:{folder / 'cache.sock'}", served.pid
    finally:
        served.terminate()
        served.wait()
        shutil.rmtree(folder)


@contextlib.contextmanager
def redis_server(setup: Setup, *more: Any) -> Iterator[tuple[int, int]]:
    """Its port, and its process."""
    with socket.socket() as free, tempfile.TemporaryDirectory() as folder:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
        free.close()
        words = ["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir",
                 folder, "--logfile", "log", *more]  # fmt: skip
        served = subprocess.Popen([*pinned(setup), *map(str, words)])
        try:
            while served.poll() is None and socket.socket().connect_ex(("127.0.0.1", port)):
                time.sleep(0.01)
            yield port, served.pid
        finally:
            served.terminate()
            served.wait()


@contextlib.contextmanager
def lru(setup: Setup, limit: int) -> Iterator[tuple[str, int]]:
    """A Redis that keeps what was used last: its name, and its process."""
    with redis_server(setup, "--maxmemory", limit, "--maxmemory-policy", "allkeys-lru") as (port, pid):
        yield f"redis://127.0.0.1:{port}", pid


def wait_until_it_rests(pid: int) -> None:
    """A daemon that has just begun clears its memory: jobs find it as one that was there before them."""
    before = -1.0
    while (now := cpu_of(pid)) != before:
        before = now
        time.sleep(0.2)


def cpu_of(pid: int) -> float:
    """Seconds that a process has had so far."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
