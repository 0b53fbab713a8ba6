# SPDX-License-Identifier: Apache-2.0
"""What a hit costs besides the sample's own work: to claim it, and to get it from each kind of cache. Redis stands
beside its own benchmark's GET of that size, by one connection, one request at a time, as ours."""

from __future__ import annotations

import csv
import json
import pathlib
import shutil
import subprocess
import tempfile
import time
from typing import Any

from rows import ROOT
from seneca_makespan import daemon
from seneca_setup import Setup
from seneca_sums import verdict

CLAIM_WANTED_NS, REDIS_WANTED = 1000.0, 1.2
GETS = 20_000


def build() -> pathlib.Path:
    """The programs of single stages are not part of a usual build."""
    for words in (
        ["--preset", "release", "-DCUTWATER_STAGES=ON"],
        ["--build", "--preset", "release", "--target", "bench_cache"],
    ):
        done = subprocess.run(["cmake", *words], cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"cmake {' '.join(words)}: {(done.stderr or done.stdout).strip()[-600:]}")
    return ROOT / "build/release/bin/bench_cache"


class Redis:
    """A server of its own on a Unix socket; nothing where none is installed."""

    def __init__(self) -> None:
        self._folder = pathlib.Path(tempfile.mkdtemp())
        self.socket = self._folder / "redis.sock"
        words = ["redis-server", "--port", "0", "--unixsocket", str(self.socket), "--save", "", "--appendonly", "no",
                 "--dir", str(self._folder), "--logfile", "log"]  # fmt: skip
        self._process = subprocess.Popen(words)
        while self._process.poll() is None and not self.socket.exists():
            time.sleep(0.01)

    def get_us(self, size: int) -> float:
        """Of redis-benchmark itself. The same key for all, which it has set before."""
        words = ["redis-benchmark", "-s", str(self.socket), "-t", "set,get", "-d", str(size), "-c", "1", "-n",
                 str(GETS), "--csv"]  # fmt: skip
        rows = csv.DictReader(subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines())
        return next(1e6 / float(row["rps"]) for row in rows if row["test"] == "GET")

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()
        shutil.rmtree(self._folder)


def measure(setup: Setup) -> dict[str, Any]:
    program = build()
    size = int(setup.bytes_of("source"))
    room = 2 * 64 * size + (16 << 20)
    redis = Redis() if shutil.which("redis-server") and shutil.which("redis-benchmark") else None
    try:
        with daemon(setup, room) as (shared, _):
            names = {"memory": str(room), "shared": shared}
            if redis:
                names["redis"] = f"redis+unix://{redis.socket}"
            theirs = [redis.get_us(size)] if redis else []
            done = subprocess.run([str(program), str(size), *names.values()], capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(done.stderr.strip())
            theirs += [redis.get_us(size)] if redis else []  # once before, once after: the better one counts
    finally:
        if redis:
            redis.close()
    found = json.loads(done.stdout)
    get_us = {kind: found["get_ns"][name] / 1e3 for kind, name in names.items()}
    return {
        "bytes": size,
        "claim_ns": found["claim_ns"],
        "get_us": get_us,
        "shared_to_memory": get_us["shared"] / get_us["memory"],
        "redis_benchmark_us": min(theirs, default=None),
        "redis_to_its_benchmark": get_us["redis"] / min(theirs) if theirs else None,
    }


def text(found: dict[str, Any]) -> list[str]:
    lines = [
        f"a hit of {found['bytes']} bytes, besides the sample's own work:",
        f"  claim {found['claim_ns']:.0f} ns (wanted 1 us): {verdict(found['claim_ns'] <= CLAIM_WANTED_NS)}",
        f"  get: memory {found['get_us']['memory']:.2f} us, shared {found['get_us']['shared']:.2f} us; that neither "
        "copies nor calls the system is counted in src/cache/shared_cache_test.cc",
    ]
    if found["redis_to_its_benchmark"] is None:
        return [*lines, "  redis: no redis-server or no redis-benchmark here: NOT measured"]
    return [
        *lines,
        f"  redis: {found['get_us']['redis']:.0f} us, redis-benchmark's GET {found['redis_benchmark_us']:.0f} us: "
        f"{found['redis_to_its_benchmark']:.2f}x (wanted {REDIS_WANTED}x): "
        f"{verdict(found['redis_to_its_benchmark'] <= REDIS_WANTED)}",
    ]


def failed(found: dict[str, Any]) -> bool:
    redis = found["redis_to_its_benchmark"]
    return found["claim_ns"] > CLAIM_WANTED_NS or (redis is not None and redis > REDIS_WANTED)
