# SPDX-License-Identifier: Apache-2.0
"""Data sets: a source and the ops to run on its samples. Every call returns a new ``Dataset``."""

from __future__ import annotations

import hashlib
import operator
import os
from collections.abc import Sequence
from typing import Any, Literal, SupportsIndex

from cutwater import _core
from cutwater._ops import Ops
from cutwater.errors import InvalidArgument, OutOfRange, StaleStore, WrongType

PathLike = str | os.PathLike[str]
Buffer = Any  # bytes, bytearray, memoryview, a NumPy array…: whatever has the buffer protocol

# Pillow's numbers for its filters, which torchvision accepts as well.
_PILLOW_FILTERS = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", 4: "box", 5: "hamming"}


def _plain(name: str, value: Any) -> Any:
    """The value as the native engine knows it: None, bool, int, float, str or a list of numbers."""
    if name == "interpolation" and isinstance(value, int):
        return _PILLOW_FILTERS.get(int(value), int(value))
    if name == "dtype" and not isinstance(value, str):  # torch.float32, numpy.float32
        return getattr(value, "__name__", str(value)).removeprefix("torch.")
    if hasattr(value, "value") and isinstance(value.value, str):  # InterpolationMode.BILINEAR
        return value.value
    if hasattr(value, "tolist"):  # NumPy and torch
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [float(number) for number in value]
    return value


def whole_number(name: str, value: Any, least: int, greatest: int) -> int:
    """The value as an int within bounds, or an error that names both."""
    try:
        number = operator.index(value)
    except TypeError:
        raise WrongType(f"{name} must be a whole number, got {value!r}") from None
    if number < least:
        raise InvalidArgument(f"{name} must be at least {least}, got {number}")
    if number > greatest:
        raise InvalidArgument(f"{name} must be at most {greatest}, got {number}")
    return number


def bytes_number(name: str, value: int | str | None, least: int = 1) -> int | None:
    """A number of bytes, also from text such as "2GiB"."""
    if value is None:
        return None
    if isinstance(value, str):
        return _core.parse_bytes(name, value, least)
    return whole_number(name, value, least, 2**62)


def _named_labels(what: str, count: int, labels: Sequence[int | str] | None) -> tuple[list[int], list[str]]:
    """Labels as numbers, and the names of the classes where they were given as names."""
    if labels is None:
        return [], []
    if len(labels) != count:
        raise InvalidArgument(f"{what}, but {len(labels)} labels")
    if all(isinstance(label, str) for label in labels):
        classes = sorted({str(label) for label in labels})
        index = {name: i for i, name in enumerate(classes)}
        return [index[str(label)] for label in labels], classes
    return [int(label) for label in labels], []


def _draw_key(epoch: Any, seed: Any) -> tuple[int, int]:
    return whole_number("epoch", epoch, 0, 2**32 - 1), whole_number("seed", seed, 0, 2**64 - 1)


class Dataset(Ops):
    """A source of samples and a pipeline of ops. Immutable: each op returns a new data set."""

    def __init__(self, source: _core.Source, pipeline: _core.Pipeline | None = None) -> None:
        self._source = source
        self._pipeline = pipeline if pipeline is not None else _core.Pipeline()

    def _then(self, op: str, **params: Any) -> Dataset:
        plain = {name: _plain(name, value) for name, value in params.items()}
        return Dataset(self._source, self._pipeline.then(op, plain))

    def apply(self, pipeline: _core.Pipeline | str) -> Dataset:
        """A bare source with a whole pipeline: a ``Pipeline``, its text, or a preset's name.

        A store is a bare source, too: the pipeline must begin with the ops that it was made by.
        """
        if str(self._pipeline) != self._source.pipeline:
            raise InvalidArgument(
                f"apply: this data set already has ops ({self._pipeline}); apply goes on a bare source"
            )
        chosen = _core.parse(pipeline) if isinstance(pipeline, str) else pipeline
        cut, made_by = self._source.cut, self._source.fingerprint
        if cut > chosen.last_cut or (made_by and chosen.fingerprint(cut) != made_by):
            raise StaleStore(
                f"apply: the samples were prepared by '{self._source.pipeline}', which is not how '{chosen}' begins"
            )
        return Dataset(self._source, chosen)

    def __len__(self) -> int:
        return len(self._source)

    def __getitem__(self, id: int) -> dict[str, Any]:
        raise WrongType("a data set draws per epoch and seed: use get(id, epoch=…, seed=…) instead of [id]")

    def __repr__(self) -> str:
        return f"<cutwater.Dataset of {len(self)} samples: {self._pipeline or 'as stored'}>"

    @property
    def source(self) -> _core.Source:
        return self._source

    @property
    def pipeline(self) -> _core.Pipeline:
        return self._pipeline

    @property
    def classes(self) -> list[str]:
        """Names of the labels 0, 1…; empty where there are none."""
        return self._source.classes

    @property
    def fingerprint(self) -> str:
        """Names the samples and what is done to them: equal fingerprints, equal bytes."""
        text = f"{self._source.identity} {self._pipeline.fingerprint()}"
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def _index(self, id: SupportsIndex) -> int:
        index = operator.index(id)
        if not -len(self) <= index < len(self):
            raise OutOfRange(f"sample {index} is out of range: the data set has {len(self)} samples")
        return index % len(self)

    def path(self, id: int) -> str:
        """Where the sample comes from."""
        return self._source.path(self._index(id))

    def label(self, id: int) -> int:
        """The sample's label."""
        if not self._source.has_labels:
            raise InvalidArgument("this data set has no labels (a flat folder, or a table without them)")
        return self._source.label(self._index(id))

    def get(self, id: int, epoch: int = 0, seed: int = 0) -> dict[str, Any]:
        """One sample at the last cut: ``{"image": ndarray, "label": int}``."""
        return self.run(id, None, epoch, seed)

    def run(
        self, id: int, upto: int | str | None = None, epoch: int = 0, seed: int = 0, fuse: bool = True
    ) -> dict[str, Any]:
        """One sample at a cut, by its number or by the op it follows (default: the last cut)."""
        cut = self._pipeline.last_cut if upto is None else self._pipeline.cut(str(upto))
        return _core.run(self._pipeline, self._source, self._index(id), cut, *_draw_key(epoch, seed), fuse)

    def draws(self, id: int, epoch: int = 0, seed: int = 0) -> list[dict[str, Any]]:
        """The random parameters of one sample in one epoch, one entry per drawing op."""
        return _core.draws(self._pipeline, self._source, self._index(id), *_draw_key(epoch, seed))

    def in_memory(
        self,
        cut: int | str = "decode",
        memory_limit: int | str | None = None,
        num_workers: int | Literal["auto"] = "auto",
    ) -> Dataset:
        """The same data set with its samples held in memory at a cut: the work up to there is done now, once.

        cut: a number, or the op it follows; the frontier at most, for what is random differs in every epoch.
        memory_limit: of what is held, in bytes or as "8GiB"; half of the free memory if not given.
        """
        limit = bytes_number("memory_limit", memory_limit)
        threads = None if num_workers == "auto" else whole_number("num_workers", num_workers, 1, 1024)
        number = self._pipeline.cut(str(cut))
        return Dataset(_core.hold_in_memory(self._source, self._pipeline, number, threads, limit), self._pipeline)

    def cuts(self) -> list[dict[str, Any]]:
        """The places between the ops: what is stable, what the fields look like there."""
        return self._pipeline.cuts()


def folder(path: PathLike, extensions: Sequence[str] = (), allow_empty: bool = False) -> Dataset:
    """One class per subfolder, as torchvision's ``ImageFolder``; a flat folder has no labels.

    ``extensions`` replaces the list of file name endings (ImageFolder's, and ``.gif``).
    """
    return Dataset(_core.open_folder(os.fspath(path), list(extensions), allow_empty))


def files(table_or_paths: PathLike | Sequence[PathLike], labels: Sequence[int | str] | None = None) -> Dataset:
    """A CSV or TSV table with a column ``path`` (and ``label``), or a list of paths (and labels)."""
    if isinstance(table_or_paths, (str, os.PathLike)):
        if labels is not None:
            raise InvalidArgument("files: labels go with a list of paths; a table has its own label column")
        return Dataset(_core.open_table(os.fspath(table_or_paths)))
    paths = [os.fspath(path) for path in table_or_paths]
    numbers, classes = _named_labels(f"files: {len(paths)} paths", len(paths), labels)
    return Dataset(_core.open_files(paths, numbers, classes))


def memory(samples: Sequence[Buffer], labels: Sequence[int | str] | None = None) -> Dataset:
    """Samples whose stored bytes (those of an image file) are in memory: bytes-like objects. They are copied."""
    if isinstance(samples, (bytes, bytearray, memoryview, str)):
        raise WrongType(f"memory: a list of bytes-like objects is needed, got one {type(samples).__name__}")
    stored = list(samples)
    numbers, classes = _named_labels(f"memory: {len(stored)} samples", len(stored), labels)
    try:
        return Dataset(_core.open_memory(stored, numbers, classes))
    except (TypeError, BufferError) as error:
        raise WrongType(f"memory: samples must be contiguous bytes-like objects: {error}") from None


def tar(paths_or_glob: PathLike | Sequence[PathLike]) -> Dataset:
    """Tar shards in the WebDataset convention: a path, a pattern (``train-*.tar``, ``train-{000..127}.tar``),
    or a list of paths."""
    if isinstance(paths_or_glob, (str, os.PathLike)):
        return Dataset(_core.open_tar_pattern(os.fspath(paths_or_glob)))
    return Dataset(_core.open_tar([os.fspath(path) for path in paths_or_glob]))
