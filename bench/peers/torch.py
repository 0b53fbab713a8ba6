# SPDX-License-Identifier: Apache-2.0
"""torch's DataLoader over torchvision's ImageFolder and transforms on Pillow images: the reference."""

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
    transform = T.Compose([T.RandomResizedCrop(SIZE), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize(MEAN, STD)])
    batches = loader(datasets.ImageFolder(job.data, transform), job.cores)
    return lambda: (images for images, _ in batches)


def pixels(job: Job, crops: list[Crop]):
    images = []
    for crop in crops:
        with Image.open(os.path.realpath(crop.path)) as file:
            image = F.resized_crop(file.convert("RGB"), *crop[1:5], [SIZE, SIZE])
        image = F.hflip(image) if crop.flip else image
        images.append(F.normalize(F.to_tensor(image), MEAN, STD))
    return torch.stack(images), crops
