# SPDX-License-Identifier: Apache-2.0
"""Image files of many kinds, made by Pillow, or by hand where Pillow cannot write them."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
from helpers import noise

PIXELS = noise(37, 53, seed=3, block=4)

# name: (mode, options of Image.save)
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    **{f"444_{k}.jpg": ("RGB", {"subsampling": 0, **o}) for k, o in enumerate([{}, {"progressive": True}])},
    **{f"422_{k}.jpg": ("RGB", {"subsampling": 1, **o}) for k, o in enumerate([{}, {"progressive": True}])},
    **{f"420_{k}.jpg": ("RGB", {"subsampling": 2, **o}) for k, o in enumerate([{}, {"progressive": True}])},
    "best.jpg": ("RGB", {"quality": 100, "optimize": True}),
    "worst.jpg": ("RGB", {"quality": 1}),
    "restarts.jpg": ("RGB", {"restart_marker_blocks": 3}),
    "restart_rows_progressive.jpg": ("RGB", {"restart_marker_rows": 1, "progressive": True}),
    "rgb_kept.jpg": ("RGB", {"keep_rgb": True}),
    "gray.jpg": ("L", {}),
    "gray_progressive.jpg": ("L", {"progressive": True}),
    "cmyk.jpg": ("CMYK", {}),
    "cmyk_progressive.jpg": ("CMYK", {"progressive": True}),
    **{f"{mode.lower()}.png": (mode, {}) for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "I;16")},
    **{f"palette_{bits}bit.png": ("P", {"bits": bits}) for bits in (1, 2, 4)},
    "palette_transparent.png": ("P", {"transparency": 3}),
    "gray_transparent.png": ("L", {"transparency": 100}),
    "rgb_transparent.png": ("RGB", {"transparency": (1, 2, 3)}),
    "stored.png": ("RGB", {"compress_level": 0}),
    **{f"{mode.lower()}.gif": (mode, {}) for mode in ("1", "L", "P", "RGB", "RGBA")},
    "straight.gif": ("P", {"interlace": 0}),
    "interlaced.gif": ("P", {"interlace": 1}),
    "transparent.gif": ("P", {"transparency": 2}),
    "lossy.webp": ("RGB", {"quality": 60}),
    "lossless.webp": ("RGB", {"lossless": True}),
    "alpha.webp": ("RGBA", {"lossless": True, "exact": True}),
    "alpha_lossy.webp": ("RGBA", {"quality": 60}),
    **{f"{mode.lower()}.bmp": (mode, {}) for mode in ("1", "L", "P", "RGB", "RGBA")},
}


def in_mode(mode: str, pixels: np.ndarray = PIXELS) -> PIL.Image.Image:
    image = PIL.Image.fromarray(pixels)
    if mode == "I;16":
        return PIL.Image.fromarray((pixels[:, :, 0].astype(np.uint16) << 8) // 150)
    if mode in ("LA", "RGBA"):
        alpha = PIL.Image.fromarray(np.ascontiguousarray(pixels[:, ::-1, 1]))
        image = image.convert(mode)
        image.putalpha(alpha)
        return image
    return image.quantize(4) if mode == "P" else image.convert(mode)


def write(folder: Path, name: str) -> Path:
    """The file of that name of KINDS."""
    mode, options = KINDS[name]
    in_mode(mode).save(folder / name, **options)
    return folder / name


def animated(path: Path) -> Path:
    frames = [PIL.Image.fromarray(noise(20, 30, seed, block=5)) for seed in range(3)]
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=50, lossless=True)
    return path


ADAM7 = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]


def png(pixels: np.ndarray, interlaced: bool = False) -> bytes:
    """8 or 16 bits; gray, gray and alpha, RGB or RGBA by the last dimension."""
    height, width, channels = pixels.shape
    passes = [pixels[y::dy, x::dx] for y, x, dy, dx in ADAM7] if interlaced else [pixels]
    big_endian = pixels.dtype.newbyteorder(">")
    rows = b"".join(b"\0" + row.astype(big_endian).tobytes() for part in passes if part.size for row in part)
    color_type = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    header = struct.pack(">IIBBBBB", width, height, 8 * pixels.dtype.itemsize, color_type, 0, 0, int(interlaced))

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
