"""The native engine of cutwater."""

from collections.abc import Sequence
from typing import overload


version: str = '0.1.0'

class Source:
    """Where samples come from."""

    def __len__(self) -> int: ...

    def path(self, id: int) -> str: ...

    def label(self, id: int) -> int: ...

    @property
    def has_labels(self) -> bool: ...

    @property
    def classes(self) -> list[str]: ...

    @property
    def cut(self) -> int: ...

    @property
    def fingerprint(self) -> str: ...

    @property
    def pipeline(self) -> str: ...

    @property
    def identity(self) -> str: ...

def open_folder(path: str, extensions: Sequence[str], allow_empty: bool) -> Source: ...

def open_files(paths: list, labels: Sequence[int], classes: list) -> Source: ...

def open_table(path: str) -> Source: ...

def open_tar_pattern(pattern: str) -> Source: ...

def open_tar(shards: list) -> Source: ...

def open_memory(samples: list, labels: Sequence[int], classes: list) -> Source: ...

class Pipeline:
    """A chain of ops and the cuts between them. Immutable."""

    def __init__(self) -> None: ...

    def then(self, name: str, params: dict) -> Pipeline:
        """A new pipeline with one more op."""

    def __str__(self) -> str: ...

    def __repr__(self) -> str: ...

    def __len__(self) -> int: ...

    @overload
    def __eq__(self, arg: Pipeline, /) -> bool: ...

    @overload
    def __eq__(self, arg: object | None, /) -> bool: ...

    def __hash__(self) -> int: ...

    @property
    def last_cut(self) -> int: ...

    @property
    def frontier(self) -> int: ...

    def cut(self, name: str) -> int:
        """The number of a cut, by the op it follows or by its number."""

    def cuts(self) -> list: ...

    def fingerprint(self, cut: int | None = None) -> str:
        """Names the bytes at a cut (default: the last one)."""

def parse(text: str) -> Pipeline:
    """A pipeline from its text, or a preset by its name."""

def ops() -> list:
    """The table of ops."""

def presets() -> dict: ...

def draws(pipeline: Pipeline, source: Source, id: int, epoch: int, seed: int) -> list: ...

def run(pipeline: Pipeline, source: Source, id: int, upto: int, epoch: int, seed: int, fuse: bool) -> dict: ...

def materialize(source: Source, pipeline: Pipeline, cut: int, codec: str, out: str, threads: int | None, on_progress: object | None) -> dict: ...

def open_store(path: str) -> Source: ...

def store_info(path: str) -> dict: ...

class Cache:
    """Bytes by key, kept so that work need not be done again."""

    def stats(self) -> dict: ...

def open_cache(text: str) -> Cache:
    """The cache that a text stands for."""

def open_remote(url: str, token: str, ca: str, patience_s: float, fallback: Source | None) -> Source: ...

class Profile:
    """Sizes and times of some samples at every cut."""

    @staticmethod
    def load(path: str) -> Profile: ...

    def save(self, path: str) -> None: ...

    def table(self) -> str: ...

    def json(self) -> str: ...

    @property
    def ids(self) -> list[int]: ...

def make_profile(source: Source, pipeline: Pipeline, samples: int | None, max_seconds: float, threads: int | None, seed: int, consumer: float | None) -> Profile: ...

class Loader:
    """Batches of a data set, epoch after epoch."""

    def __init__(self, *, source: Source, pipeline: Pipeline, batch_size: int, shuffle: bool, seed: int, drop_last: bool, order: str, on_error: str, max_error_count: int | None, max_error_share: float | None, threads: int | None, memory_limit: int | None, prefetch: int | None, fuse: bool, reads_in_flight: int | None, index: str, cache: Cache | None, cache_cut: str, cache_codec: str, cache_split: str, cache_outlives_loader: bool, job: str, store: object | None, store_cut: str, store_codec: str, profile: bool, policy: str) -> None: ...

    def begin(self) -> None: ...

    def next(self, timeout_s: float | None) -> dict | None: ...

    def set_epoch(self, epoch: int) -> None: ...

    @property
    def next_epoch(self) -> int: ...

    def __len__(self) -> int: ...

    def state_dict(self) -> dict: ...

    def load_state_dict(self, state: dict) -> None: ...

    def stats(self) -> dict: ...

    def cache_trouble(self) -> str: ...

    def profile(self) -> Profile: ...

    def close(self) -> None: ...

def hold_in_memory(source: Source, pipeline: Pipeline, cut: int, threads: int | None, memory_limit: int | None) -> Source:
    """
    Runs the pipeline up to the cut once for all samples and keeps the results.
    """

def usable_cores() -> int:
    """Cores that this process may use, by cpuset and CFS quota."""

class Plan:
    """Strategies of a profile, ranked."""

    @staticmethod
    def from_json(text: str) -> Plan: ...

    def to_json(self) -> str: ...

    def explain(self, rows: int | None) -> str: ...

def make_plan(profile: Profile, policy: str, epochs: int, disk: int | None, memory: int | None, threads: int | None, consumer: float | None, page_cache: str, prices: tuple[float, float, float] | None, jobs: int, same_seed: bool, split: str, storage_rate: float | None, cache_rate: float | None, link_rate: float | None, window: int | None, storage_threads: int | None, storage_speed: float) -> Plan: ...

def simd_levels() -> list[str]:
    """SIMD levels of this processor, best first."""

def parse_bytes(what: str, text: str, least: int = 1) -> int:
    """Number of bytes that a size such as '8GiB' stands for."""

def parse_rate(what: str, text: str) -> float:
    """Bytes per second that a rate such as '250MB/s' or '10Gb/s' stands for."""
