# SPDX-License-Identifier: Apache-2.0
"""NVIDIA DALI on the CPU: the decoder makes only the crop's part of the image, then an antialiased linear
resize, then flip and normalization in one operator."""

import numpy as np
from job import BATCH, MEAN, SIZE, STD, Crop, Job, files, labels
from nvidia.dali import fn, pipeline_def, types

PACKAGES = ("nvidia-dali-cuda120",)
SETTINGS = "num_threads = cores, 2 batches ahead, decoders.image_random_crop"


def resize_and_normalize(images, mirror):
    images = fn.resize(images, size=[SIZE, SIZE], interp_type=types.INTERP_LINEAR, antialias=True)
    return fn.crop_mirror_normalize(
        images,
        dtype=types.FLOAT,
        output_layout="CHW",
        mean=[255 * m for m in MEAN],
        std=[255 * s for s in STD],
        mirror=mirror,
    )


@pipeline_def(batch_size=BATCH, prefetch_queue_depth=2, device_id=None)
def training(paths: list[str], classes: list[int]):
    jpegs, label = fn.readers.file(
        files=paths, labels=classes, random_shuffle=True, initial_fill=len(paths), name="reader", pad_last_batch=False
    )
    images = fn.decoders.image_random_crop(
        jpegs, output_type=types.RGB, random_aspect_ratio=[3 / 4, 4 / 3], random_area=[0.08, 1.0], num_attempts=10
    )
    return resize_and_normalize(images, fn.random.coin_flip()), label


def epochs(job: Job):
    """Its reader has no end: an epoch is as many batches as hold all files, which is a few images more."""
    label = labels(job.data)
    listed = files(job.data)
    pipeline = training(
        [str(file) for file in listed], [label[file.parent.name] for file in listed], num_threads=job.cores
    )
    pipeline.build()
    batches = -(-len(listed) // BATCH)

    def epoch():
        for _ in range(batches):
            images, _ = pipeline.run()
            yield np.asarray(images.as_tensor())

    return epoch


def pixels(job: Job, crops: list[Crop]):
    """The boxes are given, to the decoder that makes a part of an image."""

    @pipeline_def(batch_size=len(crops), num_threads=job.cores, device_id=None)
    def given_boxes():
        def external(of, dtype):
            return fn.external_source(source=lambda: [np.asarray(of(crop), dtype) for crop in crops])

        images = fn.decoders.image_slice(
            external(lambda crop: np.fromfile(crop.path, np.uint8), np.uint8),
            external(lambda crop: (crop.left, crop.top), np.int32),
            external(lambda crop: (crop.width, crop.height), np.int32),
            output_type=types.RGB,
            normalized_anchor=False,
            normalized_shape=False,
        )
        return resize_and_normalize(images, external(lambda crop: int(crop.flip), np.int32))

    pipeline = given_boxes()
    pipeline.build()
    (images,) = pipeline.run()
    return np.array(images.as_tensor()), crops
