# SPDX-License-Identifier: Apache-2.0
"""Three trainers of one server, which has less CPU than they could use: the bytes that they save together each second,
beside the best static split. For that, each has a server of its own with a part of the CPU (a quota of its cgroup);
all divisions into sixths are compared by what each tenant saved with its part."""

from __future__ import annotations

import contextlib
import itertools
import os
import pathlib
import statistics
from collections.abc import Iterator
from typing import Any, NamedTuple

from sophon_net import Refused, Server
from sophon_setup import Setup, verdict

GROUPS = pathlib.Path("/sys/fs/cgroup/cpu")
PERIOD_US = 40_000
CORES = 0.5  # of the server: what all three could use is more
PARTS = 6
SECONDS = 4
ROUNDS = 3
WANTED = 0.95
FLOOR = 0.5  # of an equal share, as the server has it
BATCH = 16


class Tenant(NamedTuple):
    kind: str
    pipeline: str
    rate: int  # samples that its consumer takes each second

    def __str__(self) -> str:
        return f"{self.kind}, {self.pipeline}, {self.rate}/s"


TENANTS = (
    Tenant("imagenet", "imagenet-train", 200),
    Tenant("photos", "imagenet-train", 120),
    Tenant("imagenet", "imagenet-val", 200),
)


@contextlib.contextmanager
def held_to(server: Server, cores: float) -> Iterator[None]:
    """The server may use so much of a core from now on."""
    group = GROUPS / f"cutwater-{os.getpid()}-{server.process.pid}"
    try:
        group.mkdir()
        (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        (group / "cpu.cfs_quota_us").write_text(str(round(cores * PERIOD_US)))
        (group / "cgroup.procs").write_text(str(server.process.pid))
    except OSError as error:
        raise Refused(f"a server cannot be held to a part of a core: {error}; it takes root and cgroup v1") from None
    try:
        yield
    finally:
        (GROUPS / "cgroup.procs").write_text(str(server.process.pid))
        group.rmdir()


def together(setup: Setup, tenants: tuple[Tenant, ...], threads: int, cores: float) -> list[dict[str, float]]:
    """What becomes of each, with one server."""
    setup.network.rate(1000)
    data = {f"{t.kind}{t.rate}": setup.data(t.kind, SECONDS * t.rate) for t in tenants}
    with setup.server(data, threads) as server, held_to(server, cores):
        running = [
            setup.trainer(server, f"{t.kind}{t.rate}", t.pipeline, "sophon", 1, "--step-ms", 1e3 * BATCH / t.rate)
            for t in tenants
        ]
        ends = [trainer.end() for trainer in running]
    rows = []
    for tenant, end in zip(tenants, ends, strict=True):
        offload, seconds = end["offload"], end["seconds"]
        rows.append(
            {
                "saved_per_s": (offload["stored_bytes"] - offload["wire_bytes"]) / seconds,
                "storage_cores": offload["storage_s"] / seconds,
                "rate": end["samples"] / seconds,
                "wanted_rate": float(tenant.rate),
                "ran_less": offload["ran_less"] / end["samples"],
            }
        )
    return rows


def best_split(curves: list[list[float]]) -> tuple[float, tuple[int, ...]]:
    """`curves[t][k]` is what tenant t saves with k + 1 parts; the best sum over all divisions, and the division."""
    parts = range(1, len(curves[0]) + 1)
    splits = (split for split in itertools.product(parts, repeat=len(curves)) if sum(split) == PARTS)
    return max((sum(curve[k - 1] for curve, k in zip(curves, split, strict=True)), split) for split in splits)


def measure(setup: Setup) -> dict[str, Any]:
    runs = [together(setup, TENANTS, 2, CORES) for _ in range(ROUNDS)]
    most = PARTS - len(TENANTS) + 1
    curves = [
        [together(setup, (tenant,), 2, CORES * k / PARTS)[0]["saved_per_s"] for k in range(1, most + 1)]
        for tenant in TENANTS
    ]
    static, split = best_split(curves)
    saved = [sum(row["saved_per_s"] for row in run) for run in runs]
    middle = [{key: statistics.median(run[t][key] for run in runs) for key in runs[0][t]} for t in range(len(TENANTS))]
    cores = sum(row["storage_cores"] for row in middle)
    return {
        "tenants": [str(tenant) for tenant in TENANTS],
        "cores": CORES,
        "saved_per_s": statistics.median(saved),
        "rounds": saved,
        "each": middle,
        "static_per_s": static,
        "static_split": split,
        "static_curves": curves,
        "to_static": statistics.median(saved) / static,
        # Who got everything that it asked for has no less than its floor, however little that is.
        "least_share": min(
            (row["storage_cores"] for row in middle if row["ran_less"] > 0.01), default=cores / len(TENANTS)
        )
        / (cores / len(TENANTS)),
    }


def text(found: dict[str, Any]) -> list[str]:
    lines = [f"three trainers, one server of 2 threads that is held to {found['cores']} of a core"]
    for name, row in zip(found["tenants"], found["each"], strict=True):
        lines.append(
            f"  {name:<36} saves {row['saved_per_s'] / 1e6:6.2f} MB/s with {row['storage_cores']:.3f} of a core; "
            f"{row['rate']:.0f} samples/s, {100 * row['ran_less']:.0f} % of them as stored for want of CPU"
        )
    split = ":".join(map(str, found["static_split"]))
    lines.append(
        f"  together {found['saved_per_s'] / 1e6:.2f} MB/s, {found['to_static']:.3f} of the best static split's "
        f"{found['static_per_s'] / 1e6:.2f} MB/s ({split} sixths; wanted {WANTED}): "
        f"{verdict(found['to_static'] >= WANTED)}"
    )
    lines.append(
        f"  the least share is {found['least_share']:.2f} of an equal one (floor {FLOOR}): "
        f"{verdict(found['least_share'] >= FLOOR)}"
    )
    return lines


def failed(found: dict[str, Any]) -> bool:
    return bool(found["to_static"] < WANTED or found["least_share"] < FLOOR)
