# SPDX-License-Identifier: Apache-2.0
"""Plans: which cut to prepare once, in which codec and where, what to keep in a cache that jobs share, or what a
server near the storage does."""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any, Literal

from cutwater import _core
from cutwater.dataset import PathLike, bytes_number, whole_number
from cutwater.errors import InvalidArgument, WrongType
from cutwater.profiling import Profile

_ROWS = 12


class Plan:
    """The strategies of a profile, ranked. Made by ``cutwater.plan``."""

    def __init__(self, core: _core.Plan) -> None:
        self._core = core

    @staticmethod
    def load(path: PathLike) -> Plan:
        """A plan that was written by ``save`` or by ``cutwater plan -o``."""
        return Plan(_core.Plan.from_json(pathlib.Path(os.fspath(path)).read_text(encoding="utf-8")))

    def save(self, path: PathLike) -> None:
        """Writes the plan as JSON."""
        pathlib.Path(os.fspath(path)).write_text(self.to_json() + "\n", encoding="utf-8")

    def explain(self, rows: int | None = _ROWS) -> str:
        """Text: the reason, the best strategies (all of them with ``rows=None``), what would change the choice."""
        return self._core.explain(None if rows is None else whole_number("rows", rows, 1, 2**31))

    def to_json(self) -> str:
        """What ``cutwater plan --json`` prints."""
        return self._core.to_json()

    def to_dict(self) -> dict[str, Any]:
        """The same as plain numbers and strings."""
        plain: dict[str, Any] = json.loads(self.to_json())
        return plain

    @property
    def choice(self) -> dict[str, Any]:
        """The best strategy: cut, cut_name, codec, place, cache, and what it is predicted to take."""
        chosen: dict[str, Any] = self.to_dict()["choice"]
        return chosen

    @property
    def cache_split(self) -> str:
        """What policy="seneca" gives each form of the samples, as DataLoader's ``cache_split`` takes it;
        ``"source=0"`` where no stable form is worth keeping."""
        split: str | None = self.to_dict().get("cache", {}).get("split")
        if split is None:
            raise InvalidArgument("this plan splits no cache; make it with policy='seneca', jobs= and cache=")
        return split or "source=0"

    def __repr__(self) -> str:
        choice = self.choice
        if "offload" in choice:
            return f"<cutwater.Plan: {choice['offload']['policy']}, {choice['offload']['bytes']:.0f} bytes>"
        return f"<cutwater.Plan: {choice['place']} at {choice['cut_name']!r}, {choice['codec']}>"


def _rate(name: str, value: float | str | None) -> float | None:
    """Bytes per second, also from text such as "250MB/s"."""
    if value is None:
        return None
    return _core.parse_rate(name, value) if isinstance(value, str) else float(value)


def plan(
    profile: Profile | PathLike,
    *,
    policy: Literal["auto", "none", "presto", "seneca", "sophon", "no-off", "all-off", "resize-off", "paper"] = "auto",
    epochs: int = 10,
    cache: int | str | None = None,
    disk: int | str | None = None,
    num_workers: int | None = None,
    consumer: float | None = None,
    page_cache: Literal["fits", "warm", "cold"] = "fits",
    price_disk: float | None = None,
    price_core_hour: float | None = None,
    months: float | None = None,
    jobs: int = 1,
    same_seed: bool = False,
    processes: bool = False,
    split: str = "",
    storage_rate: float | str | None = None,
    cache_rate: float | str | None = None,
    link_rate: float | str | None = None,
    window: int | None = None,
    link: float | str | None = None,
    storage_threads: int | None = None,
    storage_speed: float = 1,
) -> Plan:
    """Decides which cut to prepare once, in which codec and where, so that all epochs are finished soonest.

    profile: a Profile, or the folder of one.
    policy: "none" prepares nothing; "presto" prepares one cut of all samples; "auto" is the best of them. "seneca"
        divides one cache among forms, for jobs that share it. "sophon" decides sample by sample what a server near
        the storage does; "no-off", "all-off", "resize-off" and "paper" are simpler rules to compare with.
    epochs: that training will take.
    cache: memory for caches, the page cache included, in bytes or as "64GB"; no limit if not given.
    disk: for a store, likewise.
    num_workers: threads; the profile's if not given.
    consumer: samples per second that training can take; with jobs, each of them.
    page_cache: it holds what "fits" the memory, is "warm" with all data from the start, or stays "cold".
    price_disk, price_core_hour: money for a GB on disk and a month, and for a core and an hour: with one of them,
        the choice is the cheapest instead of the fastest.
    months: that a store is kept; 1 if not given.

    With policy="seneca" alone:
    jobs: that go through the data set at the same time and share the cache.
    same_seed: they draw alike, so that fresh forms can be handed on.
    processes: each is one, around a daemon's cache: what is found there is checked, and what is kept goes there.
    split: predict this one, such as "source=0.3,decode=0.7"; the best if not given.
    storage_rate, cache_rate, link_rate: bytes per second, or "250MB/s": at which misses are read; to and from the
        cache; of both together. The profile's rate of cold reads, and no bounds, if not given.
    window: samples on their way from the job that made them to the others.

    With "sophon" and the policies beside it:
    link: bytes per second from storage to the trainer, or "500Mb/s"; no bound if not given.
    storage_threads: of the server; as many as the profile's if not given.
    storage_speed: of a thread of the server, beside one that was profiled.
    """
    if not isinstance(profile, (Profile, str, os.PathLike)):
        raise WrongType(f"profile must be a cutwater.Profile or the folder of one, got {type(profile).__name__}")
    if link is not None and link_rate is not None:
        raise InvalidArgument("link and link_rate are the same; give one of them")
    prices = None
    if price_disk is not None or price_core_hour is not None:
        prices = (float(price_disk or 0), float(price_core_hour or 0), 1.0 if months is None else float(months))
    elif months is not None:
        raise InvalidArgument("months goes with price_disk or price_core_hour: without prices, the fastest is chosen")
    measured = profile if isinstance(profile, Profile) else Profile.load(profile)
    return Plan(
        _core.make_plan(
            measured._core,
            policy,
            whole_number("epochs", epochs, 1, 1_000_000),
            bytes_number("disk", disk, 0),
            bytes_number("cache", cache, 0),
            None if num_workers is None else whole_number("num_workers", num_workers, 1, 1024),
            None if consumer is None else float(consumer),
            page_cache,
            prices,
            whole_number("jobs", jobs, 1, 1024),
            bool(same_seed),
            bool(processes),
            split,
            _rate("storage_rate", storage_rate),
            _rate("cache_rate", cache_rate),
            _rate("link", link) if link is not None else _rate("link_rate", link_rate),
            None if window is None else whole_number("window", window, 1, 2**62),
            None if storage_threads is None else whole_number("storage_threads", storage_threads, 0, 1024),
            float(storage_speed),
        )
    )
