# SPDX-License-Identifier: Apache-2.0
"""Ours, from files."""

import sys
import time

start = time.perf_counter()
sys.path = [p for p in sys.path if not p.endswith("bench/peers")] + [sys.path[0]]  # not this file as cutwater
from common import BATCH, MEAN, STD, arguments, report  # noqa: E402

import cutwater as cw  # noqa: E402


def max_pixel_difference(ds: cw.Dataset) -> int:
    """Against torchvision on Pillow for the same draws, over some files."""
    import numpy as np
    import torchvision.transforms.functional as F
    from PIL import Image

    worst = 0
    for i in range(0, len(ds), max(1, len(ds) // 64)):
        crop, flip = ds.draws(i, epoch=1, seed=3)
        box = (crop["top"], crop["left"], crop["height"], crop["width"])
        expected = F.resized_crop(Image.open(ds.path(i)).convert("RGB"), *box, [224, 224])
        expected = F.hflip(expected) if flip["flip"] else expected
        got = ds.run(i, "random_horizontal_flip", epoch=1, seed=3)["image"]
        worst = max(worst, int(np.abs(np.asarray(expected).astype(int) - got.astype(int)).max()))
    return worst


data, cores, epochs = arguments()
ds = cw.folder(data).decode().random_resized_crop(224).random_horizontal_flip().to_tensor().normalize(MEAN, STD)
loader = cw.DataLoader(ds, batch_size=BATCH, shuffle=True, seed=3, num_workers=cores, output="numpy")
report(start, epochs, lambda: loader, lambda: max_pixel_difference(ds))
