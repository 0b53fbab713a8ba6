# SPDX-License-Identifier: Apache-2.0
"""Caches that several loaders share."""

from __future__ import annotations

from typing import Any

from cutwater import _core
from cutwater.dataset import whole_number


class Cache:
    """A cache for several loaders of this process. Made by ``cutwater.cache``."""

    def __init__(self, core: _core.Cache, text: str) -> None:
        self._core = core
        self._text = text

    def stats(self) -> dict[str, Any]:
        """Of all loaders: ``bytes``, ``limit``, ``entries``, ``hits``, ``misses``, ``refused``, ``evicted``,
        ``damaged``, ``trouble``. Hits and misses are counted by form: a sample may be looked for in several."""
        return self._core.stats()

    def __repr__(self) -> str:
        return f"cutwater.cache({self._text!r})"


def cache(what: int | str) -> Cache:
    """A cache that can be given to several loaders: ``DataLoader(..., cache=cutwater.cache("8GiB"))``.

    what: bytes or text, as the ``cache`` argument of DataLoader.
    """
    text = what if isinstance(what, str) else str(whole_number("cache", what, 1, 2**62))
    return Cache(_core.open_cache(text), text)
