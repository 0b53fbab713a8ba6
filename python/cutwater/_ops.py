# SPDX-License-Identifier: Apache-2.0
# Made by tools/generate_ops.py from the table of ops: do not edit.
"""One method per op, with the parameters of the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cutwater.dataset import Dataset


class Ops:
    """The ops as methods; each returns a new data set."""

    def _then(self, op: str, **params: Any) -> Dataset:
        raise NotImplementedError

    def decode(
        self,
        exif: bool = False,
        max_pixels: int = 178956970,
        max_bytes: int = 1073741824,
        max_scans: int = 256,
    ) -> Dataset:
        """Decode a JPEG, PNG, WebP, BMP or GIF file to RGB.

        exif: Turn the image upright as its EXIF orientation says.
        max_pixels: Refuse larger images, by their header.
        max_bytes: Refuse larger files.
        max_scans: Refuse JPEGs of more progressive scans.
        """
        return self._then('decode', exif=exif, max_pixels=max_pixels, max_bytes=max_bytes, max_scans=max_scans)

    def entropy(
        self,
        max_pixels: int = 178956970,
        max_bytes: int = 1073741824,
        max_scans: int = 256,
    ) -> Dataset:
        """The first half of decode: a baseline JPEG to its coefficients; other files stay as they are.

        max_pixels: Refuse larger images, by their header.
        max_bytes: Refuse larger files.
        max_scans: Refuse JPEGs of more progressive scans.
        """
        return self._then('entropy', max_pixels=max_pixels, max_bytes=max_bytes, max_scans=max_scans)

    def reconstruct(
        self,
        exif: bool = False,
        max_pixels: int = 178956970,
        max_bytes: int = 1073741824,
        max_scans: int = 256,
    ) -> Dataset:
        """The second half of decode: what entropy gives, to RGB.

        exif: Turn the image upright as its EXIF orientation says.
        max_pixels: Refuse larger images, by their header.
        max_bytes: Refuse larger files.
        max_scans: Refuse JPEGs of more progressive scans.
        """
        return self._then('reconstruct', exif=exif, max_pixels=max_pixels, max_bytes=max_bytes, max_scans=max_scans)

    def resize(
        self,
        size: int | Sequence[int],
        interpolation: Any = 'bilinear',
        max_size: int | None = None,
        antialias: bool = True,
        pillow: int = 13,
    ) -> Dataset:
        """Resize, with antialiasing.

        size: Height and width; one number: length of the shorter side.
        interpolation: nearest, bilinear, bicubic, box, hamming or lanczos.
        max_size: With one number: the longer side is at most this.
        antialias: Pillow always filters when it shrinks: only True.
        pillow: Whose pixels: Pillow 13, or 12 and older.
        """
        return self._then('resize', size=size, interpolation=interpolation, max_size=max_size, antialias=antialias, pillow=pillow)

    def center_crop(
        self,
        size: int | Sequence[int],
    ) -> Dataset:
        """Cut a window out of the middle.

        size: Height and width of the window; one number: a square.
        """
        return self._then('center_crop', size=size)

    def five_crop(
        self,
        size: int | Sequence[int],
    ) -> Dataset:
        """Cut out the four corners and the middle.

        size: Height and width of each window; one number: a square.
        """
        return self._then('five_crop', size=size)

    def random_crop(
        self,
        size: int | Sequence[int],
        padding: float | Sequence[float] | None = None,
        pad_if_needed: bool = False,
        fill: float | Sequence[float] = [0.0],
        padding_mode: Any = 'constant',
    ) -> Dataset:
        """Cut a fixed-size window at a random place; also after to_tensor.
        Draws random numbers per sample and epoch.

        size: Height and width of the window; one number: a square.
        padding: Pad first, by so many pixels (see pad).
        pad_if_needed: Pad images smaller than the window.
        fill: Colour of a constant border.
        padding_mode: constant, edge, reflect or symmetric.
        """
        return self._then('random_crop', size=size, padding=padding, pad_if_needed=pad_if_needed, fill=fill, padding_mode=padding_mode)

    def random_resized_crop(
        self,
        size: int | Sequence[int],
        scale: float | Sequence[float] = (0.08, 1.0),
        ratio: float | Sequence[float] = (0.75, 1.3333333333333333),
        interpolation: Any = 'bilinear',
        antialias: bool = True,
        pillow: int = 13,
    ) -> Dataset:
        """Cut out a box of random size and shape, and resize it.
        Draws random numbers per sample and epoch.

        size: Height and width of the result; one number: a square.
        scale: Least and greatest area, as shares of the image.
        ratio: Least and greatest width / height of the box.
        interpolation: nearest, bilinear, bicubic, box, hamming or lanczos.
        antialias: Pillow always filters when it shrinks: only True.
        pillow: Whose pixels: Pillow 13, or 12 and older.
        """
        return self._then('random_resized_crop', size=size, scale=scale, ratio=ratio, interpolation=interpolation, antialias=antialias, pillow=pillow)

    def random_horizontal_flip(
        self,
        p: float = 0.5,
    ) -> Dataset:
        """Swap left and right at random.
        Draws random numbers per sample and epoch.

        p: Probability of a flip.
        """
        return self._then('random_horizontal_flip', p=p)

    def random_vertical_flip(
        self,
        p: float = 0.5,
    ) -> Dataset:
        """Swap top and bottom at random.
        Draws random numbers per sample and epoch.

        p: Probability of a flip.
        """
        return self._then('random_vertical_flip', p=p)

    def pad(
        self,
        padding: float | Sequence[float],
        fill: float | Sequence[float] = [0.0],
        padding_mode: Any = 'constant',
    ) -> Dataset:
        """Add a border on all sides.

        padding: Pixels to add: all sides, or left/right and top/bottom, or left, top, right, bottom.
        fill: Colour of a constant border: one value, or one per channel.
        padding_mode: constant, edge, reflect or symmetric.
        """
        return self._then('pad', padding=padding, fill=fill, padding_mode=padding_mode)

    def grayscale(
        self,
        num_output_channels: int = 1,
    ) -> Dataset:
        """Keep the brightness, drop the colour.

        num_output_channels: 1, or 3 equal channels.
        """
        return self._then('grayscale', num_output_channels=num_output_channels)

    def to_tensor(
        self,
        channels_last: bool = False,
    ) -> Dataset:
        """Make float32 in 0..1, channels first, of a uint8 image.

        channels_last: Keep the channels of a pixel together in memory, as torch.channels_last does; the shape stays channels first.
        """
        return self._then('to_tensor', channels_last=channels_last)

    def normalize(
        self,
        mean: float | Sequence[float],
        std: float | Sequence[float],
    ) -> Dataset:
        """Subtract a mean and divide by a deviation, per channel.

        mean: Subtracted: one value, or one per channel.
        std: Divided by: one value, or one per channel.
        """
        return self._then('normalize', mean=mean, std=std)

    def to_dtype(
        self,
        dtype: Any,
        scale: bool = False,
    ) -> Dataset:
        """Change the element type, with or without scaling.

        dtype: uint8, int16, int32, int64, float16, float32 or float64.
        scale: Map the old type's range (floats: 0..1) to the new one's.
        """
        return self._then('to_dtype', dtype=dtype, scale=scale)
