# SPDX-License-Identifier: Apache-2.0
"""Every op of the table, over its parameters and odd sizes, against torchvision on Pillow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torchvision.transforms.functional as F
from helpers import MEAN, STD, image_of, noise, same
from torchvision.transforms import InterpolationMode

import cutwater as cw
from cutwater import _core

SIZES = [(1, 1), (1, 7), (7, 1), (2, 3), (33, 47), (224, 224), (500, 20)]
FILTERS = [mode.value for mode in InterpolationMode]
MODES = ["constant", "edge", "reflect", "symmetric"]

Params = dict[str, Any]
Image = PIL.Image.Image


def with_channels(image: Image) -> np.ndarray:
    pixels = np.asarray(image)
    return pixels if pixels.ndim == 3 else pixels[:, :, None]


def one_border(image: Image, fill: Any = 0, padding_mode: str = "constant", **sides: Any) -> Image:
    fill = tuple(fill) if isinstance(fill, list) else fill
    return F.pad(image, sides["padding"], fill, padding_mode)


def resize(image: Image, p: Params, _: Params) -> Any:
    mode = InterpolationMode(p.get("interpolation", "bilinear"))
    return F.resize(image, p["size"], mode, p.get("max_size"))


def random_crop(image: Image, p: Params, drawn: Params) -> Any:
    """torchvision's RandomCrop.forward, with the corner given."""
    border = {"fill": p.get("fill", 0), "padding_mode": p.get("padding_mode", "constant")}
    height, width = (p["size"], p["size"]) if isinstance(p["size"], int) else p["size"]
    if "padding" in p:
        image = one_border(image, padding=p["padding"], **border)
    if p.get("pad_if_needed") and image.width < width:
        image = one_border(image, padding=[width - image.width, 0], **border)
    if p.get("pad_if_needed") and image.height < height:
        image = one_border(image, padding=[0, height - image.height], **border)
    if image.height < height or image.width < width:
        raise ValueError("the window does not fit")
    return F.crop(image, drawn["top"], drawn["left"], height, width)


def random_resized_crop(image: Image, p: Params, drawn: Params) -> Any:
    size = [p["size"]] * 2 if isinstance(p["size"], int) else p["size"]
    mode = InterpolationMode(p.get("interpolation", "bilinear"))
    return F.resized_crop(image, drawn["top"], drawn["left"], drawn["height"], drawn["width"], size, mode)


# What torchvision makes of (image, parameters, drawn values), for each op but to_dtype.
REFERENCE: dict[str, Callable[[Image, Params, Params], Any]] = {
    "decode": lambda image, p, _: image,
    "resize": resize,
    "center_crop": lambda image, p, _: F.center_crop(image, p["size"]),
    "five_crop": lambda image, p, _: np.stack([with_channels(one) for one in F.five_crop(image, p["size"])]),
    "random_crop": random_crop,
    "random_resized_crop": random_resized_crop,
    "random_horizontal_flip": lambda image, p, drawn: F.hflip(image) if drawn["flip"] else image,
    "random_vertical_flip": lambda image, p, drawn: F.vflip(image) if drawn["flip"] else image,
    "pad": lambda image, p, _: one_border(image, **p),
    "grayscale": lambda image, p, _: F.to_grayscale(image, p.get("num_output_channels", 1)),
    "to_tensor": lambda image, p, _: F.to_tensor(image).numpy(),
    "normalize": lambda image, p, _: F.normalize(F.to_tensor(image), p["mean"], p["std"]).numpy(),
}

CASES: dict[str, list[Params]] = {
    "decode": [{}],
    "resize": [
        *({"size": size, "interpolation": name} for name in FILTERS for size in (5, [9, 31], [40, 2])),
        {"size": 64},
        {"size": [64]},
        {"size": 20, "max_size": 21},
        {"size": 30, "max_size": 100},
    ],
    "center_crop": [{"size": size} for size in (1, 8, 224, 301, [3, 100], [100, 3])],
    "five_crop": [{"size": size} for size in (1, 2, 20, [2, 1], [7, 1])],
    "random_crop": [
        {"size": 1},
        {"size": [2, 3]},
        {"size": 20},
        {"size": 20, "pad_if_needed": True},
        *({"size": [40, 51], "pad_if_needed": True, "padding_mode": mode} for mode in MODES),
        *({"size": 4, "padding": 4, "padding_mode": mode} for mode in MODES),
        {"size": 9, "padding": [3, 5], "pad_if_needed": True, "fill": 77},
        {"size": [12, 3], "padding": [3, 5, 0, 9], "fill": [1, 2, 3]},
    ],
    "random_resized_crop": [
        *({"size": 24, "interpolation": name} for name in FILTERS),
        {"size": [7, 60]},
        {"size": 16, "scale": [0.01, 0.02], "ratio": [0.1, 10.0]},
        {"size": 16, "scale": [1.0, 1.0], "ratio": [1.0, 1.0]},
    ],
    "random_horizontal_flip": [{}, {"p": 0.0}, {"p": 1.0}],
    "random_vertical_flip": [{}, {"p": 0.0}, {"p": 1.0}],
    "pad": [
        {"padding": 0},
        {"padding": 3, "fill": 200},
        {"padding": [2, 5], "fill": [10, 20, 30]},
        {"padding": [0, 1, 2, 3], "fill": 255},
        # larger than the image: as numpy.pad goes on reflecting
        *({"padding": sides, "padding_mode": mode} for mode in MODES for sides in (1, [4, 60], [70, 0, 1, 33])),
    ],
    "grayscale": [{}, {"num_output_channels": 1}, {"num_output_channels": 3}],
    "to_tensor": [{}, {"channels_last": True}],
    "normalize": [{"mean": MEAN, "std": STD}, {"mean": [0.5], "std": [0.1]}, {"mean": [0, -1, 2], "std": [1, 3, 1e-3]}],
}
NEEDS_TENSOR = {"normalize"}
GRAY_TOO = ["resize", "center_crop", "five_crop", "random_crop", "random_resized_crop", "random_horizontal_flip"]
GRAY_TOO += ["random_vertical_flip", "pad", "grayscale", "to_tensor"]


def one_value_each(params: Params) -> bool:
    return not isinstance(params.get("fill"), list)


def cases() -> Iterator[Any]:
    for op, all_params in CASES.items():
        for k, params in enumerate(all_params):
            for size in SIZES:
                yield pytest.param(op, params, size, False, id=f"{op}-{k}-{size[0]}x{size[1]}")
            if op in GRAY_TOO and one_value_each(params):
                yield pytest.param(op, params, (33, 47), True, id=f"{op}-{k}-gray")


@pytest.mark.parametrize(("op", "params", "size", "gray"), list(cases()))
def test_op_is_torchvisions(op: str, params: Params, size: tuple[int, int], gray: bool, one_image: Any) -> None:
    ds, image = one_image(*size).decode(), PIL.Image.fromarray(noise(*size))
    if gray:
        ds, image = ds.grayscale(), F.to_grayscale(image)
    if op in NEEDS_TENSOR:
        ds = ds.to_tensor()
    if op != "decode":
        ds = getattr(ds, op)(**params)
    for epoch in (0, 1, 2) if ds.pipeline.frontier < ds.pipeline.last_cut else (0,):
        try:
            drawn = next(iter(ds.draws(0, epoch)), {})
            got = image_of(ds, epoch=epoch)
        except cw.SampleError:
            # A window that does not fit, a side of no pixels: the reference refuses it, too.
            with pytest.raises(ValueError):
                REFERENCE[op](image, params, {"top": 0, "left": 0})
            continue
        want = REFERENCE[op](image, params, drawn)
        want = with_channels(want) if isinstance(want, PIL.Image.Image) else want
        assert same(got, want)


def test_every_op_of_the_table_has_a_reference() -> None:
    """to_dtype has its own file; entropy and reconstruct are decode."""
    table = {op["name"] for op in _core.ops()}
    assert table == REFERENCE.keys() | {"to_dtype", "entropy", "reconstruct"} and CASES.keys() == REFERENCE.keys()


def test_enum_and_number_interpolations_are_the_named_one(one_image: Any) -> None:
    ds = one_image(33, 47).decode()
    for mode in InterpolationMode:
        named = ds.resize(16, interpolation=mode.value)
        assert ds.resize(16, interpolation=mode).fingerprint == named.fingerprint
    for name in FILTERS:
        filter = PIL.Image.Resampling.__members__.get(name.upper())
        assert filter is None or same(
            image_of(ds.resize((9, 8), interpolation=filter)),
            PIL.Image.fromarray(noise(33, 47)).resize((8, 9), filter),
        )


def test_a_stack_of_crops_becomes_a_stack_of_tensors(one_image: Any) -> None:
    ds = one_image(33, 47).decode().five_crop(16).to_tensor().normalize(MEAN, STD)
    crops = F.five_crop(PIL.Image.fromarray(noise(33, 47)), [16, 16])
    assert same(image_of(ds), np.stack([F.normalize(F.to_tensor(crop), MEAN, STD) for crop in crops]))
