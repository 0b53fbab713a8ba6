# SPDX-License-Identifier: Apache-2.0
"""TurboLoader: its fused native path, RandomResizedCrop and flip included, from a tar of the same files (it
reads no folders). Variants: antialias, plain (its default; it skips source pixels when it shrinks). Its
thread pool takes the cores it is pinned to and OMP_NUM_THREADS."""

import pathlib
import tarfile
import tempfile

import numpy as np
import turboloader
from job import BATCH, SIZE, Crop, Job, write_tars

PACKAGES = ("turboloader",)
SETTINGS = "train_aug, 4 batches ahead, pool of as many threads as cores"


def prepare(folder: str, scratch: str, variant: str) -> str:
    return write_tars(folder, scratch, shards=1)[0]


def open_loader(tar: str, job: Job, **how):
    return turboloader.DataLoader(
        tar,
        batch_size=BATCH,
        num_workers=job.cores,
        transform=turboloader.ImageNetNormalize(),
        image_size=SIZE,
        output_format="numpy_chw",
        antialias=job.variant == "antialias",
        **how,
    )


def epochs(job: Job):
    loader = open_loader(job.data, job, shuffle=True, train_aug=True)
    count = iter(range(1 << 30))

    def epoch():
        loader.set_epoch(next(count))
        return (images for images, _ in loader)

    return epoch


def pixels(job: Job, crops: list[Crop]):
    """It cannot be told which box to take, so here it is the whole image, through its decode and resize."""
    with tempfile.TemporaryDirectory() as scratch:
        tar = pathlib.Path(scratch) / "crops.tar"
        with tarfile.open(tar, "w", dereference=True) as archive:
            for i, crop in enumerate(crops):
                archive.add(crop.path, f"{i:06d}.jpg")
        images = np.empty((len(crops), 3, SIZE, SIZE), np.float32)
        for batch, meta in open_loader(str(tar), job, shuffle=False):
            images[meta["indices"]] = batch
    sizes = [turboloader.decode_jpeg(pathlib.Path(crop.path).read_bytes()).shape[:2] for crop in crops]
    return images, [Crop(crop.path, 0, 0, *size, False) for crop, size in zip(crops, sizes, strict=True)]
