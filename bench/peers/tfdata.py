# SPDX-License-Identifier: Apache-2.0
"""tf.data: decode_and_crop_jpeg makes only the crop's part of the image. Variants: plain (the default of its
resize, which skips source pixels when it shrinks), antialias; centred-crop is the pipeline of presto.py that
centres pixels before it crops."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf
from job import BATCH, EXTENSIONS, MEAN, SIZE, STD, Crop, Job, files

PACKAGES = ("tensorflow-cpu",)
SETTINGS = "num_parallel_calls and both thread pools = cores, 2 batches ahead, deterministic=False"

SCALE = [1 / (255 * s) for s in STD]
SHIFT = [-m / s for m, s in zip(MEAN, STD, strict=True)]


def finish(jpeg, box, flip, antialias: bool):
    """From the file's bytes and a box (top, left, height, width) to the normalized image."""
    image = tf.image.decode_and_crop_jpeg(jpeg, box, channels=3)
    image = tf.image.resize(image, [SIZE, SIZE], antialias=antialias)
    image = tf.cond(flip, lambda: tf.reverse(image, [1]), lambda: image)
    return tf.transpose(image * SCALE + SHIFT, [2, 0, 1])


def epochs(job: Job):
    tf.config.threading.set_intra_op_parallelism_threads(job.cores)
    tf.config.threading.set_inter_op_parallelism_threads(job.cores)
    antialias = job.variant == "antialias"
    listed = [str(file) for file in files(job.data, EXTENSIONS | {".png"})]

    def load(path):
        jpeg = tf.io.read_file(path)
        begin, size, _ = tf.image.sample_distorted_bounding_box(
            tf.image.extract_jpeg_shape(jpeg),
            tf.zeros([1, 0, 4]),
            min_object_covered=0.0,
            aspect_ratio_range=(3 / 4, 4 / 3),
            area_range=(0.08, 1.0),
            max_attempts=10,
            use_image_if_no_bounding_boxes=True,
        )
        return finish(jpeg, tf.concat([begin[:2], size[:2]], 0), tf.random.uniform([]) < 0.5, antialias)

    def load_centred(path):
        image = tf.io.decode_image(tf.io.read_file(path), channels=3, expand_animations=False)
        shape = tf.shape(image)[:2]
        short = tf.reduce_min(shape)
        image = tf.image.resize(image, shape * 256 // short, antialias=True) * SCALE + SHIFT
        return tf.transpose(tf.image.random_crop(image, [SIZE, SIZE, 3]), [2, 0, 1])

    data = tf.data.Dataset.from_tensor_slices(listed).shuffle(len(listed))
    data = (
        data.map(
            load_centred if job.variant == "centred-crop" else load, num_parallel_calls=job.cores, deterministic=False
        )
        .batch(BATCH)
        .prefetch(2)
    )
    options = tf.data.Options()
    options.threading.private_threadpool_size = job.cores
    return lambda: data.with_options(options).as_numpy_iterator()


def pixels(job: Job, crops: list[Crop]):
    images = [
        finish(tf.io.read_file(crop.path), crop[1:5], tf.constant(bool(crop.flip)), job.variant == "antialias")
        for crop in crops
    ]
    return np.stack(images), crops
