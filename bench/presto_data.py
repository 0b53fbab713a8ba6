# SPDX-License-Identifier: Apache-2.0
"""The data of presto.py's pipelines: real files where DATA_DIR has them, made photographs elsewhere."""

from __future__ import annotations

import os
import pathlib
import struct
import zlib

from job import files
from peers import data_folder
from rows import ROOT

DATA_OF = {"imagenet": "imagenet", "cubepp-jpg": "photos", "cubepp-png": "photos", "imagenet-train": "imagenet"}


def write_png16(path: pathlib.Path, pixels: object) -> None:
    """RGB pixels of 8 bits as a PNG of 16 bits, each row as its difference from the one above."""
    import numpy as np

    wide = np.asarray(pixels, np.uint16) * 257
    rows = wide.astype(">u2").view(np.uint8).reshape(len(wide), -1)
    differences = np.diff(rows, axis=0, prepend=np.zeros_like(rows[:1]))
    filtered = np.hstack([np.full((len(rows), 1), 2, np.uint8), differences])  # 2: the filter "up"

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", wide.shape[1], len(wide), 16, 2, 0, 0, 0)
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(filtered.tobytes(), 6))
        + chunk(b"IEND", b"")
    )


def data_set(pipeline: str, given: str | None, least: int, scratch: pathlib.Path) -> tuple[str, str, int]:
    """A class folder with about `least` files or links, what they are in words, and how many."""
    real = pathlib.Path(os.environ.get("DATA_DIR") or ROOT.parent / "shared" / "data") / DATA_OF[pipeline]
    folder = given or (str(real) if real.is_dir() else None)
    scratch.mkdir()
    data, words = data_folder(folder, least, scratch / "links")
    words = words.replace("files", f"{DATA_OF[pipeline]} files") if folder and not given else words
    if pipeline != "cubepp-png":
        return data, words, len(files(data))

    from PIL import Image

    made: dict[str, pathlib.Path] = {}
    count = 0
    for link in files(data):
        source = os.path.realpath(link)
        if source not in made:
            made[source] = scratch / f"{len(made)}.png"
            with Image.open(source) as image:
                write_png16(made[source], image.convert("RGB"))
        place = scratch / "png" / link.parent.name
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{link.stem}.png").symlink_to(made[source])
        count += 1
    return str(scratch / "png"), f"{words}, as PNG of 16 bits", count
