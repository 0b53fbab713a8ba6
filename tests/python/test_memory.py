# SPDX-License-Identifier: Apache-2.0
"""Memory: workers stop when nobody reads, the limit holds, nothing grows, nothing is left behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import noise, run_python, save, stream, until

import cutwater as cw

BATCH = 4


@pytest.mark.parametrize("order", ["strict", "ready"])
@pytest.mark.parametrize("prefetch", [1, 3])
def test_workers_stop_when_nobody_reads(tmp_path: Path, order: str, prefetch: int) -> None:
    path = save(tmp_path / "x.png", noise(8, 8))
    ds = cw.files([path] * 400).decode()
    feed = cw.DataLoader(ds, BATCH, order=order, num_workers=3, prefetch_factor=prefetch)

    def made() -> int:
        return feed.stats()["ops"]["decode"]["calls"]

    it = iter(feed)
    for read in range(1, 5):
        next(it)
        room = (read + prefetch) * BATCH
        assert until(lambda room=room: made() >= room)
        for _ in range(200):  # workers that did not stop would have had the time to go on
            ds.get(0)
        assert made() == room


@pytest.mark.parametrize("workers", [1, 7])
@pytest.mark.parametrize("order", ["strict", "ready"])
def test_the_limit_holds(tmp_path: Path, workers: int, order: str) -> None:
    """Large images in few bytes: what decoding takes is what counts."""
    for k in range(12):
        save(tmp_path / f"{k}.jpg", noise(700, 800, k, block=50))
    ds = cw.folder(tmp_path).decode().random_resized_crop(64).to_tensor()
    feed = cw.DataLoader(ds, BATCH, order=order, num_workers=workers, memory_limit="6MiB")
    assert len(stream(feed, epochs=2)) == 6
    memory = feed.stats()["memory"]
    assert 0 < memory["peak"] <= memory["limit"] == 6 * 2**20


def test_files_being_read_count_as_well(tmp_path: Path) -> None:
    for k in range(12):
        save(tmp_path / f"{k}.png", noise(700, 700, k), compress_level=0)  # 1.5 MB stored, as much decoded
    feed = cw.DataLoader(cw.folder(tmp_path).decode().resize((32, 32)), BATCH, num_workers=7, memory_limit="8MiB")
    assert len(stream(feed, epochs=2)) == 6
    memory = feed.stats()["memory"]
    assert memory["peak"] <= memory["limit"]


def test_an_image_beyond_the_limit_is_refused_by_name(tmp_path: Path) -> None:
    save(tmp_path / "x.png", noise(700, 700, block=50))
    ds = cw.folder(tmp_path).decode().resize((8, 8))
    with pytest.raises(ValueError, match=r"x\.png.*memory_limit 1048576; raise memory_limit"):
        stream(cw.DataLoader(ds, memory_limit="1MiB"))


def test_memory_stays_flat_over_epochs(photos: Path) -> None:
    code = """
import sys, cutwater as cw
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
ds = cw.folder(sys.argv[1]).apply("imagenet-train")
loader = cw.DataLoader(ds, batch_size=4, shuffle=True, num_workers=3, output="numpy")
sizes = []
for _ in range(10):
    for batch in loader:
        pass
    sizes.append(resident())
print(sizes[2], sizes[9])
"""
    result = run_python(code, photos)
    early, late = map(int, result.stdout.split())
    assert late <= 1.1 * early + 8 * 2**20


def test_a_killed_process_leaves_nothing_behind(photos: Path, tmp_path: Path) -> None:
    code = """
import sys, cutwater as cw
loader = cw.DataLoader(cw.folder(sys.argv[1]).apply("imagenet-train"), batch_size=4, num_workers=3, output="numpy")
while True:
    for batch in loader:
        print(batch.index, flush=True)
"""
    before = set(os.listdir("/dev/shm"))
    process = subprocess.Popen(
        [sys.executable, "-c", code, photos],
        stdout=subprocess.PIPE,
        cwd=tmp_path,
        env=os.environ
        | {name: str(tmp_path) for name in ("TMPDIR", "TMP", "TEMP", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR")},
    )
    assert process.stdout.readline() == b"0\n"
    process.kill()
    process.stdout.close()
    assert process.wait() == -9
    assert os.listdir(tmp_path) == []
    assert {name for name in set(os.listdir("/dev/shm")) - before if "cutwater" in name} == set()
