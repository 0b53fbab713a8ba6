# SPDX-License-Identifier: Apache-2.0
"""CPU seconds of a server for each byte that it sends as stored: ours, and nginx with keep-alive, on loopback, with
the same files in the page cache, taking turns in one run. Only the server's CPU counts. Who asks does nothing but take
what comes, in both cases; beside it ours with a trainer that decodes, which takes the cores and their caches away."""

from __future__ import annotations

import json
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import threading
import time
import urllib.parse
from types import TracebackType
from typing import Any

from job import files
from sophon_net import Loopback, Network, Refused, call, cpu_of
from sophon_setup import Setup, build_stage, verdict

WANTED, NEXT = 2.5, 1.5
CONNECTIONS = 4
EPOCHS = 6
ROUNDS = 5
SAMPLES = 660
CONFIG = """daemon off;
master_process off;
pid {folder}/pid;
error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{
  access_log off;
  sendfile on;
  tcp_nopush on;
  keepalive_requests 1000000;
  client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
  uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
  server {{ listen {address}; root {root}; }}
}}
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Http:
    """A folder's files by HTTP/1.1, on a network's storage side: nginx in one process, or Python's own server."""

    def __init__(self, root: str, folder: pathlib.Path, network: Network, need_nginx: bool = False) -> None:
        program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
        if need_nginx and not program:
            raise Refused("there is no nginx to compare with; install the package nginx-light")
        self.name = "nginx" if program else "Python's http.server"
        folder.mkdir()
        self.host, self.port = network.host, 8000 if network.real else free_port()
        config = folder / "nginx.conf"
        config.write_text(CONFIG.format(folder=folder, address=self.url, root=root))
        python = [sys.executable, "-m", "http.server", str(self.port), "--bind", self.host, "--directory", root,
                  "--protocol", "HTTP/1.1"]  # fmt: skip
        command = [program, "-c", str(config), "-e", str(folder / "error.log")] if program else python
        self.process = subprocess.Popen(
            [*network.storage, *command], stdout=subprocess.DEVNULL, stderr=(folder / "said").open("w")
        )
        self.pid = self.process.pid
        try:
            self._wait(folder)
        except Refused:
            self.close()
            raise

    def _wait(self, folder: pathlib.Path) -> None:
        """Until somebody listens to the port, as the kernel's table of sockets shows it."""
        listening = f":{self.port:04X} 00000000:0000 0A"
        for _ in range(500):
            if listening in pathlib.Path(f"/proc/{self.pid}/net/tcp").read_text():
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        raise Refused(f"{self.name} does not start: {(folder / 'said').read_text().strip()[-300:]}")

    @property
    def url(self) -> str:
        return f"{self.host}:{self.port}"

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()

    def __enter__(self) -> Http:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def fetch_all(port: int, paths: list[str]) -> int:
    """Every path over one connection that is kept; the bytes of all bodies."""
    bodies = 0
    into = memoryview(bytearray(1 << 20))
    with socket.create_connection(("127.0.0.1", port)) as connection:
        for path in paths:
            connection.sendall(f"GET /{urllib.parse.quote(path)} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            got = connection.recv_into(into)
            while (end := bytes(into[:got]).find(b"\r\n\r\n")) < 0:
                got += connection.recv_into(into[got:])
            head = bytes(into[:end]).decode()
            if " 200 " not in head.splitlines()[0]:
                raise Refused(f"nginx does not have {path}: {head.splitlines()[0]}")
            size = int(head.lower().split("content-length:")[1].split()[0])
            left = size - (got - end - 4)
            while left > 0:
                left -= connection.recv_into(into, min(left, len(into)))
            bodies += size
    return bodies


def of_nginx(server: Http, paths: list[str]) -> float:
    """CPU nanoseconds for a byte."""
    before = cpu_of(server.pid)
    bodies = [0] * CONNECTIONS

    def work(number: int) -> None:
        bodies[number] = fetch_all(server.port, paths[number::CONNECTIONS] * EPOCHS)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if not all(bodies):
        raise Refused("nginx did not send everything")
    return 1e9 * (cpu_of(server.pid) - before) / sum(bodies)


def of_ours(setup: Setup, data: str, client: str) -> float:
    with setup.loopback_server({"data": data}, 0) as server:
        before = server.cpu_s
        taken = json.loads(call(client, server.url("data"), EPOCHS))
        return 1e9 * (server.cpu_s - before) / taken["stored_bytes"]


def with_trainer(setup: Setup, data: str) -> float:
    with setup.loopback_server({"data": data}, 0) as server:
        before = server.cpu_s
        run = setup.trainer(server, "data", "imagenet-train", "none", EPOCHS).end()
        return 1e9 * (server.cpu_s - before) / run["offload"]["stored_bytes"]


def measure(setup: Setup) -> dict[str, Any]:
    data = setup.data("imagenet", SAMPLES)
    paths = [str(file.relative_to(data)) for file in files(data)]
    client = build_stage("fetch")
    with Http(data, setup.scratch / "nginx", Loopback(), need_nginx=True) as nginx:
        of_nginx(nginx, paths)  # warms up both
        rounds = [
            (of_ours(setup, data, client), of_nginx(nginx, paths), with_trainer(setup, data)) for _ in range(ROUNDS)
        ]
    return {
        "ours_ns_per_byte": statistics.median(ours for ours, _, _ in rounds),
        "nginx_ns_per_byte": statistics.median(theirs for _, theirs, _ in rounds),
        "ratio": statistics.median(ours / theirs for ours, theirs, _ in rounds),
        "ratio_with_trainer": statistics.median(busy / theirs for _, theirs, busy in rounds),
        "rounds": rounds,
        "ours_has": "a checksum of every sample, no sendfile; one stream",
        "nginx_has": f"sendfile, {CONNECTIONS} connections that are kept",
    }


def text(found: dict[str, Any]) -> list[str]:
    return [
        f"CPU of the server for a byte as stored, on loopback, median of {len(found['rounds'])} rounds",
        f"  ours  {found['ours_ns_per_byte']:.3f} ns ({found['ours_has']})",
        f"  nginx {found['nginx_ns_per_byte']:.3f} ns ({found['nginx_has']})",
        f"  {found['ratio']:.2f} times nginx (wanted {WANTED}): {verdict(not failed(found))}",
        f"  {found['ratio_with_trainer']:.2f} times nginx with a trainer that decodes on the same cores",
    ]


def failed(found: dict[str, Any]) -> bool:
    return bool(found["ratio"] > WANTED)
