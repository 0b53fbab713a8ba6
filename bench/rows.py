# SPDX-License-Identifier: Apache-2.0
"""The rows of the table, and the environments their processes run in."""

from __future__ import annotations

import hashlib
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent


class CannotRun(Exception):
    """Why a row has no numbers, in one line."""


class Row(NamedTuple):
    name: str
    peer: str  # its file in peers/
    environment: str = ""  # .venvs/NAME, from requirements/peers/NAME.txt; empty: the one that runs peers.py
    on_torch: bool = False  # it also sees the torch of the environment that runs peers.py
    omp: bool = False  # OMP_NUM_THREADS is the size of its pool
    variants: tuple[str, ...] = ("",)  # all are measured, the fastest is the row
    prepared: str = ""  # what was made of the files before the timed epochs, in words
    own_format: bool = False  # made by the peer's prepare()


OURS = [
    Row("cutwater", "cutwater", variants=("files",)),
    Row("cutwater-index", "cutwater", variants=("index",)),
    Row("cutwater-coefficients", "cutwater", variants=("coefficients",), prepared="coefficients in RAM"),
    Row("cutwater-pixels", "cutwater", variants=("pixels",), prepared="decoded pixels in RAM"),
]

PEERS = {
    "torch": [Row("torch", "torch")],
    "torch-tensor": [Row("torch-tensor", "torch_tensor")],
    "turboloader": [
        Row(
            "turboloader",
            "turboloader",
            "turboloader",
            omp=True,
            variants=("plain", "antialias"),
            prepared="tar",
            own_format=True,
        )
    ],
    "dali": [Row("dali", "dali", "dali")],
    "ffcv": [
        Row(
            "ffcv-jpg",
            "ffcv",
            "ffcv",
            on_torch=True,
            variants=("jpg",),
            prepared="re-encoded, quality 90",
            own_format=True,
        ),
        Row(
            "ffcv-raw",
            "ffcv",
            "ffcv",
            on_torch=True,
            variants=("raw",),
            prepared="decoded pixels on disk",
            own_format=True,
        ),
    ],
    "spdl": [Row("spdl", "spdl", "spdl", on_torch=True, variants=("torchvision", "ffmpeg"))],
    "tfdata": [Row("tfdata", "tfdata", "tfdata", variants=("plain", "antialias"))],
    "grain": [Row("grain", "grain", "grain")],
    "webdataset": [Row("webdataset", "webdataset", "webdataset", on_torch=True, prepared="tar", own_format=True)],
}


def reason(output: str) -> str:
    """The line that says most: the last one that names an error, or else the last one."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"(\w+\.)*\w*(Error|Exception)\b", line)]
    return (errors or lines or ["no reason given"])[-1][:300]


def python_of(row: Row) -> str:
    """The interpreter for a row. Its environment is made when it is missing or its requirements have changed."""
    if not row.environment:
        return sys.executable
    folder = ROOT / ".venvs" / row.environment
    python = folder / "bin/python"
    requirements = ROOT / "requirements/peers" / f"{row.environment}.txt"
    stamp = folder / ".requirements.sha256"
    wanted = hashlib.sha256(requirements.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return str(python)
    print(f"installing into .venvs/{row.environment}: {requirements.relative_to(ROOT)}", file=sys.stderr)
    _run([sys.executable, "-m", "venv", str(folder)])
    if row.on_torch:
        (site,) = folder.glob("lib/python3*/site-packages")
        (site / "torch.pth").write_text(sysconfig.get_path("purelib") + "\n")
    _run([str(python), "-m", "pip", "install", "--quiet", "--no-cache-dir", "-r", str(requirements)])
    stamp.write_text(wanted)
    return str(python)


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise CannotRun(f"not installed: {reason(done.stdout + done.stderr)}")


def surroundings(row: Row, cores: int) -> dict[str, str]:
    """Environment variables: libraries underneath must not start threads of their own beside the loader's."""
    threads = str(cores if row.omp else 1)
    return {**os.environ, "OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
