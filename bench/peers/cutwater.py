# SPDX-License-Identifier: Apache-2.0
"""Ours. Variants: files (nothing is kept between epochs), index (the entropy index of the warm-up epoch is
kept in memory), coefficients (samples are held in memory at the cut inside decode), pixels (at the cut after
it). All deliver the same bytes."""

from job import BATCH, MEAN, SIZE, STD, Crop, Job

import cutwater as cw

PACKAGES = ("cutwater",)
SETTINGS = "num_workers = cores"
SEED = 3
CUTS = {"coefficients": "entropy", "pixels": "decode"}


def open_files(job: Job) -> cw.Dataset:
    ds = cw.folder(job.data).decode().random_resized_crop(SIZE).random_horizontal_flip()
    return ds.to_tensor().normalize(MEAN, STD)


def open_loader(job: Job) -> cw.DataLoader:
    ds = open_files(job)
    if job.variant in CUTS:
        ds = ds.in_memory(CUTS[job.variant])
    index = "memory" if job.variant == "index" else "off"
    return cw.DataLoader(
        ds, batch_size=BATCH, shuffle=True, seed=SEED, num_workers=job.cores, output="numpy", index=index
    )


def epochs(job: Job):
    loader = open_loader(job)
    return lambda: (images for images, _ in loader)


def pixels(job: Job, crops: list[Crop]):
    """A batch of the second epoch, as training gets it, with the crops that were drawn for it."""
    loader = open_loader(job)
    for _ in loader:
        pass
    batch = next(iter(loader))
    ds = open_files(job)
    drawn = []
    for i in batch.ids.tolist():
        crop, flip = ds.draws(i, epoch=batch.epoch, seed=SEED)
        drawn.append(Crop(ds.path(i), crop["top"], crop["left"], crop["height"], crop["width"], flip["flip"]))
    return batch["image"], drawn
