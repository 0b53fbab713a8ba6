# SPDX-License-Identifier: Apache-2.0
"""Grain: its threads over Pillow, which releases the interpreter lock in decode and resize."""

import grain
import numpy as np
from job import BATCH, MEAN, SIZE, STD, Crop, Job, files, random_box
from PIL import Image

PACKAGES = ("grain", "pillow", "numpy")
SETTINGS = "ReadOptions(num_threads = cores, 2 batches ahead)"

SCALE = np.array([1 / (255 * s) for s in STD], np.float32).reshape(3, 1, 1)
SHIFT = np.array([-m / s for m, s in zip(MEAN, STD, strict=True)], np.float32).reshape(3, 1, 1)


def finish(image: Image.Image, box: tuple[int, int, int, int], flip: bool) -> np.ndarray:
    top, left, height, width = box
    image = image.crop((left, top, left + width, top + height)).resize((SIZE, SIZE), Image.Resampling.BILINEAR)
    pixels = np.asarray(image).transpose(2, 0, 1)
    out = np.multiply(pixels[:, :, ::-1] if flip else pixels, SCALE, order="C")
    out += SHIFT
    return out


def load(path: str, rng: np.random.Generator) -> np.ndarray:
    with Image.open(path) as file:
        image = file.convert("RGB")
    return finish(image, random_box(*image.size), bool(rng.integers(2)))


def epochs(job: Job):
    listed = [str(file) for file in files(job.data)]
    count = iter(range(1 << 30))

    def epoch():
        data = grain.MapDataset.source(listed).seed(next(count)).shuffle().random_map(load)
        read = grain.ReadOptions(num_threads=job.cores, prefetch_buffer_size=2 * BATCH)
        return iter(data.to_iter_dataset(read).batch(BATCH))

    return epoch


def pixels(job: Job, crops: list[Crop]):
    images = []
    for crop in crops:
        with Image.open(crop.path) as file:
            images.append(finish(file.convert("RGB"), crop[1:5], crop.flip))
    return np.stack(images), crops
