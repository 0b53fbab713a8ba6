# SPDX-License-Identifier: Apache-2.0
"""What a hit costs besides the sample's own work: to claim it, and to get it from each kind of cache. Redis stands
beside its own benchmark's GET of that size, by one connection, one request at a time, as ours."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import Any

from rows import ROOT
from seneca_servers import daemon, redis_server
from seneca_setup import Setup
from seneca_sums import verdict

CLAIM_WANTED_NS, REDIS_WANTED = 1000.0, 1.2
BIN = ROOT / "build/release/bin"
HIT = re.compile(
    r" *(?P<bytes>\d+) bytes: a hit +(?P<us>[\d.]+) us, redis-benchmark's GET +(?P<their_us>[\d.]+) us, "
    r"ratio (?P<ratio>[\d.]+) \([^)]*\), among (?P<forms>\d+) forms +(?P<first_us>[\d.]+) us, "
    r"ratio (?P<first_ratio>[\d.]+)"
)


def build() -> None:
    """The programs of single stages are not part of a usual build."""
    targets = ["--target", "bench_cache", "bench_redis"]
    for words in (["--preset", "release", "-DCUTWATER_STAGES=ON"], ["--build", "--preset", "release", *targets]):
        done = subprocess.run(["cmake", *words], cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"cmake {' '.join(words)}: {(done.stderr or done.stdout).strip()[-600:]}")


def redis_hits(setup: Setup) -> list[dict[str, float]]:
    """By the size of values; ours and redis-benchmark take turns."""
    with redis_server(setup) as (port, _):
        done = subprocess.run([str(BIN / "bench_redis"), str(port)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    found = [HIT.match(line) for line in done.stdout.splitlines()]
    return [{name: float(value) for name, value in hit.groupdict().items()} for hit in found if hit]


def measure(setup: Setup) -> dict[str, Any]:
    build()
    size = int(setup.bytes_of("source"))
    room = 2 * 64 * size + (16 << 20)
    with daemon(setup, room) as (shared, _):
        done = subprocess.run([str(BIN / "bench_cache"), str(size), str(room), shared], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    found = json.loads(done.stdout)
    return {
        "bytes": size,
        "claim_ns": found["claim_ns"],
        "get_us": {"memory": found["get_ns"][str(room)] / 1e3, "shared": found["get_ns"][shared] / 1e3},
        "redis": redis_hits(setup) if shutil.which("redis-server") and shutil.which("redis-benchmark") else [],
    }


def text(found: dict[str, Any]) -> list[str]:
    lines = [
        f"a hit of {found['bytes']} bytes, besides the sample's own work:",
        f"  claim {found['claim_ns']:.0f} ns (wanted 1 us): {verdict(found['claim_ns'] <= CLAIM_WANTED_NS)}",
        f"  get: memory {found['get_us']['memory']:.2f} us, shared {found['get_us']['shared']:.2f} us; that neither "
        "copies nor calls the system is counted in src/cache/shared_cache_test.cc",
    ]
    if not found["redis"]:
        return [*lines, "  redis: no redis-server or no redis-benchmark here: NOT measured"]
    return lines + [
        f"  redis, {hit['bytes']:.0f} bytes: {hit['us']:.0f} us, redis-benchmark's GET {hit['their_us']:.0f} us: "
        f"{hit['ratio']:.2f}x (wanted {REDIS_WANTED}x): {verdict(hit['ratio'] <= REDIS_WANTED)}; "
        f"looked for in {hit['forms']:.0f} forms, as loaders do, {hit['first_us']:.0f} us: {hit['first_ratio']:.2f}x "
        f"(wanted {REDIS_WANTED}x): {verdict(hit['first_ratio'] <= REDIS_WANTED)}"
        for hit in found["redis"]
    ]


def failed(found: dict[str, Any]) -> bool:
    slow = any(max(hit["ratio"], hit["first_ratio"]) > REDIS_WANTED for hit in found["redis"])
    return slow or bool(found["claim_ns"] > CLAIM_WANTED_NS)
