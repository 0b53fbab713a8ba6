# SPDX-License-Identifier: Apache-2.0
"""One job of seneca.py's makespan: a process that gets ready, waits for a line on stdin, trains for some epochs
(it touches every batch), and prints what became of it as a line of JSON.

usage: seneca_job.py REQUEST    (as JSON; called by seneca.py, not by hand)
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

from job import Job
from measure import cpu_seconds, load


def torchs(request: dict[str, Any]) -> Callable[[], Iterable[Any]]:
    epochs: Callable[[], Iterable[Any]] = load("torch").epochs(Job("torch", "", request["data"], request["workers"]))
    return epochs


def main() -> None:
    request = json.loads(sys.argv[1])
    loader: Any = None
    if request["loader"] == "torch":
        epoch = torchs(request)
    else:
        import cutwater as cw

        ds = cw.folder(request["data"]).apply(request["pipeline"])
        loader = cw.DataLoader(ds, shuffle=True, output="torch", **request["options"])

        def epoch() -> Iterable[Any]:
            return (batch["image"] for batch in loader)

    import torch

    torch.set_num_threads(1)
    torch.zeros(2, 3, 128, 128)[:, :, ::64, ::64].sum()  # what torch does once, it has done
    print("ready", flush=True)
    sys.stdin.readline()
    samples, touched = 0, 0.0
    before, ends = cpu_seconds(), [time.perf_counter()]
    for _ in range(request["epochs"]):
        for images in epoch():
            samples += len(images)
            touched += float(images[:, :, ::64, ::64].sum())
        ends.append(time.perf_counter())
    answer = {
        "samples": samples,
        "epochs_s": [end - begin for begin, end in itertools.pairwise(ends)],
        "cpu_s": cpu_seconds() - before,
        "cache": loader.stats()["cache"] if loader else None,
        "touched": touched,
    }
    print(json.dumps(answer), flush=True)
    os._exit(0)  # torch's workers need no farewell


if __name__ == "__main__":
    main()
