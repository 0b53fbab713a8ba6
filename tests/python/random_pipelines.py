# SPDX-License-Identifier: Apache-2.0
"""Pipelines drawn from the table of ops: valid ones, every parameter set to something."""

from __future__ import annotations

import random
from typing import Any

import cutwater as cw
from cutwater import _core

FILTERS = ["nearest", "nearest-exact", "bilinear", "bicubic", "box", "hamming", "lanczos"]


def size(rng: random.Random) -> Any:
    return rng.choice([rng.randint(1, 40), [rng.randint(1, 40), rng.randint(1, 40)]])


def value(rng: random.Random, op: str, name: str) -> Any:
    """A legal value of a parameter."""
    match name:
        case "size":
            return size(rng)
        case "interpolation":
            return rng.choice(FILTERS)
        case "padding_mode":
            return rng.choice(["constant", "edge", "reflect", "symmetric"])
        case "padding":
            return [rng.randint(0, 9) for _ in range(rng.choice([1, 2, 4]))]
        case "fill":
            return [rng.randint(0, 255) for _ in range(rng.choice([1, 3]))]
        case "scale":
            return rng.random() < 0.5 if op == "to_dtype" else [rng.uniform(0.01, 0.5), rng.uniform(0.5, 1)]
        case "ratio":
            return [rng.uniform(0.1, 1), rng.uniform(1, 10)]
        case "pillow":
            return rng.choice([12, 13])
        case "p":
            return rng.random()
        case "mean":
            return [rng.uniform(-1, 1)] * rng.choice([1, 3])
        case "std":
            return [rng.uniform(0.1, 1)] * rng.choice([1, 3])
        case "num_output_channels":
            return rng.choice([1, 3])
        case "dtype":
            return rng.choice(["uint8", "int16", "int32", "int64", "float16", "float32", "float64"])
        case "channels_last":
            return rng.random() < 0.5
        case "max_pixels" | "max_bytes" | "max_scans":
            return rng.randint(10**6, 2**40)
        case "antialias":
            return True
        case "max_size":
            return None
        case "exif" | "pad_if_needed":
            return rng.random() < 0.5
    raise AssertionError(f"a new parameter {name!r} of {op}: say here what it may be")


def params(rng: random.Random, op: dict[str, Any]) -> dict[str, Any]:
    given = {}
    for param in op["params"]:
        if param["required"] or rng.random() < 0.5:
            given[param["name"]] = value(rng, op["name"], param["name"])
    return given


def follows(op: str, before: str) -> bool:
    """Channels come first after to_tensor: test_layout.py has what must not follow."""
    channels_first = "to_tensor" in before
    return op in ("normalize", "to_dtype") if channels_first else op != "normalize"


def random_pipeline(rng: random.Random, length: int) -> cw.Pipeline:
    """decode, then ops as they come; one that cannot follow the last is left out."""
    table = {op["name"]: op for op in _core.ops()}
    pipeline = _core.Pipeline().then("decode", params(rng, table["decode"]))
    while len(pipeline) < length:
        op = rng.choice(list(table.values()))
        if not follows(op["name"], str(pipeline)):
            continue
        try:
            pipeline = pipeline.then(op["name"], params(rng, op))
        except ValueError:
            continue
    return pipeline
