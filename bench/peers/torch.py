# SPDX-License-Identifier: Apache-2.0
"""torch's DataLoader over torchvision's ImageFolder and transforms on Pillow images: the reference."""

import sys
import time

start = time.perf_counter()
sys.path = [p for p in sys.path if not p.endswith("bench/peers")] + [sys.path[0]]  # not this file as torch
import torch  # noqa: E402
from common import BATCH, MEAN, STD, arguments, report  # noqa: E402
from torchvision import datasets  # noqa: E402
from torchvision import transforms as T  # noqa: E402

if __name__ == "__main__":
    torch.set_num_threads(1)
    data, cores, epochs = arguments()
    transform = T.Compose([T.RandomResizedCrop(224), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize(MEAN, STD)])
    dataset = datasets.ImageFolder(data, transform)
    loader = torch.utils.data.DataLoader(
        dataset, batch_size=BATCH, shuffle=True, num_workers=cores, persistent_workers=True
    )
    report(start, epochs, lambda: loader, lambda: 0)
