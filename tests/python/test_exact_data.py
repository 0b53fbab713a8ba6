# SPDX-License-Identifier: Apache-2.0
"""Real photographs: the pixels of torchvision on Pillow, bit for bit, given the same draws."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torchvision.transforms.functional as F
from helpers import MEAN, REPO, STD, image_of, noise, same, save

import cutwater as cw

EPOCHS = range(3)
PILLOW_12 = REPO / ".venvs" / "pillow12" / "bin" / "python"


def test_training_pipeline_is_torchvisions(real_tree: Path) -> None:
    u8 = cw.folder(real_tree).decode().random_resized_crop(224).random_horizontal_flip()
    f32 = u8.to_tensor().normalize(MEAN, STD)
    differing = []
    for i in range(len(u8)):
        original = PIL.Image.open(u8.path(i)).convert("RGB")
        for epoch in EPOCHS:
            crop, flip = f32.draws(i, epoch)
            want = F.resized_crop(original, crop["top"], crop["left"], crop["height"], crop["width"], [224, 224])
            want = F.hflip(want) if flip["flip"] else want
            if not same(image_of(u8, i, epoch=epoch), want):
                differing.append((u8.path(i), epoch, "uint8"))
            if not same(image_of(f32, i, epoch=epoch), F.normalize(F.to_tensor(want), MEAN, STD)):
                differing.append((u8.path(i), epoch, "float32"))
    assert differing == []


def test_validation_pipeline_is_torchvisions(real_tree: Path) -> None:
    ds = cw.folder(real_tree).apply("imagenet-val")
    differing = []
    for i in range(len(ds)):
        original = PIL.Image.open(ds.path(i)).convert("RGB")
        want = F.normalize(F.to_tensor(F.center_crop(F.resize(original, 256), 224)), MEAN, STD)
        if not same(image_of(ds, i), want):
            differing.append(ds.path(i))
    assert differing == []


def pillow_12(tmp_path: Path, jobs: list[dict[str, Any]]) -> list[np.ndarray]:
    if not PILLOW_12.exists():
        pytest.skip(f"no {PILLOW_12}: tools/bootstrap.sh test makes it")
    (tmp_path / "jobs.json").write_text(json.dumps(jobs))
    script = Path(__file__).with_name("pillow_reference.py")
    subprocess.run([PILLOW_12, script, tmp_path / "jobs.json", tmp_path / "results.npz"], check=True, timeout=100)
    with np.load(tmp_path / "results.npz") as results:
        return [results[f"arr_{k}"] for k in range(len(jobs))]


def job(path: str | Path, size: tuple[int, int], box: Any = None, flip: bool = False, filter: str = "BILINEAR") -> dict:
    return {"path": str(path), "size": [size[1], size[0]], "box": box, "flip": flip, "filter": filter}


def test_pillow_12_pixels_on_request(real_tree: Path, tmp_path: Path) -> None:
    train = cw.folder(real_tree).decode().random_resized_crop(224, pillow=12).random_horizontal_flip()
    jobs, got = [], []
    for i in range(len(train)):
        crop, flip = train.draws(i, epoch=1)
        left, top = crop["left"], crop["top"]
        box = [left, top, left + crop["width"], top + crop["height"]]
        jobs.append(job(train.path(i), (224, 224), box, flip["flip"]))
        got.append(image_of(train, i, epoch=1))
    wanted = pillow_12(tmp_path, jobs)
    assert [j["path"] for j, a, b in zip(jobs, got, wanted, strict=True) if not same(a, b)] == []
    # The option matters: the two Pillows differ on these very files.
    newest = cw.folder(real_tree).decode().random_resized_crop(224).random_horizontal_flip()
    assert not all(same(image_of(newest, i, epoch=1), want) for i, want in enumerate(wanted))


def test_every_filter_has_pillow_12_pixels(tmp_path: Path) -> None:
    jobs, got = [], []
    for shape in [(1, 7), (33, 47), (90, 20), (200, 300)]:
        path = save(tmp_path / f"{shape[0]}x{shape[1]}.png", noise(*shape, seed=5))
        for filter in ("NEAREST", "BILINEAR", "BICUBIC", "BOX", "HAMMING", "LANCZOS"):
            for size in [(1, 1), (16, 50), (64, 64), (250, 30)]:
                jobs.append(job(path, size, filter=filter))
                ds = cw.files([path]).decode().resize(size, interpolation=filter.lower(), pillow=12)
                got.append(image_of(ds))
    wanted = pillow_12(tmp_path, jobs)
    assert [j for j, a, b in zip(jobs, got, wanted, strict=True) if not same(a, b)] == []
