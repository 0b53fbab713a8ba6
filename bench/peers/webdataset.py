# SPDX-License-Identifier: Apache-2.0
"""WebDataset: tar shards of the same files through torch's DataLoader, Pillow and torchvision's transforms.
Eight shards, because it hands whole shards to workers."""

import glob
import io

import torch
import webdataset
from job import BATCH, MEAN, SIZE, STD, Crop, Job, write_tars
from PIL import Image
from torchvision import transforms as T
from torchvision.transforms import functional as F

PACKAGES = ("webdataset", "torch", "torchvision", "pillow")
SETTINGS = "num_workers = cores, 0 on one core (faster there); persistent_workers; shuffle buffer 1000"

torch.set_num_threads(1)


def prepare(folder: str, scratch: str, variant: str) -> str:
    write_tars(folder, scratch, shards=8)
    return f"{scratch}/shard-*.tar"


def decode(stored: bytes) -> Image.Image:
    return Image.open(io.BytesIO(stored)).convert("RGB")


def epochs(job: Job):
    transform = T.Compose([T.RandomResizedCrop(SIZE), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize(MEAN, STD)])
    dataset = (
        webdataset.WebDataset(sorted(glob.glob(job.data)), shardshuffle=100)
        .shuffle(1000)
        .to_tuple("jpg", "cls")
        .map_tuple(lambda stored: transform(decode(stored)), int)
        .batched(BATCH)
    )
    workers = job.cores if job.cores > 1 else 0
    loader = webdataset.WebLoader(dataset, batch_size=None, num_workers=workers, persistent_workers=workers > 0)
    return lambda: (images for images, _ in loader)


def pixels(job: Job, crops: list[Crop]):
    images = []
    for crop in crops:
        with open(crop.path, "rb") as file:
            image = F.resized_crop(decode(file.read()), *crop[1:5], [SIZE, SIZE])
        image = F.hflip(image) if crop.flip else image
        images.append(F.normalize(F.to_tensor(image), MEAN, STD))
    return torch.stack(images), crops
