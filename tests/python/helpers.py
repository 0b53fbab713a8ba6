# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests: images made on the spot, the real data, and what a loader delivered."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

import cutwater as cw

REPO = Path(__file__).resolve().parents[2]
COMMAND = REPO / "build" / "bin" / "cutwater"
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
IMAGE_ENDINGS = {".jpeg", ".jpg", ".png", ".webp", ".gif", ".bmp"}


def data_folder(name: str) -> Path:
    """A folder of the real sample data; skips the test where there is none."""
    root = Path(os.environ.get("DATA_DIR") or REPO.parent / "shared" / "data")
    if not (root / name).is_dir():
        pytest.skip(f"no {root / name}: set DATA_DIR to the folder of the sample data")
    return root / name


def link_classes(root: Path, *folders: Path) -> Path:
    """Class folders of links to every image of the folders; the class is what stands before '_'."""
    for folder in folders:
        for file in sorted(folder.iterdir()):
            if file.suffix.lower() in IMAGE_ENDINGS:
                place = root / file.name.split("_")[0]
                place.mkdir(exist_ok=True)
                (place / file.name).symlink_to(file)
    return root


def noise(height: int, width: int, seed: int = 0, block: int = 1) -> np.ndarray:
    """RGB noise; squares of `block` pixels make it survive JPEG."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, (-(-height // block), -(-width // block), 3), dtype=np.uint8)
    return coarse.repeat(block, 0).repeat(block, 1)[:height, :width]


def save(path: Path, pixels: np.ndarray, **options: Any) -> Path:
    PIL.Image.fromarray(pixels).save(path, **options)
    return path


def rgb(path: str | Path) -> np.ndarray:
    """What Pillow makes of the file."""
    return np.asarray(PIL.Image.open(path).convert("RGB"))


def image_of(ds: cw.Dataset, id: int = 0, **when: int) -> np.ndarray:
    return ds.get(id, **when)["image"]


def same(a: Any, b: Any) -> bool:
    """Equal in type, shape and every bit."""
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def ids_of(batches: Iterable[cw.Batch]) -> list[int]:
    return [int(id) for batch in batches for id in batch.ids]


def seen(batch: cw.Batch) -> tuple[Any, ...]:
    """All that a consumer can see of a batch; hashes stand for the arrays."""
    fields = tuple((name, hashlib.sha1(np.ascontiguousarray(f)).hexdigest()) for name, f in batch.fields.items())
    return batch.epoch, batch.index, tuple(int(id) for id in batch.ids), fields


def stream(loader: cw.DataLoader, epochs: int = 1) -> list[tuple[Any, ...]]:
    return [seen(batch) for _ in range(epochs) for batch in loader]


def until(condition: Callable[[], bool], seconds: float = 20) -> bool:
    """Waits for a condition that must come true; False when it has not by the deadline."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.002)
    return True


def threads_of(pid: int | str = "self") -> int:
    return len(os.listdir(f"/proc/{pid}/task"))


def run_python(code: str, *args: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs code in a fresh interpreter, as a process that may die or hang alone."""
    command = [sys.executable, "-c", code, *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, **options)


def as_somebody() -> dict[str, Any]:
    """Options for subprocess: not as root, who may read and write everything."""
    return {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}


def command(*args: object, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, *map(str, args)], capture_output=True, text=True, timeout=60, **options)
