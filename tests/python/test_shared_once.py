# SPDX-License-Identifier: Apache-2.0
"""Jobs that share a cache have every sample once an epoch, with the bytes that they would have without it.

Seeded trials: jobs of every number, speed, order and batch size around a cache of any size; they come late, leave,
are killed and come back, and so does the cache. A trial is repeated by its number: -k 'once[137]'.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from helpers import noise, save
from trial_caches import Server, serve
from trial_jobs import Delivered, Job, OwnJob, ProcessJob, Work, deliveries

TRIALS = 200
KINDS = ("memory", "daemon", "processes", "memory", "daemon", "redis", "processes", "daemon")
# What comes to pass in some trials of a kind. In Redis fresh forms are found where jobs hear of each other in time,
# which no trial decides.
EXPECTED = {
    "memory": ["hits", "fresh hits"],
    "daemon": ["hits", "fresh hits", "killed servers"],
    "processes": ["hits", "fresh hits", "killed servers", "killed workers"],
    "redis": ["hits", "killed servers"],
}
MOST_SAMPLES = 200
SIDE = 64
SAMPLE_BYTES = SIDE * SIDE * 3 + 200  # about, in the cache: noise does not compress
# More places than samples: what was drawn for one epoch is hardly ever right in another one.
PIPELINE = "decode | random_crop(24) | random_horizontal_flip"
FORMS: list[dict[str, str]] = [
    {"cache_cut": "source"},
    {"cache_cut": "decode"},
    {"cache_cut": "decode", "cache_codec": "lz4"},
    {"cache_split": "source=0.4,decode=0.5"},
    {},
]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("tiny")
    return [save(folder / f"{k:03}.png", noise(SIDE, SIDE, seed=k)) for k in range(MOST_SAMPLES)]


@pytest.fixture(scope="module")
def events() -> dict[int, Counter[str]]:
    """What came to pass, by the numbers of the trials that this process has run."""
    return {}


@dataclass
class Life:
    """One job's course through a trial."""

    name: str
    work: Work
    in_process: bool
    weight: float  # how often it is asked
    joins_at: int  # in steps of the trial
    stops_after: int | None  # batches
    is_killed: bool  # then
    comes_back: bool
    had: dict[int, list[tuple[int, bytes]]] = field(default_factory=dict)  # by epoch
    batches: int = 0
    kills: int = 0  # of its processes
    books: list[dict[str, Any] | None] = field(default_factory=list)  # of the cache, by each of its loaders
    finished: bool = False  # all its epochs
    gone: bool = False  # for good
    job: Job | None = None

    def join(self) -> None:
        self.job = ProcessJob(self.work) if self.in_process else OwnJob(self.work)
        self.books.append(None)

    def take(self, given: Delivered | None) -> None:
        assert self.job
        if given is None:
            self.finished = self.gone = True
            self.job.leave()
            self.job = None
            return
        self.batches += 1
        self.had.setdefault(given.epoch, []).extend(given.samples)
        self.work = self.work._replace(state=given.state)
        self.books[-1] = given.cache

    def stop(self, step: int) -> None:
        """What was asked for and not answered was not had: a state of before is where it goes on."""
        assert self.job
        if self.is_killed:
            self.job.kill()
            self.kills += self.in_process
        else:
            self.job.leave()
        self.job = None
        self.stops_after = None
        self.joins_at = step + 3
        self.gone = not self.comes_back

    def hits(self, name_ends: str = "") -> int:
        """In all forms, or in those whose name ends so."""
        forms = [form for books in self.books if books for form in books["by_form"].items()]
        return sum(form["hits"] for name, form in forms if name.endswith(name_ends))


def kind_of(number: int) -> str:
    return KINDS[number % len(KINDS)]


class Trial:
    """All that a number decides."""

    def __init__(self, number: int, files: list[Path]) -> None:
        self.rng = rng = random.Random(number)
        self.kind = kind_of(number)
        self.files = files[: rng.randint(50, MOST_SAMPLES)]
        self.share = rng.choice([0.0, 1.0, rng.random(), rng.random(), rng.random()])  # of the samples, in the cache
        self.form = rng.choice(FORMS)
        self.epochs = rng.randint(1, 3)
        self.seeds = [rng.randrange(2**32) for _ in range(rng.choice([1, 2, 8]))]  # some jobs draw alike
        # Steps before which the server is killed or started again; an in-process cache stays.
        self.breaks = sorted(rng.sample(range(1, 40), rng.choice([0, 0, 1, 2, 3]))) if self.kind != "memory" else []

    def __str__(self) -> str:
        breaks = f", server killed or started before steps {self.breaks}" if self.breaks else ""
        return f"{self.kind}, {len(self.files)} samples, {100 * self.share:.0f} % cached{breaks}"

    def lives(self, cache: Any) -> list[Life]:
        return [self._life(k, cache) for k in range(self.rng.randint(1, 8))]

    def _life(self, k: int, cache: Any) -> Life:
        rng = self.rng
        batch = min(512, int(2 ** rng.uniform(0, 9.1)))
        options = {
            "batch_size": batch,
            "seed": rng.choice(self.seeds),
            "order": rng.choice(["strict", "ready", "ready"]),
            "num_workers": rng.randint(1, 2),
            "cache": cache,
            "job": f"job {k}",
            **self.form,
        }
        batches = self.epochs * -(-len(self.files) // batch)
        # The first one stays to the end.
        stops_after = rng.randrange(batches) if k > 0 and rng.random() < 0.4 else None
        in_process = self.kind == "processes"
        return Life(
            f"job {k}", Work(self.files, PIPELINE, self.epochs, options), in_process,
            weight=rng.choice([0.1, 1, 1, 4]), joins_at=rng.choice([0, 0, 0, rng.randrange(40)]),
            stops_after=stops_after, is_killed=rng.random() < 0.7, comes_back=rng.random() < 0.6,
        )  # fmt: skip

    def run(self, server: Server) -> list[Life]:
        """To the end of all jobs; how many are asked at a time, and which, is the trial's too."""
        lives = self.lives(server.name)
        step = 0
        while waiting := [life for life in lives if not life.gone]:
            step += 1
            if step in self.breaks:
                server.stop_or_start()
            here = [life for life in waiting if life.job]
            if not here:
                step = max(step, min(life.joins_at for life in waiting))
            for life in waiting:
                if not life.job and life.joins_at <= step:
                    life.join()
                    here.append(life)
            self._step(here, step)
        return lives

    def _step(self, here: list[Life], step: int) -> None:
        count = self.rng.randint(1, len(here))
        asked = {life.name: life for life in self.rng.choices(here, [life.weight for life in here], k=count)}
        for life in asked.values():
            assert life.job
            life.job.ask()
        for life in asked.values():
            if life.stops_after is not None and life.batches >= life.stops_after:
                life.stop(step)
        for life in asked.values():
            if life.job:
                life.take(life.job.answer())


class Truth:
    """What a loader without a cache delivers."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._by_seed: dict[int, dict[int, dict[int, bytes]]] = {}

    def of(self, seed: int) -> dict[int, dict[int, bytes]]:
        """Hashes by epoch and id."""
        if seed not in self._by_seed:
            options = {"batch_size": 32, "seed": seed, "num_workers": 2}
            found: dict[int, dict[int, bytes]] = {}
            for given in deliveries(Work(self._trial.files, PIPELINE, self._trial.epochs, options)):
                found.setdefault(given.epoch, {}).update(given.samples)
            self._by_seed[seed] = found
        return self._by_seed[seed]


@pytest.mark.parametrize("number", range(TRIALS))
def test_each_sample_comes_once(
    number: int, files: list[Path], events: dict[int, Counter[str]], tmp_path: Path
) -> None:
    trial = Trial(number, files)
    with serve(trial.kind, int(trial.share * len(trial.files) * SAMPLE_BYTES), tmp_path) as server:
        lives = trial.run(server)
        server.check_that_nobody_is_left()
        events[number] = Counter({
            "hits": sum(life.hits() for life in lives),
            "fresh hits": sum(life.hits("(fresh)") for life in lives),
            "killed servers": server.kills,
            "killed workers": sum(life.kills for life in lives),
        })  # fmt: skip
    truth = Truth(trial)
    for life in lives:
        where = f"{life.name} of trial {number}: {trial}, {life.work.options}"
        expected = truth.of(life.work.options["seed"])
        for epoch, samples in life.had.items():
            twice = [id for id, count in Counter(id for id, _ in samples).items() if count > 1]
            assert not twice, f"epoch {epoch} has {twice} more than once; {where}"
            wrong = [id for id, found in samples if found != expected[epoch][id]]
            assert not wrong, f"epoch {epoch} has other bytes of {wrong}; {where}"
            missing = expected[epoch].keys() - {id for id, _ in samples}
            assert not missing or not life.finished, f"epoch {epoch} has no {missing}; {where}"
        assert life.had.keys() == expected.keys() or not life.finished, f"not all epochs; {where}"
    if trial.kind == "memory" and trial.share == 1 and trial.epochs > 1:
        assert events[number]["hits"] > 0, "the cache was never used"


@pytest.mark.parametrize("kind", EXPECTED)
def test_trials_of_a_kind_are_of_use(kind: str, events: dict[int, Counter[str]]) -> None:
    """Where no cache was ever used, and nobody killed, all of the above would hold as well."""
    numbers = [number for number in range(TRIALS) if kind_of(number) == kind]
    if not events.keys() >= set(numbers):
        pytest.skip(f"not all trials of {kind} were run here")
    total: Counter[str] = sum((events[number] for number in numbers), Counter())
    never = [what for what in EXPECTED[kind] if not total[what]]
    assert not never, f"{len(numbers)} trials of {kind} saw no {never}, but {dict(total)}"
