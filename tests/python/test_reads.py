# SPDX-License-Identifier: Apache-2.0
"""Reads in flight: files that are not in the page cache give the same stream and the same errors."""

from __future__ import annotations

import json
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest
from helpers import command, run_python, stream

import cutwater as cw

TRAIN = "decode | random_resized_crop(12) | random_horizontal_flip"


def forget(*paths: Path | str) -> None:
    """The page cache forgets the files, where the file system lets it."""
    for path in paths:
        fd = os.open(path, os.O_RDONLY)
        os.fdatasync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def loader(ds: cw.Dataset, **options: Any) -> cw.DataLoader:
    return cw.DataLoader(ds, **{"batch_size": 5, "shuffle": True, "seed": 3, "num_workers": 2} | options)


@pytest.mark.parametrize("reads", [None, 1, 32])
@pytest.mark.parametrize("workers", [1, 3])
def test_cold_files_give_the_same_stream(photos: Path, reads: int | None, workers: int) -> None:
    ds = cw.folder(photos).apply(TRAIN)
    plain = loader(ds, reads_in_flight=0)
    expected = stream(plain, 2)
    assert plain.stats()["reads_queued"] == 0
    forget(*photos.rglob("*.jpg"))
    assert stream(loader(ds, reads_in_flight=reads, num_workers=workers), 2) == expected


def test_cold_shards_give_the_same_stream(photos: Path, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "x.tar", "w") as shard:
        for i, path in enumerate(sorted(photos.rglob("*.jpg"))):
            shard.add(path, f"{i:03}.jpg")
    ds = cw.tar(tmp_path / "x.tar").apply(TRAIN)
    expected = stream(loader(ds, reads_in_flight=0), 2)
    forget(tmp_path / "x.tar")
    assert stream(loader(ds), 2) == expected


def test_bad_files_are_named_alike(photos: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.jpg").touch()
    (tmp_path / "folder.jpg").mkdir()
    os.mkfifo(tmp_path / "pipe.jpg")
    (tmp_path / "loop.jpg").symlink_to("loop.jpg")
    bad = [tmp_path / f"{name}.jpg" for name in ("empty", "folder", "pipe", "loop", "gone")]
    ds = cw.files([*sorted(photos.rglob("*.jpg")), *bad]).apply(TRAIN)
    plain, ring = (loader(ds, on_error="skip", reads_in_flight=reads) for reads in (0, 32))
    forget(*photos.rglob("*.jpg"))
    assert stream(ring) == stream(plain)
    assert ring.stats()["skipped"] == plain.stats()["skipped"]
    assert len(ring.stats()["skipped"]) == len(bad)


def test_refusals(photos: Path) -> None:
    with pytest.raises(ValueError, match="reads_in_flight must be at least 0, got -1"):
        loader(cw.folder(photos), reads_in_flight=-1)
    with pytest.raises(TypeError, match="reads_in_flight must be a whole number"):
        loader(cw.folder(photos), reads_in_flight=1.5)


def test_doctor_says_whether_reads_can_be_in_flight() -> None:
    report = json.loads(command("doctor", "--json").stdout)
    assert report["io_uring"] is True or any("io_uring" in problem["what"] for problem in report["problems"])


# Refuses io_uring_setup as a container's seccomp profile does, and openat2 as well.
SANDBOX = """
import ctypes, struct, sys
allow, refuse = 0x7FFF0000, 0x00050000 | 1  # EPERM
rules = [(0x20, 0, 0, 0), (0x15, 2, 0, 425), (0x15, 1, 0, 437), (0x06, 0, 0, allow), (0x06, 0, 0, refuse)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *rule) for rule in rules))
program = struct.pack("HxxxxxxP", len(rules), ctypes.addressof(code))
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program, 0, 0):
    sys.exit("no seccomp")
import os, cutwater as cw
for path in sys.argv[1:]:
    fd = os.open(path, os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
loader = cw.DataLoader(cw.files(sys.argv[1:]).decode().resize([8, 8]), batch_size=5, num_workers=2, output="numpy")
print(sum(int(batch["image"].sum()) for batch in loader), loader.stats()["reads_queued"])
"""


def test_a_sandbox_without_io_uring(photos: Path) -> None:
    paths = sorted(photos.rglob("*.jpg"))
    run = run_python(SANDBOX, *paths)
    if run.stderr.startswith("no seccomp"):
        pytest.skip("seccomp is not to be had here")
    assert run.returncode == 0, run.stderr
    ds = cw.files(paths).decode().resize([8, 8])
    expected = sum(int(ds.get(i)["image"].sum()) for i in range(len(ds)))
    assert run.stdout.split() == [str(expected), "0"]
