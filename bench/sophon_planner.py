# SPDX-License-Identifier: Apache-2.0
"""The time to decide what is sent of a million samples (bench/stages/offload.cc)."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from rows import ROOT
from sophon_net import Refused
from sophon_setup import Setup, verdict

WANTED_S = 1.0


def measure(_: Setup) -> dict[str, Any]:
    for words in (
        ["cmake", "--preset", "release", "-DCUTWATER_STAGES=ON"],
        ["cmake", "--build", "--preset", "release", "--target", "bench_offload"],
        [str(ROOT / "build/release/bin/bench_offload")],
    ):
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            raise Refused(f"{' '.join(words)}: {(done.stderr or done.stdout).strip()[-300:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def text(found: dict[str, Any]) -> list[str]:
    lines = [f"{found['samples']} samples with {found['options']} options each, median of 5"]
    for case in found["cases"]:
        lines.append(
            f"  {case['seconds']:.2f} s with {case['trainer_threads']} threads in the trainer; bound by "
            f"{case['bound_by']}, {case['above_least']:.0e} above what is proven"
        )
    lines.append(f"  wanted less than {WANTED_S:.0f} s: {verdict(not failed(found))}")
    return lines


def failed(found: dict[str, Any]) -> bool:
    return any(case["seconds"] >= WANTED_S for case in found["cases"])
