# SPDX-License-Identifier: Apache-2.0
"""The time to decide what is sent of a million samples (bench/stages/offload.cc)."""

from __future__ import annotations

import json
from typing import Any

from sophon_net import call
from sophon_setup import Setup, build_stage, verdict

WANTED_S = 1.0


def measure(_: Setup) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(call(build_stage("offload")))
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
