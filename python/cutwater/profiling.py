# SPDX-License-Identifier: Apache-2.0
"""Profiles: what samples weigh at every cut and how long every op takes, measured on some of them."""

from __future__ import annotations

import json
import os
from typing import Any

from cutwater import _core
from cutwater.dataset import Dataset, PathLike, whole_number
from cutwater.errors import InvalidArgument, WrongType


class Profile:
    """Sizes and times of some samples, at every cut and in every variant. Made by ``cutwater.profile``."""

    def __init__(self, core: _core.Profile) -> None:
        self._core = core

    @staticmethod
    def load(path: PathLike) -> Profile:
        """A profile that was saved, by ``save`` or by ``cutwater profile -o``."""
        return Profile(_core.Profile.load(os.fspath(path)))

    def save(self, path: PathLike) -> None:
        """Writes a folder of .npy columns and meta.json; a profile that is there already is replaced."""
        self._core.save(os.fspath(path))

    @property
    def ids(self) -> list[int]:
        """The samples that were measured; the rows of the columns."""
        return list(self._core.ids)

    def table(self) -> str:
        """Text: a line for each cut, then storage, memory, and the samples that are bad."""
        return self._core.table()

    def to_dict(self) -> dict[str, Any]:
        """What ``cutwater profile --json`` prints: means per sample, as plain numbers and strings."""
        report: dict[str, Any] = json.loads(self._core.json())
        return report

    def __repr__(self) -> str:
        return f"<cutwater.Profile of {len(self.ids)} samples>"


def profile(
    dataset: Dataset,
    samples: int | None = None,
    max_seconds: float = 120,
    *,
    num_workers: int | None = None,
    seed: int = 0,
    consumer: float | None = None,
) -> Profile:
    """Measures some samples of a data set at every cut of its pipeline.

    samples: at most so many; by default until the mean time of a sample is known to 5 %, at most 1 % of the data
        set or 256, whichever is more.
    max_seconds: a limit; what was measured by then is the profile.
    num_workers: threads that measure at the same time; by default the cores that this process may use.
    seed: which samples are drawn.
    consumer: samples per second that training can take, if you know.
    """
    if not isinstance(dataset, Dataset):
        raise WrongType(f"dataset must be a cutwater.Dataset (cutwater.folder(...)…), got {type(dataset).__name__}")
    if not max_seconds > 0:
        raise InvalidArgument(f"max_seconds must be greater than 0, got {max_seconds}")
    return Profile(
        _core.make_profile(
            dataset.source,
            dataset.pipeline,
            None if samples is None else whole_number("samples", samples, 1, 2**62),
            float(max_seconds),
            None if num_workers is None else whole_number("num_workers", num_workers, 1, 1024),
            whole_number("seed", seed, 0, 2**64 - 1),
            None if consumer is None else float(consumer),
        )
    )
