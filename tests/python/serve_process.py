# SPDX-License-Identifier: Apache-2.0
"""`cutwater serve` as a process of its own, and a proxy before it that does to a connection what networks do."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from helpers import COMMAND

T = TypeVar("T")


class ServeProcess:
    """Ready when made; killed at the latest with the `with` around it."""

    def __init__(
        self,
        *data: object,
        options: tuple[object, ...] = (),
        log: Path | None = None,
        env: dict[str, str] | None = None,
    ) -> None:
        words = [COMMAND, "serve", "--json", "--listen", "127.0.0.1:0", "--data", *data, *options]
        with (log or Path("/dev/null")).open("a") as errors:
            self.process = subprocess.Popen(
                list(map(str, words)), stdout=subprocess.PIPE, stderr=errors, text=True, env=env
            )
        assert self.process.stdout
        line = self.process.stdout.readline()
        self.process.stdout.close()
        assert line, f"no server: {log.read_text() if log else self.process.wait(20)}"
        self.ready: dict[str, Any] = json.loads(line)
        self.address: str = self.ready["address"]
        self.port = int(self.address.rsplit(":", 1)[1])

    def __enter__(self) -> ServeProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.end(signal.SIGKILL)

    def end(self, number: int = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(timeout=20)

    def url(self, name: str = "") -> str:
        return f"grpc://{self.address}/{name}"


class Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Awaitable[T]) -> T:
        async def wait() -> T:
            return await work

        return asyncio.run_coroutine_threadsafe(wait(), self.loop).result(20)

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(20)
        self.loop.close()


@dataclass
class Fault:
    """Something that happens when so many bytes have gone through a proxy."""

    at: int  # bytes, of all connections together
    to_client: bool  # which direction they are counted in
    kind: str  # corrupt, cut, truncate, stall, trickle; else a name of `actions`
    again: bool = False  # also so many bytes later, as long as the proxy lives
    seconds: float = 0  # that a stall lasts; 0: for ever
    happened: int = 0


@dataclass
class Proxy:
    """Between a client and the server at `port`, which may change."""

    loop: Loop
    port: int
    faults: list[Fault] = field(default_factory=list)
    actions: dict[str, Callable[[], None]] = field(default_factory=dict)  # for faults of the server itself
    own_port: int = 0

    TRICKLE = 64  # bytes at a time

    def __post_init__(self) -> None:
        self._through = {True: 0, False: 0}
        self._tasks: set[asyncio.Task[None]] = set()
        self._server = self.loop.run(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.own_port = self._server.sockets[0].getsockname()[1]

    def close(self) -> None:
        async def end() -> None:
            self._server.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

        self.loop.run(end())

    async def _serve(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._tasks.add(task)
        ends = [to_client]
        try:
            server, to_server = await asyncio.open_connection("127.0.0.1", self.port)
            ends.append(to_server)
            pumps = [
                asyncio.ensure_future(self._pump(client, to_server, False)),
                asyncio.ensure_future(self._pump(server, to_client, True)),
            ]
            try:
                await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for pump in pumps:
                    pump.cancel()
                await asyncio.gather(*pumps, return_exceptions=True)
        except (OSError, asyncio.CancelledError):
            pass  # nobody is there, or the proxy is closed
        finally:
            self._tasks.discard(task)
            for end in ends:
                end.transport.abort()

    async def _pump(self, source: asyncio.StreamReader, to: asyncio.StreamWriter, to_client: bool) -> None:
        while data := await source.read(1 << 14):
            for fault in self.faults:
                due = fault.at * (fault.happened + 1 if fault.again else 1)
                left = due - self._through[to_client]  # bytes that still go through before it
                if fault.to_client != to_client or (fault.happened and not fault.again) or left >= len(data):
                    continue
                fault.happened += 1
                keep = max(left, 0)
                if fault.kind == "corrupt":
                    data = data[:keep] + bytes([data[keep] ^ 1 << fault.at % 8]) + data[keep + 1 :]
                elif fault.kind == "cut":
                    return
                elif fault.kind == "truncate":
                    to.write(data[:keep])
                    await to.drain()
                    return
                elif fault.kind == "stall":
                    await asyncio.sleep(fault.seconds or 3600)
                elif fault.kind == "trickle":
                    for begin in range(0, len(data), self.TRICKLE):
                        to.write(data[begin : begin + self.TRICKLE])
                        await to.drain()
                        await asyncio.sleep(0.002)
                    self._through[to_client] += len(data)
                    data = b""
                    break
                else:
                    await asyncio.to_thread(self.actions[fault.kind])
            self._through[to_client] += len(data)
            to.write(data)
            await to.drain()
