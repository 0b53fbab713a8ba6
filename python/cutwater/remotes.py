# SPDX-License-Identifier: Apache-2.0
"""Data sets of near-storage servers: ``cutwater serve`` there, ``cutwater.remote(...)`` here."""

from __future__ import annotations

import os

from cutwater import _core
from cutwater.dataset import Dataset
from cutwater.errors import WrongType


def remote(
    url: str,
    *,
    token: str | None = None,
    ca: str | os.PathLike[str] | None = None,
    patience: float = 60,
    fallback: Dataset | None = None,
) -> Dataset:
    """The data set of a server: ``"grpc://host:7070/name"``, over TLS ``"grpcs://host:7070/name"``.

    The server sends each sample as far through the pipeline as pays; what a loader delivers is the same, byte for
    byte, as from the folder itself. Several servers that have the same data set are named with commas:
    ``"grpc://one:7070,two:7070/name"``; samples come from all of them, and from the others when one is gone. One that
    lies in parts on several servers is named by its parts, ``"grpc://one:7070/name+grpc://two:7070/name"``: samples are
    counted from part to part, and classes are those of all parts.

    token: what the server wants to see; the environment's ``CUTWATER_TOKEN`` if not given.
    ca: PEM file of who vouches for the servers; ``CUTWATER_CA``, or the system's, if not given.
    patience: seconds that all servers may be gone before a loader raises ``cutwater.Unavailable``.
    fallback: the same data set by another path (``cutwater.folder(...)`` of a mount), for while no server answers; not
        for one in parts.
    """
    if fallback is not None and not isinstance(fallback, Dataset):
        raise WrongType(f"fallback must be a cutwater.Dataset, got {type(fallback).__name__}")
    other = None if fallback is None else fallback.source
    source = _core.open_remote(url, token or "", "" if ca is None else os.fspath(ca), float(patience), other)
    return Dataset(source, _core.parse(source.pipeline) if source.pipeline else None)
