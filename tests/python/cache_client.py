# SPDX-License-Identifier: Apache-2.0
"""A client of the shared cache's daemon written from src/cache/PROTOCOL.md alone, and daemons to talk to."""

from __future__ import annotations

import json
import mmap
import os
import signal
import socket
import struct
import subprocess
from pathlib import Path
from typing import Any

from helpers import COMMAND

HELLO, RESERVE, COMMIT, ABORT, DROP, JOIN, LEAVE, STAT, LIST, CLEAR = range(1, 11)
MIB = 1 << 20


class Gone(Exception):
    """The daemon has closed the connection."""


class Client:
    def __init__(self, path: Path, wants_memory: bool = True) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(20)
        self.socket.connect(str(path))
        self.send(HELLO, struct.pack("<II", wants_memory, 0))
        reply, fds, _, _ = socket.recv_fds(self.socket, 8192, 1)
        version, kind, status, self.number, size, self.limit = struct.unpack("<IIIIQQ", reply)
        assert (version, kind, status) == (1, HELLO, 0)
        assert len(fds) == wants_memory
        for fd in fds:
            assert os.fstat(fd).st_size >= size
            self.memory = mmap.mmap(fd, size)
            os.close(fd)

    def send(self, kind: int, body: bytes = b"") -> None:
        self.socket.send(struct.pack("<II", 1, kind) + body)

    def ask(self, kind: int, body: bytes = b"") -> bytes:
        self.send(kind, body)
        reply = self.socket.recv(8192)
        if not reply:
            raise Gone
        assert struct.unpack_from("<II", reply) == (1, kind)
        return reply[8:]

    def reserve(self, sample: int, size: int, data: int = 1, form: int = 2) -> tuple[int, int] | None:
        """A token and an offset; nothing where it is refused."""
        body = struct.pack("<QQqQQd", data, form, sample, 0, size, 1.0)
        status, _, token, offset = struct.unpack("<IIQQ", self.ask(RESERVE, body))
        assert status in (0, 1)
        return (token, offset) if status == 0 else None

    def put(self, sample: int, content: bytes, **where: int) -> bool:
        place = self.reserve(sample, len(content), **where)
        if place is None:
            return False
        token, offset = place
        assert offset % 64 == 0
        self.memory[offset : offset + len(content)] = content
        assert self.ask(COMMIT, struct.pack("<Q", token)) == b""
        return True

    def join(self, name: str, samples: int, data: int = 1, form: int = 2) -> int:
        body = struct.pack("<64sQqII", name.encode(errors="surrogateescape"), data, samples, 1, 0) + struct.pack(
            "<32Q", form, *[0] * 31
        )
        status, seat = struct.unpack("<II", self.ask(JOIN, body))
        assert status == 0
        return int(seat)

    def close(self) -> None:
        self.socket.close()


class Daemon:
    """`cutwater cache serve`, ready when made; killed at the latest with the `with` around it."""

    def __init__(self, path: Path, memory: str = "16MiB", *options: object, say_where: bool = True, **how: Any) -> None:
        self.path = path
        words = [str(COMMAND), "cache", "serve", "--memory", memory, "--json"]
        words += ["--socket", str(path)] if say_where else []
        self.log = path.parent.parent / "daemon.log"
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [*words, *map(str, options)], stdout=subprocess.PIPE, stderr=log, text=True, **how
            )
        assert self.process.stdout
        lines = ""
        for line in self.process.stdout:
            lines += line
            if line == "}\n":
                break
        self.ready: dict[str, Any] = json.loads(lines)

    def __enter__(self) -> Daemon:
        return self

    def __exit__(self, *_: object) -> None:
        self.end(signal.SIGKILL)
        assert self.process.stdout
        self.process.stdout.close()

    def end(self, number: int = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(timeout=20)

    def ask(self, verb: str, *options: object) -> dict[str, Any]:
        words = [COMMAND, "cache", verb, "--socket", self.path, "--json", *options]
        run = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=60)
        assert run.returncode == 0, run.stderr
        answer: dict[str, Any] = json.loads(run.stdout)
        return answer
