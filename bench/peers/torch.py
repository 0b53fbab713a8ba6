# SPDX-License-Identifier: Apache-2.0
"""torch's DataLoader over torchvision's ImageFolder and transforms on Pillow images: the reference. The variant
centred-crop is the pipeline of presto.py that centres pixels before it crops."""

import os

import torch
from job import BATCH, MEAN, SIZE, STD, Crop, Job
from PIL import Image
from torchvision import datasets
from torchvision import transforms as T
from torchvision.transforms import functional as F

PACKAGES = ("torch", "torchvision", "pillow")
SETTINGS = "num_workers = cores, 0 on one core (faster there); persistent_workers"

torch.set_num_threads(1)


def loader(dataset, cores: int):
    workers = cores if cores > 1 else 0
    return torch.utils.data.DataLoader(
        dataset, batch_size=BATCH, shuffle=True, num_workers=workers, persistent_workers=workers > 0
    )


def epochs(job: Job):
    steps = [T.RandomResizedCrop(SIZE), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize(MEAN, STD)]
    if job.variant == "centred-crop":
        steps = [T.Resize(256), T.ToTensor(), T.Normalize(MEAN, STD), T.RandomCrop(SIZE)]
    batches = loader(datasets.ImageFolder(job.data, T.Compose(steps)), job.cores)
    return lambda: (images for images, _ in batches)


def pixels(job: Job, crops: list[Crop]):
    images = []
    for crop in crops:
        with Image.open(os.path.realpath(crop.path)) as file:
            image = F.resized_crop(file.convert("RGB"), *crop[1:5], [SIZE, SIZE])
        image = F.hflip(image) if crop.flip else image
        images.append(F.normalize(F.to_tensor(image), MEAN, STD))
    return torch.stack(images), crops
