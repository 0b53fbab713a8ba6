#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes JPEG files that are like photographs to a decoder: no download, no licence, any number.

usage: make_photos.py OUT [--count 300] [--classes 10] [--seed 1]

Each picture is a scene: a sky or wall with a gradient, ridges or planes behind each other, a few
soft bodies with light and shadow, texture whose spectrum falls as 1/f as that of natural images
does, then a colour cast, a vignette and sensor noise. Sizes, qualities and chroma subsampling are
mixed as in ImageNet: about 500x375 and 100 KB in the middle. The same arguments give the same files
with the same versions of NumPy and Pillow.
"""

import argparse
import colorsys
import pathlib

import numpy as np
from PIL import Image

# Width x height, and how often.
SIZES = [
    ((500, 375), 38), ((375, 500), 14), ((500, 333), 15), ((333, 500), 6), ((500, 500), 4),
    ((640, 480), 6), ((400, 300), 4), ((320, 240), 3), ((250, 250), 3), ((120, 160), 2),
    ((800, 600), 2), ((1024, 768), 2), ((1600, 1200), 1),
]  # fmt: skip
# Class names, and the hues of sky and ground that are usual there.
PLACES = {
    "dawn": (0.06, 0.62), "dunes": (0.58, 0.10), "fjord": (0.60, 0.50), "fog": (0.55, 0.33),
    "hills": (0.57, 0.26), "lagoon": (0.54, 0.46), "meadow": (0.56, 0.22), "moor": (0.60, 0.95),
    "quarry": (0.58, 0.07), "shore": (0.55, 0.12),
}  # fmt: skip


def hsv(rng, hue, spread, saturation, value):
    """A colour near a hue, as three floats in 0..1."""
    return np.array(colorsys.hsv_to_rgb((hue + rng.normal(0, spread)) % 1, saturation, value), np.float32)


def detail(grain, amount):
    """A factor around 1 that follows the texture; highlights and shadows are limited, as by a lens."""
    return (1 + amount * np.tanh(0.7 * grain))[..., None]


def texture(rng, height, width, slope):
    """Noise of mean 0 and deviation 1 whose amplitude falls as 1 / frequency ** slope."""
    fy = np.fft.fftfreq(height)[:, None].astype(np.float32) * height
    fx = np.fft.rfftfreq(width)[None, :].astype(np.float32) * width
    radius = np.hypot(fy, fx)
    radius[0, 0] = 1
    phase = np.float32(2 * np.pi) * rng.random(radius.shape, np.float32)
    amplitude = radius ** np.float32(-slope)
    noise = np.fft.irfft2(amplitude * np.cos(phase) + 1j * (amplitude * np.sin(phase)), s=(height, width))
    return (noise - noise.mean()) / noise.std()


def step(distance, softness):
    """0 on one side of an edge, 1 on the other, softly between."""
    return np.clip(distance / softness + 0.5, 0, 1)[..., None]


def add_ridges(rng, image, y, x, hue, grain):
    """Planes behind each other, each darker and clearer than the one behind it."""
    count = int(rng.integers(1, 5))
    horizon = rng.uniform(0.3, 0.65)
    for k in range(count):
        near = (k + 1) / count
        line = horizon + (1 - horizon) * 0.75 * k / count + rng.normal(0, 0.02)
        for octave in range(1, 7):
            line = line + rng.normal(0, 0.09) / octave**1.3 * np.sin(octave * 3.1 * x + rng.uniform(0, 6.3))
        color = hsv(rng, hue, 0.03, 0.08 + 0.38 * near * rng.uniform(0.4, 1), 0.78 - 0.5 * near * rng.uniform(0.4, 1))
        shade = color * detail(grain, 0.1 + 0.5 * near)
        cover = step(y - line, 0.004 + 0.02 * (1 - near))
        image += cover * (shade - image)


def add_bodies(rng, image, y, x, hue, grain):
    """Rounded things, lit from one side."""
    light = rng.uniform(0, 2 * np.pi)
    for cy in np.sort(rng.uniform(0.6, 1.05, rng.integers(0, 6))):  # the nearest last, and largest
        cx = rng.uniform(0, x.max())
        ry, rx = rng.uniform(0.06, 0.2, 2) * (cy * 1.8 - 0.7)
        # Only the box around it is worked on.
        reach = 1.5 * max(rx, ry)
        rows = slice(*np.searchsorted(y[:, 0], [cy - reach, cy + reach]))
        columns = slice(*np.searchsorted(x[0], [cx - reach, cx + reach]))
        part, dy, dx = image[rows, columns], y[rows] - np.float32(cy), x[:, columns] - np.float32(cx)

        turn = rng.uniform(0, np.pi)
        u = (np.cos(turn) * dx + np.sin(turn) * dy) / rx
        v = (np.cos(turn) * dy - np.sin(turn) * dx) / ry
        power = rng.choice([2, 2, 2.6, 6])
        inside = 1 - (np.abs(u) ** power + np.abs(v) ** power) ** (1 / power)
        color = hsv(rng, hue + rng.choice([0, 0, 0.08, 0.5]), 0.04, rng.uniform(0.05, 0.6), rng.uniform(0.3, 0.9))
        lit = (0.75 + 0.4 * (np.cos(light) * u + np.sin(light) * v))[..., None]
        part *= 1 - 0.35 * step(inside + 0.12, 0.5) * step(dy, 0.5)  # its shadow
        cover = step(inside, 0.03 if rng.random() < 0.7 else 0.2)
        part += cover * (color * lit * detail(grain[rows, columns], rng.uniform(0.1, 0.4)) - part)


def scene(rng, place, height, width):
    """One picture as uint8 rows x columns x 3."""
    y = np.linspace(0, 1, height, dtype=np.float32)[:, None]
    x = np.linspace(0, width / height, width, dtype=np.float32)[None, :]
    sky_hue, hue = place
    sky = [hsv(rng, sky_hue, 0.03, rng.uniform(*range_), rng.uniform(0.6, 1)) for range_ in ((0.15, 0.6), (0.02, 0.3))]
    blend = np.clip(y * rng.uniform(0.8, 1.6) + 0 * x, 0, 1)[..., None]
    image = sky[0] * (1 - blend) + sky[1] * blend
    clouds = texture(rng, height, width, 1.75)
    image += (rng.uniform(0, 0.09) * clouds)[..., None]

    grain = texture(rng, height, width, rng.uniform(0.8, 1.15))
    if rng.random() < 0.9:
        add_ridges(rng, image, y, x, hue, grain)
    add_bodies(rng, image, y, x, hue, grain)

    cast = 1 + rng.normal(0, 0.05, 3).astype(np.float32)
    falloff = 1 - rng.uniform(0, 0.35) * ((y - 0.5) ** 2 + (x / x.max() - 0.5) ** 2)[..., None]
    image = np.clip(image * cast * falloff * rng.uniform(0.8, 1.1), 0, 1) ** rng.uniform(0.85, 1.25)
    noise = rng.standard_normal((height, width, 1), np.float32) + 0.4 * rng.standard_normal(image.shape, np.float32)
    image += rng.uniform(0.01, 0.055) * noise * (0.4 + 0.6 * np.sqrt(image))
    return (np.clip(image, 0, 1) * 255 + 0.5).astype(np.uint8)


def write(path, rng, place):
    share = np.array([weight for _, weight in SIZES], float)
    width, height = SIZES[rng.choice(len(SIZES), p=share / share.sum())][0]
    if rng.random() < 0.3:  # many photographs were cut by hand
        width, height = (int(side * rng.uniform(0.7, 1)) for side in (width, height))
    image = Image.fromarray(scene(rng, place, height, width))
    if rng.random() < 0.03:
        image = image.convert("L")
    quality = int(rng.choice([75, 85, 90, 92, 95, 96], p=[0.04, 0.06, 0.15, 0.2, 0.25, 0.3]))
    subsampling = rng.choice(["4:4:4", "4:2:0", "4:2:2"], p=[0.7, 0.27, 0.03])
    image.save(path, quality=quality, subsampling=str(subsampling), progressive=bool(rng.random() < 0.03))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=pathlib.Path, help="folder to make; one subfolder per class")
    parser.add_argument("--count", type=int, default=300, help="pictures in all (default 300)")
    parser.add_argument("--classes", type=int, default=10, help="class folders (default 10)")
    parser.add_argument("--seed", type=int, default=1, help="another seed, other pictures (default 1)")
    args = parser.parse_args()
    for i in range(args.count):
        label = i % args.classes
        name, place = list(PLACES.items())[label % len(PLACES)]
        if label >= len(PLACES):
            name += str(label // len(PLACES) + 1)
        folder = args.out / name
        folder.mkdir(parents=True, exist_ok=True)
        # Each picture has a generator of its own: more pictures leave the first ones as they are.
        write(folder / f"{i:05d}.jpg", np.random.default_rng([args.seed, i]), place)


if __name__ == "__main__":
    main()
