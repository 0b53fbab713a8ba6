# SPDX-License-Identifier: Apache-2.0
"""decode: Pillow's pixels for whatever Pillow reads, Pillow's verdict for whatever it refuses."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import PIL.ImageOps
import pytest
from helpers import IMAGE_ENDINGS, data_folder, image_of, noise, rgb, same
from image_files import KINDS, animated, png, write

import cutwater as cw

CROP = 16


def decoded(path: Path, **options: Any) -> np.ndarray:
    return image_of(cw.files([path]).decode(**options))


def crops_differ(path: Path, **options: Any) -> bool:
    """Whether a part of the image, decoded alone, is not that part of the whole."""
    ds = cw.files([path]).decode(**options).random_crop(CROP)
    whole = decoded(path, **options)
    for epoch in range(12):
        drawn = ds.draws(0, epoch)[0]
        part = whole[drawn["top"] :, drawn["left"] :][:CROP, :CROP]
        if not same(image_of(ds, epoch=epoch), part):
            return True
    return False


@pytest.mark.parametrize("name", KINDS)
def test_formats(name: str, tmp_path: Path) -> None:
    path = write(tmp_path, name)
    assert same(decoded(path), rgb(path))
    assert not crops_differ(path)


@pytest.mark.parametrize("ending", ["gif", "webp", "png"])
def test_the_first_frame_of_an_animation(ending: str, tmp_path: Path) -> None:
    path = animated(tmp_path / f"frames.{ending}")
    assert same(decoded(path), rgb(path))


@pytest.mark.parametrize("interlaced", [False, True])
@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_png_depths_and_interlacing(channels: int, bits: int, interlaced: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(channels)
    for shape in [(1, 1), (2, 5), (16, 16), (19, 33)]:
        pixels = rng.integers(0, 2**bits, (*shape, channels)).astype(f"uint{bits}")
        (tmp_path / "made.png").write_bytes(png(pixels, interlaced))
        assert same(decoded(tmp_path / "made.png"), rgb(tmp_path / "made.png")), shape
    assert not crops_differ(tmp_path / "made.png")


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("ending", ["jpg", "png", "webp"])
def test_exif_turns_upright_on_request(ending: str, orientation: int, tmp_path: Path) -> None:
    path = tmp_path / f"turned.{ending}"
    exif = PIL.Image.Exif()
    exif[0x0112] = orientation
    PIL.Image.fromarray(noise(37, 53, block=4)).save(path, exif=exif)
    upright = PIL.ImageOps.exif_transpose(PIL.Image.open(path)).convert("RGB")
    assert same(decoded(path, exif=True), upright)
    assert same(decoded(path), rgb(path))
    assert not crops_differ(path, exif=True)


def verdict(make: Any) -> Any:
    try:
        return np.asarray(make())
    except Exception as error:
        return error


def test_odd_files_have_pillows_pixels_or_are_refused_by_name() -> None:
    problems = []
    files = [f for f in sorted(data_folder("odd").iterdir()) if f.suffix.lower() in IMAGE_ENDINGS]
    for path in files:
        with warnings.catch_warnings(action="ignore"):
            want = verdict(lambda path=path: rgb(path))
        got = verdict(lambda path=path: decoded(path))
        if isinstance(got, Exception):
            named = isinstance(got, cw.SampleError) and str(path) in str(got)
            if not named or not isinstance(want, Exception):
                problems.append((path.name, got))
        elif isinstance(want, Exception) or not same(got, want):
            problems.append((path.name, want))
    assert problems == []
    assert len(files) > 35


def test_formats_that_are_not_read_are_named() -> None:
    for name, format in (("tiff_gray_16bit.tif", "TIFF"), ("avif_still.avif", "AVIF")):
        with pytest.raises(cw.SampleError, match=f"{name}.*{format} is not supported; convert"):
            decoded(data_folder("odd") / name)


@pytest.mark.parametrize("name", ["420_0.jpg", "444_1.jpg", "rgb.png", "palette_4bit.png", "rgb.gif", "lossy.webp"])
def test_truncated_files_get_pillows_verdict_whatever_the_crop(name: str, tmp_path: Path) -> None:
    content = write(tmp_path, name).read_bytes()
    path = tmp_path / f"cut_{name}"
    refused = 0
    for share in (0.3, 0.5, 0.7, 0.9, 0.97):
        path.write_bytes(content[: int(len(content) * share)])
        want = verdict(lambda: rgb(path))
        whole = verdict(lambda: decoded(path))
        assert isinstance(whole, Exception) == isinstance(want, Exception), (share, want, whole)
        ds = cw.files([path]).decode().random_resized_crop(8, scale=(0.01, 0.1))
        verdicts = {type(verdict(lambda ds=ds, e=epoch: image_of(ds, epoch=e))) for epoch in range(20)}
        assert verdicts == {type(whole)}, share
        refused += isinstance(whole, cw.SampleError)
    assert refused > 0


@pytest.mark.parametrize("name", ["420_0.jpg", "rgb.png", "rgb.gif", "lossy.webp", "rgb.bmp"])
@pytest.mark.parametrize(
    ("limit", "named"),
    [
        ({"max_pixels": 53 * 37 - 1}, "53x37 .*limit of 1960; raise max_pixels"),
        ({"max_bytes": 99}, "99; raise max_byte"),
    ],
)
def test_limits_refuse_by_name_and_value(name: str, limit: dict[str, int], named: str, tmp_path: Path) -> None:
    path = write(tmp_path, name)
    with pytest.raises(cw.SampleError, match=named):
        decoded(path, **limit)
    exactly = {"max_pixels": 53 * 37} if "max_pixels" in limit else {"max_bytes": path.stat().st_size}
    assert same(decoded(path, **exactly), rgb(path))


def test_scans_are_limited(tmp_path: Path) -> None:
    path = write(tmp_path, "420_1.jpg")
    scans = path.read_bytes().count(b"\xff\xda")
    assert same(decoded(path, max_scans=scans), rgb(path))
    with pytest.raises(cw.SampleError, match=rf"\b{scans - 1}\b.*max_scans"):
        decoded(path, max_scans=scans - 1)
    assert same(decoded(write(tmp_path, "420_0.jpg"), max_scans=1), rgb(tmp_path / "420_0.jpg"))
