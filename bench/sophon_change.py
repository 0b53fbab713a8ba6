# SPDX-License-Identifier: Apache-2.0
"""A link whose rate changes while a trainer runs: from fast to slow and back, between epochs. Some epochs later, bytes
and seconds are compared with those of a run that had that rate from its beginning. How far the trainer is, the server's
metrics say; bytes are counted at its interface."""

from __future__ import annotations

import subprocess
import sys
import time
from types import TracebackType
from typing import Any

from sophon_net import Refused, Server, Trainer
from sophon_setup import Setup, verdict

RATES = (2000, 100, 2000)  # Mb/s
SAMPLES = 660
EPOCHS = 4  # at each rate…
SETTLING = 2  # …of which so many are not counted
WITHIN = 1.15
LOOK_S = 0.02

# Answers with the samples that were sent so far, for each line that comes.
WATCHER = """
import sys, urllib.request
for _ in sys.stdin:
    text = urllib.request.urlopen(sys.argv[1], timeout=20).read().decode()
    print(next(line.split()[1] for line in text.splitlines() if line.startswith("cutwater_answers_total ")), flush=True)
"""


class Watcher:
    """Looks at a server's metrics from its own side of the link, so that nothing of that goes over it."""

    def __init__(self, server: Server) -> None:
        self.server = server
        url = f"http://127.0.0.1:{server.ready['metrics_port']}/metrics"
        self.process = subprocess.Popen([*server.network.storage, sys.executable, "-c", WATCHER, url],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # fmt: skip

    def now(self) -> tuple[float, float, float]:
        """Samples and bytes that were sent so far, and the time."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline()), float(self.server.sent), time.perf_counter()

    def wait_for(self, samples: int, trainer: Trainer) -> tuple[float, float, float]:
        while (seen := self.now())[0] < samples:
            if trainer.process.poll() is not None:
                raise Refused(f"the trainer ended after {seen[0]:.0f} of {samples} samples")
            time.sleep(LOOK_S)
        return seen

    def __enter__(self) -> Watcher:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.process.kill()
        self.process.communicate()


def per_epoch(first: tuple[float, float, float], last: tuple[float, float, float], samples: int) -> dict[str, float]:
    """Of what lies between two looks."""
    count, sent, seconds = (b - a for a, b in zip(first, last, strict=True))
    return {"bytes_per_sample": sent / count, "epoch_s": seconds / count * samples}


def one_run(setup: Setup, rates: tuple[int, ...]) -> list[dict[str, float]]:
    """A trainer that sees these rates one after the other: its later epochs at each of them."""
    data = setup.data("imagenet", SAMPLES)
    setup.network.rate(rates[0])
    rows = []
    with setup.server({"data": data}, 1, apart=True, more=("--metrics", 0)) as server, Watcher(server) as watcher:
        samples = server.ready["data"][0]["samples"]
        # One epoch more than is looked at: nothing of its end is counted.
        trainer = setup.trainer(server, "data", "imagenet-train", "sophon", EPOCHS * len(rates) + 1)
        for number, mbit in enumerate(rates):
            setup.network.rate(mbit)
            begun = number * EPOCHS
            first = watcher.wait_for((begun + SETTLING) * samples, trainer)
            last = watcher.wait_for((begun + EPOCHS) * samples, trainer)
            rows.append({"mbit": mbit, **per_epoch(first, last, samples)})
        trainer.end()
    return rows


def measure(setup: Setup) -> dict[str, Any]:
    if not setup.network.real:
        raise Refused(f"only a link between namespaces can change its rate ({setup.network.why_not})")
    fresh = {mbit: one_run(setup, (mbit,))[0] for mbit in dict.fromkeys(RATES[1:])}
    return judged(one_run(setup, RATES)[1:], fresh)


def judged(changed: list[dict[str, float]], fresh: dict[int, dict[str, float]]) -> dict[str, Any]:
    """Each rate that the link changed to, beside a run that began with it."""
    rows = []
    for row in changed:
        beside = fresh[int(row["mbit"])]
        ratios = {key: row[key] / beside[key] for key in ("bytes_per_sample", "epoch_s")}
        rows.append({"changed": row, "fresh": beside, "to_fresh": ratios})
    return {"rates": list(RATES), "rows": rows}


def holds(row: dict[str, Any]) -> bool:
    return all(ratio <= WITHIN for ratio in row["to_fresh"].values())


def text(found: dict[str, Any]) -> list[str]:
    rates = " to ".join(map(str, found["rates"]))
    lines = [f"the link goes from {rates} Mb/s in one run; kB a sample and seconds of an epoch, some epochs later"]
    for row in found["rows"]:
        changed, fresh = row["changed"], row["fresh"]
        lines.append(
            f"  {changed['mbit']:>5} Mb/s  {changed['bytes_per_sample'] / 1e3:6.1f} kB, {changed['epoch_s']:5.2f} s; "
            f"from the beginning {fresh['bytes_per_sample'] / 1e3:6.1f} kB, {fresh['epoch_s']:5.2f} s (wanted: at most "
            f"{100 * (WITHIN - 1):.0f} % more of each): {verdict(holds(row))}"
        )
    return lines


def failed(found: dict[str, Any]) -> bool:
    return not all(holds(row) for row in found["rows"])
