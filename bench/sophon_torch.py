# SPDX-License-Identifier: Apache-2.0
"""torch's DataLoader over files that a web server has: the training job of peers.py, each worker with a connection
that it keeps. Prints one line of JSON.

usage: sophon_torch.py FOLDER HOST:PORT EPOCHS    (called by sophon.py; the folder says what there is, no more)
"""

from __future__ import annotations

import http.client
import io
import json
import pathlib
import sys
import time
import urllib.parse

import torch
from job import BATCH, MEAN, SIZE, STD, files
from PIL import Image
from torchvision import transforms as T

WORKERS = 2
torch.set_num_threads(1)


class WebFiles(torch.utils.data.Dataset):
    def __init__(self, folder: str, server: str) -> None:
        self.paths = [str(file.relative_to(pathlib.Path(folder))) for file in files(folder)]
        self.server = server
        self.connection: http.client.HTTPConnection | None = None
        self.steps = T.Compose(
            [T.RandomResizedCrop(SIZE), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize(MEAN, STD)]
        )

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> torch.Tensor:
        if self.connection is None:
            self.connection = http.client.HTTPConnection(self.server)
        self.connection.request("GET", "/" + urllib.parse.quote(self.paths[index]))
        answer = self.connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{self.paths[index]}: {answer.status} {answer.reason}")
        tensor: torch.Tensor = self.steps(Image.open(io.BytesIO(body)).convert("RGB"))
        return tensor


def main() -> None:
    folder, server, epochs = sys.argv[1:]
    data = WebFiles(folder, server)
    loader = torch.utils.data.DataLoader(
        data, batch_size=BATCH, shuffle=True, num_workers=WORKERS, persistent_workers=True
    )
    touched = 0.0
    for _ in range(int(epochs)):
        begin = time.perf_counter()
        for batch in loader:
            touched += float(batch[:, :, ::64, ::64].sum())
        epoch_s = time.perf_counter() - begin
    print(json.dumps({"epoch_s": epoch_s, "samples": len(data) * int(epochs), "touched": touched}))


if __name__ == "__main__":
    main()
