# SPDX-License-Identifier: Apache-2.0
"""Samples in memory, as stored or held at a cut: the bytes, labels and errors of the files they come from."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import same, stream

import cutwater as cw

TRAIN = "decode | random_resized_crop(12) | random_horizontal_flip | to_tensor"
VAL = "decode | resize(20) | center_crop(16) | to_tensor"


def loader(ds: cw.Dataset, **options: Any) -> cw.DataLoader:
    return cw.DataLoader(ds, **{"batch_size": 5, "shuffle": True, "seed": 3, "num_workers": 2} | options)


@pytest.fixture
def ds(photos: Path) -> cw.Dataset:
    return cw.folder(photos).apply(TRAIN)


def in_bytes(ds: cw.Dataset, kind: Any = bytes) -> cw.Dataset:
    stored = [kind(Path(ds.path(i)).read_bytes()) for i in range(len(ds))]
    return cw.memory(stored, [ds.classes[ds.label(i)] for i in range(len(ds))])


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, lambda b: np.frombuffer(b, np.uint8)])
def test_memory_gives_what_files_give(ds: cw.Dataset, kind: Any) -> None:
    memory = in_bytes(ds, kind)
    assert memory.classes == ds.classes and memory.path(17) == "memory:17"
    assert [memory.label(i) for i in range(len(ds))] == [ds.label(i) for i in range(len(ds))]
    assert stream(loader(memory.apply(TRAIN)), 2) == stream(loader(ds), 2)


def test_as_stored() -> None:
    stored = [bytes([i]) * 100 for i in range(7)]
    loaded = [batch for batch in cw.DataLoader(cw.memory(stored), batch_size=3, output="numpy")]
    assert b"".join(batch["image"].tobytes() for batch in loaded) == b"".join(stored)
    assert loaded[0].fields.keys() == {"image"}


@pytest.mark.parametrize("pipeline", [TRAIN, VAL])
def test_every_stable_cut_gives_the_same(photos: Path, pipeline: str) -> None:
    ds = cw.folder(photos).apply(pipeline)
    expected = stream(loader(ds), 2)
    for cut in ds.cuts():
        if not cut["stable"]:
            continue
        held = ds.in_memory(cut["name"])
        assert held.source.cut == cut["cut"] and held.fingerprint == ds.fingerprint
        assert stream(loader(held), 2) == expected
        assert stream(loader(held, order="strict", num_workers=1), 2) == expected
        for i in (0, 22):
            assert held.draws(i, epoch=1, seed=9) == ds.draws(i, epoch=1, seed=9)
            assert held.path(i) == ds.path(i) and held.label(i) == ds.label(i)
            for later in ds.cuts()[cut["cut"] :]:
                got, want = (one.run(i, later["cut"], epoch=1, seed=9)["image"] for one in (held, ds))
                assert same(got, want)


def test_what_get_returns_is_the_callers(ds: cw.Dataset) -> None:
    held = ds.in_memory()
    mine = held.run(3, "decode")["image"]
    before = mine.copy()
    mine[:] = 0
    assert same(held.run(3, "decode")["image"], before)
    del held
    assert not mine.any()


def test_ops_may_follow(photos: Path, ds: cw.Dataset) -> None:
    held = cw.folder(photos).decode().in_memory()
    chain = held.random_resized_crop(12).random_horizontal_flip().to_tensor()
    assert stream(loader(chain)) == stream(loader(ds))


def test_a_cut_before_the_held_one_is_refused(ds: cw.Dataset) -> None:
    with pytest.raises(ValueError, match=r"prepared up to cut 'decode' and cannot be run up to 'source'"):
        ds.in_memory().run(0, 0)


def test_refusals(ds: cw.Dataset) -> None:
    with pytest.raises(ValueError, match=r"past the frontier, cut 2 \('decode'\)"):
        ds.in_memory("random_resized_crop")
    with pytest.raises(ValueError, match=r"samples at cut 'decode' already take more than the limit 4.0 KiB"):
        ds.in_memory(memory_limit="4KiB")
    with pytest.raises(TypeError, match="a list of bytes-like objects"):
        cw.memory(b"abc")
    with pytest.raises(TypeError, match="bytes-like"):
        cw.memory(["abc"])
    with pytest.raises(ValueError, match="2 samples, but 1 labels"):
        cw.memory([b"a", b"b"], [1])
    with pytest.raises(ValueError, match="at least one"):
        cw.memory([])


def test_bad_files_are_still_bad(photos: Path, tmp_path: Path) -> None:
    good = [str(path) for path in sorted(photos.rglob("*.jpg"))[:9]]
    (tmp_path / "text.jpg").write_text("no image")
    half = Path(good[0]).read_bytes()
    (tmp_path / "half.jpg").write_bytes(half[: len(half) // 2])
    names = [*good[:4], tmp_path / "text.jpg", *good[4:], tmp_path / "gone.jpg", tmp_path / "half.jpg"]
    ds = cw.files(names).apply(TRAIN)
    held = ds.in_memory()
    for policy in ("skip", "substitute"):
        expected, got = loader(ds, on_error=policy), loader(held, on_error=policy)
        assert stream(got, 2) == stream(expected, 2)
        for kind in ("skipped", "substituted"):
            assert got.stats()[kind] == expected.stats()[kind]
    with pytest.raises(cw.SampleError, match=r"text.jpg"):
        held.get(4)


def test_a_state_from_files_goes_on_from_memory(ds: cw.Dataset) -> None:
    files, memory = loader(ds), loader(ds.in_memory(), num_workers=1)
    batches = iter(files)
    next(batches)
    memory.load_state_dict(files.state_dict())
    rest = [[batch.ids.tolist(), batch["image"].tolist()] for batch in batches]
    assert [[batch.ids.tolist(), batch["image"].tolist()] for batch in memory] == rest


def test_ctrl_c(photos: Path) -> None:
    """Holding takes minutes for a large data set: it can be left."""
    code = (
        "import sys, cutwater as cw\n"
        "ds = cw.files(sys.argv[1:] * 100000).decode().resize(4000)\n"
        "print('on', flush=True)\n"
        "ds.in_memory('decode', memory_limit='64GiB')\n"
    )
    names = [str(path) for path in sorted(photos.rglob("*.jpg"))]
    process = subprocess.Popen([sys.executable, "-c", code, *names], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert b"KeyboardInterrupt" in errors
