# SPDX-License-Identifier: Apache-2.0
"""Batch: the fields of some samples, stacked. Unpacks like a tuple."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class Batch:
    """``images, labels = batch``; ``batch[0]``; ``batch.fields["image"]``; ``batch.ids``.

    Fields are torch tensors (or NumPy arrays) over memory that belongs to this batch: it is reused
    only after the last reference to the batch and its fields is gone.
    """

    __slots__ = ("epoch", "fields", "ids", "index")

    def __init__(self, ids: Any, epoch: int, index: int, fields: dict[str, Any]) -> None:
        self.ids = ids
        self.epoch = epoch
        self.index = index
        self.fields = fields

    def __len__(self) -> int:
        return len(self.fields)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.fields.values())

    def __getitem__(self, key: int | slice | str) -> Any:
        if isinstance(key, str):
            return self.fields[key]
        return tuple(self.fields.values())[key]

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name} {tuple(field.shape)}" for name, field in self.fields.items())
        return f"<cutwater.Batch {self.index} of epoch {self.epoch}: {shapes}>"

    def pin(self) -> Batch:
        """The batch in pinned memory, from where copies to a GPU are fast; itself without CUDA."""
        try:
            import torch
        except ImportError:
            return self
        if not torch.cuda.is_available():
            return self
        pinned = {name: torch.as_tensor(field).pin_memory() for name, field in self.fields.items()}
        return Batch(self.ids, self.epoch, self.index, pinned)

    # torch's own loaders and trainers look for this name.
    pin_memory = pin
