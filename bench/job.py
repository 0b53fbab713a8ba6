# SPDX-License-Identifier: Apache-2.0
"""The job that every loader does, and what the loaders' files share. Standard library only: this is
imported into every peer's own environment."""

from __future__ import annotations

import math
import os
import pathlib
import random
import tarfile
from typing import NamedTuple

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
BATCH, SIZE = 64, 224
EXTENSIONS = frozenset({".jpg", ".jpeg"})


class Job(NamedTuple):
    """What one process is to do. `data` is a class folder, or what the peer's `prepare` has made of it."""

    peer: str
    variant: str
    data: str
    cores: int


class Crop(NamedTuple):
    """One sample's draws, with the file they are for."""

    path: str
    top: int
    left: int
    height: int
    width: int
    flip: bool


def files(folder: str, endings: frozenset[str] = EXTENSIONS) -> list[pathlib.Path]:
    """The JPEGs (or others) below a folder, links followed."""
    found = (pathlib.Path(where) / name for where, _, names in os.walk(folder, followlinks=True) for name in names)
    return sorted(file for file in found if file.suffix.lower() in endings)


def labels(folder: str) -> dict[str, int]:
    """The label of each class: the place of its folder's name."""
    return {name: i for i, name in enumerate(sorted({file.parent.name for file in files(folder)}))}


def random_box(width: int, height: int) -> tuple[int, int, int, int]:
    """Top, left, height and width as torchvision's RandomResizedCrop draws them."""
    low, high = math.log(3 / 4), math.log(4 / 3)
    for _ in range(10):
        area = width * height * random.uniform(0.08, 1.0)
        ratio = math.exp(random.uniform(low, high))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            return random.randint(0, height - h), random.randint(0, width - w), h, w
    w = min(width, round(height * 4 / 3))
    h = min(height, round(width * 4 / 3))
    return (height - h) // 2, (width - w) // 2, h, w


def write_tars(folder: str, scratch: str, shards: int) -> list[str]:
    """The same files as `shards` tar archives in the WebDataset convention: NAME.jpg and NAME.cls."""
    label = labels(folder)
    everything = files(folder)
    random.Random(0).shuffle(everything)
    paths = []
    for k in range(shards):
        path = pathlib.Path(scratch) / f"shard-{k}.tar"
        with tarfile.open(path, "w", dereference=True) as tar:
            for i, file in list(enumerate(everything))[k::shards]:
                tar.add(file, f"{i:06d}.jpg")
                member = pathlib.Path(scratch) / "label"
                member.write_text(str(label[file.parent.name]))
                tar.add(member, f"{i:06d}.cls")
        paths.append(str(path))
    return paths
