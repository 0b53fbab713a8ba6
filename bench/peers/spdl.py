# SPDX-License-Identifier: Apache-2.0
"""SPDL: threads of its pipeline, a batch each, written in place. Variants: ffmpeg (its own decoder, which
also crops, resizes and flips), torchvision (decode_jpeg and uint8 resize in its threads)."""

import random

import numpy as np
import spdl.io
import torch
from job import BATCH, MEAN, SIZE, STD, Crop, Job, files, random_box
from spdl.pipeline import PipelineBuilder
from torchvision.io import ImageReadMode, decode_jpeg, read_file
from torchvision.transforms.v2 import functional as F

PACKAGES = ("spdl-io", "spdl-core", "torch", "torchvision")
SETTINGS = "a stage of as many threads as cores, 2 batches ahead"

torch.set_num_threads(1)
SCALE = np.array([1 / (255 * s) for s in STD], np.float32).reshape(3, 1, 1)
SHIFT = np.array([-m / s for m, s in zip(MEAN, STD, strict=True)], np.float32).reshape(3, 1, 1)


def with_ffmpeg(path: str, crop: Crop | None) -> np.ndarray:
    packets = spdl.io.demux_image(path)
    top, left, height, width = crop[1:5] if crop else random_box(packets.width, packets.height)
    flip = crop.flip if crop else random.random() < 0.5
    steps = [
        "format=rgb24",
        f"crop={width}:{height}:{left}:{top}:exact=1",
        f"scale={SIZE}:{SIZE}:flags=bilinear",
        *(["hflip"] if flip else []),
    ]
    frames = spdl.io.decode_packets(packets, filter_desc=",".join(steps))
    return spdl.io.to_numpy(spdl.io.convert_frames(frames)).transpose(2, 0, 1)


def with_torchvision(path: str, crop: Crop | None) -> np.ndarray:
    image = decode_jpeg(read_file(path), mode=ImageReadMode.RGB)
    box = crop[1:5] if crop else random_box(image.shape[2], image.shape[1])
    image = F.resized_crop(image, *box, [SIZE, SIZE], antialias=True)
    return (F.horizontal_flip(image) if (crop.flip if crop else random.random() < 0.5) else image).numpy()


def load_batch(variant: str, paths: list[str], crops: list[Crop] | None = None) -> np.ndarray:
    load = with_ffmpeg if variant == "ffmpeg" else with_torchvision
    out = np.empty((len(paths), 3, SIZE, SIZE), np.float32)
    for i, path in enumerate(paths):
        np.multiply(load(path, crops[i] if crops else None), SCALE, out=out[i])
        out[i] += SHIFT
    return out


def epochs(job: Job):
    listed = [str(file) for file in files(job.data)]

    def epoch():
        random.shuffle(listed)
        batches = [listed[i : i + BATCH] for i in range(0, len(listed), BATCH)]
        pipeline = (
            PipelineBuilder()
            .add_source(batches)
            .pipe(lambda paths: load_batch(job.variant, paths), concurrency=job.cores)
            .add_sink(2)
            .build(num_threads=job.cores)
        )
        with pipeline.auto_stop():
            yield from pipeline.get_iterator()

    return epoch


def pixels(job: Job, crops: list[Crop]):
    return load_batch(job.variant, [crop.path for crop in crops], crops), crops
