# SPDX-License-Identifier: Apache-2.0
"""FFCV, from its own file format, made before the clock runs. Variants: jpg (files re-encoded with quality 90:
other pixels), raw (decoded pixels). It always decodes whole images and resizes by area."""

import numpy as np
import torch
from ffcv.fields import IntField, RGBImageField
from ffcv.fields.rgb_image import RandomResizedCropRGBImageDecoder, encode_jpeg
from ffcv.libffcv import imdecode, resize_crop
from ffcv.loader import Loader, OrderOption
from ffcv.transforms import NormalizeImage, RandomHorizontalFlip, ToTensor, ToTorchImage
from ffcv.writer import DatasetWriter
from job import BATCH, MEAN, SIZE, STD, Crop, Job, files, labels
from PIL import Image

PACKAGES = ("ffcv", "numba", "torch")
SETTINGS = "num_workers = cores, 3 batches ahead, os_cache"

torch.set_num_threads(1)
MEAN_255, STD_255 = (255 * np.array(values) for values in (MEAN, STD))


class Images:
    """What its writer reads: (image, label) by number."""

    def __init__(self, folder: str) -> None:
        self.files, self.labels = files(folder), labels(folder)

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, i: int):
        with Image.open(self.files[i]) as file:
            return np.asarray(file.convert("RGB")), self.labels[self.files[i].parent.name]


def prepare(folder: str, scratch: str, variant: str) -> str:
    path = f"{scratch}/{variant}.beton"
    fields = {"image": RGBImageField(write_mode=variant, jpeg_quality=90), "label": IntField()}
    # An image must fit into a page, or the writer waits for ever.
    DatasetWriter(path, fields, page_size=1 << 25, num_workers=1).from_indexed_dataset(Images(folder))
    return path


def epochs(job: Job):
    image = [
        RandomResizedCropRGBImageDecoder((SIZE, SIZE)),
        RandomHorizontalFlip(),
        NormalizeImage(MEAN_255, STD_255, np.float32),
        ToTensor(),
        ToTorchImage(channels_last=False),
    ]
    loader = Loader(
        job.data,
        batch_size=BATCH,
        num_workers=job.cores,
        order=OrderOption.RANDOM,
        os_cache=True,
        drop_last=False,
        pipelines={"image": image, "label": None},
    )
    return lambda: (images for (images,) in loader)


def pixels(job: Job, crops: list[Crop]):
    """Its own functions for decode and resize, for the given boxes; from the file's bytes re-encoded as its
    writer does it, or from Pillow's pixels, as the variant says."""
    images = []
    for crop in crops:
        with Image.open(crop.path) as file:
            decoded = np.array(file.convert("RGB"))
        if job.variant == "jpg":
            encoded = encode_jpeg(decoded, 90)
            imdecode(encoded, decoded, *decoded.shape[:2], *decoded.shape[:2])
        out = np.empty((SIZE, SIZE, 3), np.uint8)
        resize_crop(decoded, crop.top, crop.top + crop.height, crop.left, crop.left + crop.width, out)
        out = out[:, ::-1] if crop.flip else out
        images.append(((out - MEAN_255) / STD_255).transpose(2, 0, 1))
    return np.stack(images), crops
