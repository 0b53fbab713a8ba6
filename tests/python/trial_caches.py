# SPDX-License-Identifier: Apache-2.0
"""Caches of all kinds for trials, and their servers, which are killed and started again on the way."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import pytest
from cache_client import Daemon
from helpers import until

import cutwater as cw


class Server(Protocol):
    name: Any  # what a DataLoader takes
    kills: int  # so far

    def stop_or_start(self) -> None:
        """kill -9, or a new one at the same place, which knows nothing of the first."""

    def check_that_nobody_is_left(self) -> None:
        """When all jobs have gone, one way or the other, nothing is held for them any more."""


class OwnCache:
    """In this process: there is nothing to kill."""

    def __init__(self, limit: int) -> None:
        self.name = cw.cache(limit)
        self.kills = 0

    def stop_or_start(self) -> None:
        raise AssertionError("a cache in memory cannot be killed alone")

    def check_that_nobody_is_left(self) -> None:
        pass


class DaemonServer:
    def __init__(self, limit: int, folder: Path) -> None:
        (folder / "own").mkdir(mode=0o700)
        self._path = folder / "own" / "cache.sock"
        self.name = f"unix:{self._path}"
        self._limit = limit
        self._daemon: Daemon | None = None
        self.kills = 0
        self.stop_or_start()

    def stop_or_start(self) -> None:
        if self._daemon is None:
            self._daemon = Daemon(self._path, str(self._limit))
            return
        self._daemon.__exit__()
        assert self._daemon.process.returncode == -signal.SIGKILL, "it had ended by itself"
        self._daemon = None
        self.kills += 1

    def check_that_nobody_is_left(self) -> None:
        if daemon := self._daemon:
            assert until(lambda: daemon.ask("stat")["clients"] == 0), "somebody who is gone counts as a client"
            assert daemon.ask("stat")["jobs"] == []

    def close(self) -> None:
        if self._daemon:
            self.stop_or_start()


class RedisServer:
    """One that drops whatever it likes when it is full."""

    def __init__(self, room: int, folder: Path) -> None:
        self._folder = folder
        self._room = room
        self.socket = folder / "redis.sock"
        self.name = f"redis+unix://{self.socket}"
        self._process: subprocess.Popen[bytes] | None = None
        self.kills = 0
        self.stop_or_start()

    def stop_or_start(self) -> None:
        if self._process:
            self._process.send_signal(signal.SIGKILL)
            assert self._process.wait() == -signal.SIGKILL, "it had ended by itself"
            self._process = None
            self.kills += 1
            return
        self.socket.unlink(missing_ok=True)
        words = ["redis-server", "--port", "0", "--unixsocket", str(self.socket), "--save", "", "--appendonly", "no",
                 "--dir", str(self._folder), "--logfile", "redis.log"]  # fmt: skip
        self._process = subprocess.Popen(words)
        assert until(lambda: self.ask("PING") == b"+PONG\r\n"), f"no Redis at {self.socket}"
        used = int(self.ask("INFO", "memory").split(b"used_memory:")[1].split()[0])
        self.ask("CONFIG", "SET", "maxmemory", str(used + self._room))
        self.ask("CONFIG", "SET", "maxmemory-policy", "allkeys-random")

    def check_that_nobody_is_left(self) -> None:
        pass  # what a job leaves there ends by itself

    def ask(self, *words: str) -> bytes:
        """Nothing where nobody answers."""
        lines = [f"*{len(words)}", *(line for word in words for line in (f"${len(word)}", word)), ""]
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(20)
            try:
                connection.connect(str(self.socket))
                connection.send("\r\n".join(lines).encode())
                return connection.recv(1 << 16)
            except OSError:
                return b""

    def close(self) -> None:
        if self._process:
            self.stop_or_start()


def limit_for(room: int) -> int:
    """Of a cache that has so much room for values besides its books."""
    return room + int(cw.cache(room + (1 << 16)).stats()["bytes"])


@contextmanager
def serve(kind: str, room: int, folder: Path) -> Iterator[Server]:
    if kind == "memory":
        yield OwnCache(limit_for(room))
    elif kind == "redis":
        if not shutil.which("redis-server"):
            pytest.skip("no redis-server")
        redis = RedisServer(room, folder)
        try:
            yield redis
        finally:
            redis.close()
    else:
        daemon = DaemonServer(limit_for(room), folder)
        try:
            yield daemon
        finally:
            daemon.close()
