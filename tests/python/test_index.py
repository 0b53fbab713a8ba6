# SPDX-License-Identifier: Apache-2.0
"""The entropy index: where it is kept, what it is worth to a second loader, and that it changes no byte."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import as_somebody, command, noise, save, stream
from test_tar import write_shard

import cutwater as cw

HINTS = ".cutwater-*.hints"  # one for each data set in the folder


def kept(folder: Path) -> Path:
    """The one file of hints in a folder."""
    (file,) = folder.glob(HINTS)
    return file


@pytest.fixture
def jpegs(tmp_path: Path) -> Path:
    """Twelve JPEGs in two classes, and a PNG that nothing is learned of."""
    root = tmp_path / "data"
    for k in range(12):
        (root / f"c{k % 2}").mkdir(parents=True, exist_ok=True)
        save(root / f"c{k % 2}" / f"{k:02}.jpg", noise(60 + 9 * k, 300 - 7 * k, seed=k, block=3), subsampling=k % 3)
    save(root / "c0" / "none.png", noise(50, 50))
    return root


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "cutwater"


def crops(root: Path) -> cw.Dataset:
    return cw.folder(root).decode().random_resized_crop(24).random_horizontal_flip()


def loader(root: Path, **options: Any) -> cw.DataLoader:
    return cw.DataLoader(crops(root), batch_size=4, shuffle=True, seed=5, **options)


def epochs(root: Path, count: int = 4, **options: Any) -> list[Any]:
    with loader(root, **options) as batches:
        return stream(batches, count)


def places(tmp_path: Path) -> Iterator[str | Path]:
    yield from ("memory", "beside", tmp_path / "mine.hints", str(tmp_path / "also.hints"))


def test_every_index_gives_the_same_bytes(jpegs: Path, tmp_path: Path) -> None:
    expected = epochs(jpegs, index="off")
    for index in places(tmp_path):
        for run in ("first", "second"):
            assert epochs(jpegs, index=index) == expected, (index, run)
    assert epochs(jpegs, index="beside", num_workers=1, fuse=False) == expected


def test_what_stats_say(jpegs: Path) -> None:
    nothing = {"samples": 0, "uses": 0, "bytes": 0}
    with loader(jpegs, index="off") as off:
        stream(off, 2)
        assert off.stats()["index"] == nothing
    with loader(jpegs) as memory:
        assert memory.stats()["index"] == nothing
        stream(memory)
        first = memory.stats()["index"]
        assert first["samples"] == 12 and first["bytes"] > 0
        stream(memory)
        second = memory.stats()["index"]
        assert second["samples"] == 12 and second["bytes"] >= first["bytes"]
        assert second["uses"] >= 10  # a thread may begin the second epoch with what another still learns
        assert "entropy index: 12 samples" in memory.explain()
    assert not list(jpegs.glob(HINTS))


@pytest.mark.parametrize("beside", [True, False])
def test_a_file_survives_to_the_next_loader(beside: bool, jpegs: Path, tmp_path: Path, cache: Path) -> None:
    index = "beside" if beside else tmp_path / "mine.hints"
    with loader(jpegs, index=index) as first:
        stream(first, 2)
    file = kept(jpegs) if beside else tmp_path / "mine.hints"
    assert file.read_bytes().startswith(b"CWHINTS1")
    assert sorted(tmp_path.rglob("*hints*")) == [file]
    with loader(jpegs, index=index) as second:
        assert second.stats()["index"]["samples"] == 12, "before the first batch"
        stream(second)
        assert second.stats()["index"]["uses"] >= 12
    assert not cache.exists()


def test_a_file_is_there_after_an_epoch_not_only_at_the_end(jpegs: Path) -> None:
    with loader(jpegs, index="beside") as batches:
        stream(batches)
        assert kept(jpegs).exists()


def test_another_crop_uses_the_same_file_and_another_decode_does_not(jpegs: Path) -> None:
    epochs(jpegs, index="beside")
    for ds, samples in [
        (cw.folder(jpegs).decode().resize(30).center_crop(20), 12),
        (cw.folder(jpegs).decode(exif=True).resize(30).center_crop(20), 12),
        (cw.folder(jpegs).decode(max_pixels=10**6).resize(30).center_crop(20), 0),
    ]:
        with cw.DataLoader(ds, index="beside") as batches:
            assert batches.stats()["index"]["samples"] == samples


def test_files_that_were_replaced_have_their_own_pixels(jpegs: Path) -> None:
    epochs(jpegs, index="beside")
    for k in (0, 1, 6):  # of the same size, of another, and not even a JPEG
        path = jpegs / f"c{k % 2}" / f"{k:02}.jpg"
        height = 40 if k == 1 else 60 + 9 * k
        save(path, noise(height, 300 - 7 * k, seed=99, block=4), format="PNG" if k == 6 else "JPEG")
    expected = epochs(jpegs, index="off")
    assert epochs(jpegs, index="beside") == expected
    assert epochs(jpegs, index="beside") == expected


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped"])
def test_damaged_files_are_made_anew(damage: str, jpegs: Path) -> None:
    expected = epochs(jpegs, index="beside")
    file = kept(jpegs)
    sound = file.read_bytes()
    flipped = sound[:100] + bytes([sound[100] ^ 1]) + sound[101:]
    file.write_bytes({"empty": b"", "cut": sound[:-1], "flipped": flipped}[damage])
    with loader(jpegs, index="beside") as batches:
        assert batches.stats()["index"]["samples"] == 0
        assert stream(batches, 4) == expected
    with loader(jpegs, index="beside") as batches:
        assert batches.stats()["index"]["samples"] == 12


def test_a_file_of_another_number_of_samples_is_not_used(jpegs: Path) -> None:
    epochs(jpegs, index="beside")
    shutil.copy(jpegs / "c0" / "00.jpg", jpegs / "c0" / "more.jpg")
    with loader(jpegs, index="beside") as batches:
        assert batches.stats()["index"]["samples"] == 0


def test_places_that_cannot_be_written_to_do_no_harm(jpegs: Path, tmp_path: Path) -> None:
    expected = epochs(jpegs, index="off")
    (tmp_path / "file").write_bytes(b"")
    for index in (tmp_path / "missing" / "hints", tmp_path / "file" / "hints"):
        with pytest.raises(ValueError, match=f"cannot write '{index}': its folder"):
            loader(jpegs, index=index)
    for index in (tmp_path, Path("/proc/hints")):
        assert epochs(jpegs, index=index) == expected, index


def test_a_read_only_home_has_its_file_in_the_cache_folder(jpegs: Path) -> None:
    with tempfile.TemporaryDirectory() as root:  # where others may go, unlike tmp_path
        os.chmod(root, 0o755)
        home, cache = Path(root) / "data", Path(root) / "cache"
        shutil.copytree(jpegs, home)
        home.chmod(0o555)
        cache.mkdir()
        cache.chmod(0o777)
        for _ in range(2):
            ran = command(
                *("run", "--data", home, "--pipeline", "decode | random_resized_crop(9)", "--index", "beside"),
                env=os.environ | {"XDG_CACHE_HOME": str(cache)},
                **as_somebody(),
            )
            assert ran.returncode == 0, ran.stderr
            (file,) = (cache / "cutwater").iterdir()
            assert file.suffix == ".hints" and file.read_bytes().startswith(b"CWHINTS1")
        home.chmod(0o755)
        assert not list(home.glob(HINTS))


def test_sources_without_a_folder_need_a_path(jpegs: Path, tmp_path: Path) -> None:
    ds = cw.files(sorted(jpegs.rglob("*.jpg"))).decode().random_resized_crop(9)
    with pytest.raises(ValueError, match=r"index: .*no folder of its own.*give a path"):
        cw.DataLoader(ds, index="beside")
    for word in ("", "none", "Off", "disk"):  # none of them becomes a file
        with pytest.raises(ValueError, match=rf"index must be memory, beside, off, or a path .*got '{word}'"):
            cw.DataLoader(ds, index=word)
    for index in ("memory", tmp_path / "mine"):
        with cw.DataLoader(ds, batch_size=4, index=index) as batches:
            stream(batches)
            assert batches.stats()["index"]["samples"] == 12
    assert (tmp_path / "mine").exists()


def test_shards_have_an_index_too(jpegs: Path, tmp_path: Path) -> None:
    files = {f"{k}.jpg": path.read_bytes() for k, path in enumerate(sorted(jpegs.rglob("*.jpg")))}
    ds = cw.tar(write_shard(tmp_path / "s.tar", files)).decode().random_resized_crop(9)
    with cw.DataLoader(ds, batch_size=4, index=tmp_path / "mine") as batches:
        expected = stream(batches, 2)
    with cw.DataLoader(ds, batch_size=4, index=tmp_path / "mine") as batches:
        assert batches.stats()["index"]["samples"] == 12
        assert stream(batches, 2) == expected
