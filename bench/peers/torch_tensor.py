# SPDX-License-Identifier: Apache-2.0
"""torch's DataLoader with torchvision's own JPEG decoder and v2 transforms on uint8 tensors: the faster way
of torchvision. Its resize rounds otherwise than Pillow's: pixels differ by 1 here and there."""

import torch
from job import BATCH, MEAN, SIZE, STD, Crop, Job
from torchvision import datasets
from torchvision.io import ImageReadMode, decode_jpeg, read_file
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as F

PACKAGES = ("torch", "torchvision")
SETTINGS = "num_workers = cores, 0 on one core (faster there); persistent_workers"

torch.set_num_threads(1)


def decode(path: str) -> torch.Tensor:
    return decode_jpeg(read_file(path), mode=ImageReadMode.RGB)


def epochs(job: Job):
    transform = v2.Compose(
        [
            v2.RandomResizedCrop(SIZE, antialias=True),
            v2.RandomHorizontalFlip(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(MEAN, STD),
        ]
    )
    workers = job.cores if job.cores > 1 else 0
    loader = torch.utils.data.DataLoader(
        datasets.ImageFolder(job.data, transform, loader=decode),
        batch_size=BATCH,
        shuffle=True,
        num_workers=workers,
        persistent_workers=workers > 0,
    )
    return lambda: (images for images, _ in loader)


def pixels(job: Job, crops: list[Crop]):
    images = []
    for crop in crops:
        image = F.resized_crop(decode(crop.path), *crop[1:5], [SIZE, SIZE], antialias=True)
        image = F.horizontal_flip(image) if crop.flip else image
        images.append(F.normalize(F.to_dtype(image, torch.float32, scale=True), MEAN, STD))
    return torch.stack(images), crops
