# SPDX-License-Identifier: Apache-2.0
"""A storage machine and a trainer with a link of a known rate between them, on this machine: two network namespaces
and a pair of veth, held to the rate by tbf at both ends. Where namespaces cannot be made, both sides are on loopback
and the trainer holds itself to the rate with its token bucket (--link), which the report says."""

from __future__ import annotations

import json
import os
import pathlib
import resource
import secrets
import shutil
import subprocess
import time
from types import TracebackType
from typing import Any, NamedTuple

from rows import ROOT

CUTWATER = str(ROOT / "build/bin/cutwater")
STORAGE_IP, TRAINER_IP = "10.213.7.1", "10.213.7.2"


# A trainer of one thread, and all others.
TRAINER_CORES = sorted(os.sched_getaffinity(0))[:1]
STORAGE_CORES = sorted(os.sched_getaffinity(0))[1:] or TRAINER_CORES


def on(cores: list[int]) -> list[str]:
    return ["taskset", "-c", ",".join(map(str, cores))]


class Refused(Exception):
    """Why something cannot be measured here, and the way out."""


def call(*command: Any) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        raise Refused(f"{' '.join(map(str, command))}: {(done.stderr or done.stdout).strip()[-300:]}")
    return done.stdout


class Network:
    """The two sides. `rate()` sets the link's; a process is started on a side by `storage` or `trainer` in front."""

    def __init__(self) -> None:
        tag = f"cw{os.getpid()}"
        self.spaces = (f"{tag}s", f"{tag}t")
        self.devices = (f"{tag}a", f"{tag}b")
        self.mbit = 0
        self.why_not = ""  # there are no namespaces
        try:
            self._make()
        except (Refused, OSError) as error:
            self.close()
            self.why_not = str(error)

    def _make(self) -> None:
        for space in self.spaces:
            call("ip", "netns", "add", space)
            call("ip", "-n", space, "link", "set", "lo", "up")
        call("ip", "link", "add", self.devices[0], "netns", self.spaces[0], "type", "veth",
             "peer", "name", self.devices[1], "netns", self.spaces[1])  # fmt: skip
        for space, device, address in zip(self.spaces, self.devices, (STORAGE_IP, TRAINER_IP), strict=True):
            call("ip", "-n", space, "addr", "add", f"{address}/24", "dev", device)
            call("ip", "-n", space, "link", "set", device, "up")
        self.rate(1000)

    @property
    def real(self) -> bool:
        return not self.why_not

    @property
    def storage(self) -> list[str]:
        return ["ip", "netns", "exec", self.spaces[0]] if self.real else []

    @property
    def trainer(self) -> list[str]:
        return ["ip", "netns", "exec", self.spaces[1]] if self.real else []

    @property
    def host(self) -> str:
        return STORAGE_IP if self.real else "127.0.0.1"

    @property
    def words(self) -> str:
        if self.real:
            return "real sockets between network namespaces, veth held to the rate by tbf; TLS and a token"
        return f"NO namespaces ({self.why_not}): loopback and the trainer's token bucket (--link), no TLS"

    def rate(self, mbit: int) -> None:
        self.mbit = mbit
        if not self.real:
            return
        for space, device in zip(self.spaces, self.devices, strict=True):
            # A burst of a millisecond or so; room in the queue for what sockets push, so that nothing is dropped.
            burst = max(128_000, mbit * 125)
            call("ip", "netns", "exec", space, "tc", "qdisc", "replace", "dev", device, "root", "tbf",
                 "rate", f"{mbit}mbit", "burst", burst, "limit", 16_000_000)  # fmt: skip

    def sent(self, server_pid: int) -> int:
        """Bytes that have left the storage machine, at its interface: headers, TLS, retransmissions and all."""
        device = self.devices[0] if self.real else "lo"
        for line in pathlib.Path(f"/proc/{server_pid}/net/dev").read_text().splitlines():
            name, _, counts = line.strip().partition(":")
            if name == device:
                return int(counts.split()[8])
        raise Refused(f"no interface {device}")

    def close(self) -> None:
        for space in self.spaces if shutil.which("ip") else ():
            subprocess.run(["ip", "netns", "del", space], capture_output=True)

    def __enter__(self) -> Network:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class Loopback(Network):
    """Both sides on this machine's loopback, at any rate."""

    def __init__(self) -> None:
        self.spaces, self.devices = (), ()
        self.mbit, self.why_not = 0, "not wanted"


def cpu_of(pid: int) -> float:
    """Seconds of a process, user and system: its CPU-time clock, as clock_getcpuclockid(3) names it. The ticks in
    /proc are too coarse for short runs."""
    return time.clock_gettime((~pid << 3) | 2)


class Keys(NamedTuple):
    """What a server that others can reach needs: a certificate for its address and a token."""

    certificate: pathlib.Path
    key: pathlib.Path
    token_file: pathlib.Path
    token: str

    @staticmethod
    def make(folder: pathlib.Path) -> Keys:
        keys = Keys(folder / "cert.pem", folder / "key.pem", folder / "token", secrets.token_hex(16))
        call("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
             "2", "-subj", "/CN=storage", "-addext", f"subjectAltName=IP:{STORAGE_IP},IP:127.0.0.1", "-keyout",
             keys.key, "-out", keys.certificate)  # fmt: skip
        keys.token_file.write_text(keys.token + "\n")
        keys.token_file.chmod(0o600)
        return keys


class Server:
    """`cutwater serve` on the storage side, from its first word to its end. Apart: it has cores of its own, and so
    has a trainer of one thread, as on two machines."""

    def __init__(self, network: Network, keys: Keys, data: dict[str, str], threads: int, apart: bool = False,
                 more: tuple[Any, ...] = ()) -> None:  # fmt: skip
        self.network, self.keys, self.tls, self.apart = network, keys, network.real, apart
        safe = ["--tls-cert", keys.certificate, "--tls-key", keys.key, "--token-file", keys.token_file]
        side = [*network.storage, *(on(STORAGE_CORES) if apart else [])]
        command = [*side, CUTWATER, "serve", "--listen", f"{network.host}:0", "--threads", threads,
                   "--json", *(safe if self.tls else []), *more]  # fmt: skip
        for name, folder in data.items():
            command += ["--data", f"{name}={folder}"]
        self.process = subprocess.Popen(
            [str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout
        said = self.process.stdout.readline()
        if not said:
            raise Refused(f"cutwater serve: {self.process.communicate()[1].strip()[-300:]}")
        self.ready: dict[str, Any] = json.loads(said)
        self.address: str = self.ready["address"]

    def url(self, name: str) -> str:
        return f"grpc{'s' if self.tls else ''}://{self.address}/{name}"

    @property
    def cpu_s(self) -> float:
        return cpu_of(self.process.pid)

    @property
    def sent(self) -> int:
        return self.network.sent(self.process.pid)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.process.terminate()
        try:
            self.process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()


class Trainer:
    """`cutwater run` on the trainer's side."""

    def __init__(self, server: Server, name: str, pipeline: str, policy: str, epochs: int, *more: Any) -> None:
        network = server.network
        told = [] if network.real or not network.mbit or "--link" in more else ["--link", f"{network.mbit}Mb/s"]
        side = [*network.trainer, *(on(TRAINER_CORES) if server.apart else [])]
        command = [*side, CUTWATER, "run", "--data", server.url(name), "--pipeline", pipeline, "--policy",
                   policy, "--epochs", epochs, "--batch", 16, "--threads", 1, "--seed", 1, "--json",
                   *told, *more]  # fmt: skip
        environment = {**os.environ, "CUTWATER_TOKEN": server.keys.token}
        if server.tls:
            environment["CUTWATER_CA"] = str(server.keys.certificate)
        self.begun = time.perf_counter()
        self.process = subprocess.Popen(
            [str(word) for word in command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def end(self) -> dict[str, Any]:
        """What it says of itself, and the CPU seconds of all of it."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        out, error = self.process.communicate(timeout=600)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if self.process.returncode:
            raise Refused(f"cutwater run: {error.strip()[-300:]}")
        said: dict[str, Any] = json.loads(out)
        said["cpu_s"] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return said
