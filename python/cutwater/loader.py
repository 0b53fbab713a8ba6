# SPDX-License-Identifier: Apache-2.0
"""DataLoader: batches of a data set, epoch after epoch, made by native threads."""

from __future__ import annotations

import atexit
import numbers
import os
import warnings
import weakref
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Literal

from cutwater import _core
from cutwater.batch import Batch
from cutwater.caching import Cache
from cutwater.caching import cache as open_cache
from cutwater.dataset import Dataset, bytes_number, whole_number
from cutwater.errors import InvalidArgument, WrongType
from cutwater.planning import Plan
from cutwater.profiling import Profile

# Arguments of torch's DataLoader that have another place here.
_ELSEWHERE = {
    "sampler": "order and shards come from shuffle=, seed= and order=",
    "batch_sampler": "use batch_size=, shuffle= and drop_last=",
    "collate_fn": "samples are written straight into the batch; give them one shape with ops",
    "worker_init_fn": "workers are native threads and hold no Python state",
    "multiprocessing_context": "workers are native threads, not processes",
    "generator": "use seed=: draws depend on (seed, epoch, sample id, op) alone",
    "in_order": "use order='strict' (True) or order='ready' (False)",
    "pin_memory_device": "use pin_memory=True",
}

_open_loaders: weakref.WeakSet[DataLoader] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for loader in list(_open_loaders):
        loader.close()


def _converter(output: str) -> Callable[[Any], Any]:
    """What makes a field of a NumPy array, without a copy."""
    if output == "numpy":
        return lambda array: array
    try:
        import torch
    except ImportError:
        if output == "torch":
            raise
        return lambda array: array
    return torch.from_numpy


def _explain_offload(offload: dict[str, Any]) -> list[str]:
    less = offload["stored_bytes"] / max(offload["wire_bytes"], 1)
    ways = ", ".join(f"{way['samples']} as {name}" for name, way in offload["by_way"].items())
    lines = [
        f"near the storage: policy {offload['policy']}; {offload['wire_bytes'] / 1e6:.1f} MB came, {less:.2f}x less "
        f"than stored, for {offload['storage_seconds']:.2f} s of the server's CPU ({ways or 'nothing yet'})",
        f"  {offload['decision']}",
    ]
    if trouble := offload["trouble"]:
        lines.append(f"  servers: {trouble}")
    return lines


def _explain_cache(cache: dict[str, Any]) -> list[str]:
    jobs = f"; {cache['jobs']} jobs share it" if cache["jobs"] > 1 else ""
    lines = [
        f"cache: at most {cache['limit'] / 2**20:.0f} MiB, so far {cache['bytes'] / 2**20:.0f} MiB{jobs}; "
        f"{cache['hits']} of {cache['hits'] + cache['misses']} samples came from it; "
        f"at cut {cache['cut']!r}, codec {cache['codec']} ({cache['why']})"
    ]
    if len(cache["by_form"]) > 1:
        forms = (f"{name!r} {form['entries']} kept, {form['hits']} found" for name, form in cache["by_form"].items())
        lines.append(f"forms: {'; '.join(forms)}")
    if cache["damaged"]:
        lines.append(
            f"the cache gave other bytes than were kept, {cache['damaged']} times; those samples were made anew"
        )
    if cache["trouble"]:
        lines.append(f"the cache does not work: {cache['trouble']}")
    return lines


class _Epoch:
    """One epoch's iterator. A class, so that it goes on after a timeout where a generator would be over."""

    def __init__(self, loader: DataLoader, iteration: int) -> None:
        self._loader: DataLoader | None = loader
        self._iteration = iteration

    def __iter__(self) -> _Epoch:
        return self

    def __next__(self) -> Batch:
        batch = self._loader._next(self._iteration) if self._loader else None
        if batch is None:
            self._loader = None
            raise StopIteration
        return batch

    def __del__(self) -> None:
        if self._loader is not None:  # left by break
            self._loader._leave(self._iteration)


class DataLoader:
    """Iterates over a data set in batches. One ``for`` is one epoch; the next ``for`` is the next.

    dataset: what to load, with its ops.
    batch_size, shuffle, seed, drop_last: as the names say. Equal seeds give equal streams, whatever
        num_workers and memory_limit are.
    num_workers: native threads; "auto" takes the cores that this process may use.
    order: "strict" gives the seeded order; "ready" lets samples that are done overtake slow ones
        within bounds: the same samples in each epoch, each once.
    on_error: "raise", "skip" or "substitute" a bad sample; max_errors (a count, or a share of the
        data set as a float) ends a skipping epoch that has more. See ``stats()["skipped"]``.
    memory_limit: bytes, or "2GiB"; batches that you keep do not count.
    pin_memory: batches in pinned memory, where there is CUDA.
    timeout: seconds to wait for a batch before cutwater.Timeout is raised; 0 waits on.
    prefetch_factor: batches to have in the making or ready.
    reads_in_flight: reads from slow storage that are under way while the threads work; 0: each thread reads for
        itself.
    index: where the parts of a JPEG begin is learned in one epoch and speeds up the next. "memory" keeps it for
        as long as the loader lives, "beside" also as a file in the data set's folder, a path as that file;
        "off" learns nothing. It never changes a byte.
    cache: bytes, or "2GiB", besides memory_limit: samples are kept in memory at a stable cut, as many as fit, and
        later epochs go on from there. Or a cache that several loaders use: what cutwater.cache(…) returned. It never
        changes a byte.
    cache_cut, cache_codec: which cut ("decode", "resize"…; chosen on some samples if not given) and in which codec
        ("none", "lz4", "zstd:1"…).
    cache_split: several forms, each with its share of the samples: "source=0.3,decode:lz4=0.7"; or a plan that was
        made with policy="seneca".
    job: this loader's name at the cache, for people; by default host and process.
    store: the folder of a store. If it is there, samples come from it; if not, the first epoch makes it as a
        by-product, and samples come from it when it is finished. close() waits for that. It never changes a byte.
    store_cut, store_codec: of a store that is made; chosen on some samples, and "none", if not given.
    profile: some samples run op by op, a little slower, and tell ``profile()`` what they weigh and cost. It never
        changes a byte.
    policy: what a server of the data set (``cutwater.remote``) may do before it sends a sample: "auto" chooses for
        each what spares the network most for the server's time; "none" sends samples as stored; "all-off",
        "resize-off" and "paper" are there to compare with. It never changes a byte.
    output: "torch", "numpy", or "auto": torch tensors where torch can be imported.
    """

    def __init__(
        self,
        dataset: Dataset,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        seed: int = 0,
        num_workers: int | Literal["auto"] = "auto",
        drop_last: bool = False,
        order: Literal["strict", "ready"] = "strict",
        on_error: Literal["raise", "skip", "substitute"] = "raise",
        max_errors: int | float | None = None,
        memory_limit: int | str | None = None,
        pin_memory: bool = False,
        timeout: float = 0,
        prefetch_factor: int | None = None,
        persistent_workers: bool = True,
        output: Literal["auto", "torch", "numpy"] = "auto",
        fuse: bool = True,
        reads_in_flight: int | None = None,
        index: str | os.PathLike[str] = "memory",
        cache: int | str | Cache | None = None,
        cache_cut: int | str | None = None,
        cache_codec: str | None = None,
        cache_split: str | Plan | None = None,
        job: str | None = None,
        store: str | os.PathLike[str] | None = None,
        store_cut: int | str | None = None,
        store_codec: str | None = None,
        profile: bool = False,
        policy: str = "auto",
        **torch_arguments: Any,
    ) -> None:
        for name, value in torch_arguments.items():
            if name not in _ELSEWHERE:
                raise WrongType(f"DataLoader has no argument {name!r}")
            if value is not None and value != "":
                raise InvalidArgument(f"DataLoader does not take {name}: {_ELSEWHERE[name]}")
        if not isinstance(dataset, Dataset):
            raise WrongType(
                f"dataset must be a cutwater.Dataset (cutwater.folder(...), files, tar), got {type(dataset).__name__}"
            )
        for name, value, known in (
            ("order", order, ("strict", "ready")),
            ("on_error", on_error, ("raise", "skip", "substitute")),
            ("output", output, ("auto", "torch", "numpy")),
        ):
            if value not in known:
                raise InvalidArgument(f"{name} must be one of {', '.join(map(repr, known))}, got {value!r}")
        if isinstance(num_workers, str) and num_workers != "auto":
            raise InvalidArgument(f"num_workers must be 'auto' or a number of threads, got {num_workers!r}")
        if num_workers != "auto":
            # torch's 0 means "in this process": here one thread
            num_workers = max(1, whole_number("num_workers", num_workers, 0, 1024))
        if max_errors is not None and on_error != "skip":
            raise InvalidArgument(f"max_errors goes with on_error='skip', not with {on_error!r}")
        if cache is None and any(value is not None for value in (cache_cut, cache_codec, cache_split, job)):
            raise InvalidArgument("cache_cut, cache_codec, cache_split and job go with cache=, such as cache='2GiB'")
        if store is None and (store_cut is not None or store_codec is not None):
            raise InvalidArgument("store_cut and store_codec go with store=, the folder of a store")
        del persistent_workers  # threads always live as long as the loader

        share: float | None = None
        count: int | None = None
        if isinstance(max_errors, numbers.Integral):
            count = whole_number("max_errors", max_errors, 0, 2**62)
        elif isinstance(max_errors, numbers.Real):
            share = float(max_errors)
        elif max_errors is not None:
            raise WrongType(f"max_errors must be a count or a share, got {max_errors!r}")
        self.dataset = dataset
        self.batch_size = batch_size
        self.drop_last = drop_last
        self._pin = pin_memory
        self._timeout = timeout if timeout > 0 else None
        self._output = output
        self._convert: Callable[[Any], Any] | None = None
        self._iteration = 0
        self._store_expected = store is not None
        self._cache_expected = self._cache_trusted = cache is not None
        used = cache if cache is None or isinstance(cache, Cache) else open_cache(cache)
        self._begun_in: int | None = None  # the process
        self._core = _core.Loader(
            source=dataset.source,
            pipeline=dataset.pipeline,
            batch_size=whole_number("batch_size", batch_size, 1, 2**62),
            shuffle=bool(shuffle),
            seed=whole_number("seed", seed, 0, 2**64 - 1),
            drop_last=bool(drop_last),
            order=order,
            on_error=on_error,
            max_error_count=count,
            max_error_share=share,
            threads=None if num_workers == "auto" else num_workers,
            memory_limit=bytes_number("memory_limit", memory_limit),
            prefetch=None if prefetch_factor is None else whole_number("prefetch_factor", prefetch_factor, 1, 2**62),
            fuse=fuse,
            reads_in_flight=None
            if reads_in_flight is None
            else whole_number("reads_in_flight", reads_in_flight, 0, 4096),
            # A path object is a path, whatever it is called.
            index=index if isinstance(index, str) else os.path.join(os.curdir, os.fspath(index)),
            cache=None if used is None else used._core,
            cache_cut="" if cache_cut is None else str(cache_cut),
            cache_codec="none" if cache_codec is None else cache_codec,
            cache_split=cache_split.cache_split if isinstance(cache_split, Plan) else cache_split or "",
            cache_outlives_loader=used is cache,
            job=job or "",
            store=None if store is None else os.fspath(store),
            store_cut="" if store_cut is None else str(store_cut),
            store_codec="" if store_codec is None else store_codec,
            profile=bool(profile),
            policy=policy,
        )
        self._closed = False
        _open_loaders.add(self)

    def __len__(self) -> int:
        """Batches per epoch (fewer when samples are skipped)."""
        return len(self._core)

    def __iter__(self) -> Iterator[Batch]:
        # Everything starts here, not at the first next(): the caller can go on while data comes in.
        if self._convert is None:
            self._convert = _converter(self._output)  # imports torch: not while batches wait
        self._iteration += 1
        self._core.begin()
        self._begun_in = os.getpid()
        return _Epoch(self, self._iteration)

    def _next(self, iteration: int) -> Batch | None:
        if iteration != self._iteration:
            raise InvalidArgument("another iteration of this loader has begun; use one iterator at a time")
        raw = self._core.next(self._timeout)
        self._warn_of_cache()
        if raw is None:
            self._warn_of_store()
            return None
        assert self._convert is not None
        fields = {name: self._convert(array) for name, array in raw["fields"].items()}
        batch = Batch(self._convert(raw["ids"]), raw["epoch"], raw["index"], fields)
        return batch.pin() if self._pin else batch

    def _leave(self, iteration: int) -> None:
        if iteration == self._iteration and not self._closed and self._begun_in == os.getpid():
            self._core.leave_epoch()

    def _warn_of_cache(self) -> None:
        """Once, where the cache does not work, and once where it gave other bytes: training goes on without it."""
        if self._cache_expected and (trouble := self._core.cache_trouble()):
            self._cache_expected = False
            warnings.warn(trouble, RuntimeWarning, stacklevel=4)
        if self._cache_trusted and (damage := self._core.cache_damage()):
            self._cache_trusted = False
            warnings.warn(damage, RuntimeWarning, stacklevel=4)

    def _warn_of_store(self) -> None:
        """Once, where a store could not be made: training goes on without it."""
        store = self.stats()["store"] if self._store_expected else None
        if store and store["state"] == "failed":
            self._store_expected = False
            warnings.warn(f"the store {store['path']} was not made: {store['reason']}", RuntimeWarning, stacklevel=4)

    def set_epoch(self, epoch: int) -> None:
        """The epoch that the next iteration delivers; without it, epochs follow each other."""
        self._core.set_epoch(whole_number("epoch", epoch, 0, 2**32 - 1))

    def state_dict(self) -> dict[str, Any]:
        """Where the loader stands: plain numbers and strings, a few hundred bytes."""
        return self._core.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continues exactly there, also with another num_workers. Refuses another stream's state."""
        self._iteration += 1
        self._core.load_state_dict(state)

    def stats(self) -> dict[str, Any]:
        """What was done so far: samples, bytes, seconds per op, waits, skipped samples, the bound."""
        return self._core.stats()

    def profile(self) -> Profile:
        """Sizes and times of the samples that ran op by op so far; with ``profile=True``."""
        return Profile(self._core.profile())

    def explain(self) -> str:
        """What was decided, and what bounds the speed, in words."""
        stats = self.stats()
        limit, peak = stats["memory"]["limit"], stats["memory"]["peak"]
        lines = [
            f"{len(self.dataset)} samples, {len(self)} batches of {self.batch_size} per epoch",
            f"pipeline: {self.dataset.pipeline}",
            f"threads: {stats['threads']} (this process may use {_core.usable_cores()} cores)",
            f"memory: at most {limit / 2**20:.0f} MiB, so far {peak / 2**20:.0f} MiB",
            f"bound by {stats['bound_by']}",
        ]
        if cache := stats["cache"]:
            lines[-1:-1] = _explain_cache(cache)
        if offload := stats["offload"]:
            lines[-1:-1] = _explain_offload(offload)
        if store := stats["store"]:
            damaged = f"{store['damaged']} samples were damaged and made again" if store["damaged"] else ""
            state = ", ".join(filter(None, (store["state"], store["reason"], damaged)))
            lines.insert(-1, f"store: {store['path']}, cut {store['cut']!r}, codec {store['codec']}: {state}")
        if index := stats["index"]["samples"]:
            lines.insert(-1, f"entropy index: {index} samples, {stats['index']['bytes'] / 2**20:.1f} MiB")
        return "\n".join(lines)

    def close(self) -> None:
        """Ends all work and frees the threads. Batches that you hold stay valid."""
        self._close()

    def _close(self) -> None:
        self._closed = True
        self._core.close()
        if self._begun_in == os.getpid():  # a forked child knows nothing of it
            self._warn_of_store()

    def __enter__(self) -> DataLoader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def __del__(self) -> None:
        # Here, not in the native destructor: a store that is being written is waited for without the GIL.
        if not getattr(self, "_closed", True):
            self._close()
