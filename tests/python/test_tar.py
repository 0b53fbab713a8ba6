# SPDX-License-Identifier: Apache-2.0
"""tar(): WebDataset shards in every dialect of tar, and the index that is kept beside them."""

from __future__ import annotations

import io
import json
import os
import tarfile
import tempfile
from pathlib import Path

import pytest
from helpers import as_somebody, command, image_of, noise, rgb, same, save

import cutwater as cw

FORMATS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}
LONG = "deep/" * 30 + "long"  # beyond what an old header can hold


def encoded(tmp_path: Path, seed: int) -> bytes:
    return save(tmp_path / "scratch.png", noise(7, 9, seed)).read_bytes()


def write_shard(path: Path, members: dict[str, bytes], format: int = tarfile.GNU_FORMAT) -> Path:
    with tarfile.open(path, "w", format=format) as shard:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            shard.addfile(info, io.BytesIO(content))
    return path


def simple_shard(tmp_path: Path, name: str = "s.tar", seeds: range = range(3), folder: Path | None = None) -> Path:
    members: dict[str, bytes] = {}
    for seed in seeds:
        members |= {f"{seed:03}.png": encoded(tmp_path, seed), f"{seed:03}.cls": str(seed * 10).encode()}
    return write_shard((folder or tmp_path) / name, members)


def check(ds: cw.Dataset, seeds: list[int]) -> None:
    assert len(ds) == len(seeds)
    for i, seed in enumerate(seeds):
        assert same(image_of(ds.decode(), i), noise(7, 9, seed)) and ds.label(i) == seed * 10


@pytest.mark.parametrize("format", FORMATS)
def test_dialects(format: str, tmp_path: Path) -> None:
    names = ["a", "dir/b", "dir.with.dots/c", "Zürich" if format != "ustar" else "Zurich", "sp ace"]
    names += [LONG] if format != "ustar" else ["p" * 90 + "/" + "n" * 90]
    members: dict[str, bytes] = {}
    for k, name in enumerate(names):
        members[f"{name}.cls"] = f"{k}\n".encode()
        members[f"{name}.png"] = encoded(tmp_path, k)
        members[f"{name}.json"] = b"{}"
    shard = write_shard(tmp_path / "s.tar", members, FORMATS[format])
    ds = cw.tar(shard)
    assert [ds.label(i) for i in range(len(ds))] == list(range(len(names)))
    for k, name in enumerate(names):
        assert same(image_of(ds.decode(), k), noise(7, 9, k))
        assert ds.path(k) == f"{shard}/{name}.png"


def test_folders_and_links_in_a_shard_are_passed_over(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "s.tar", "w") as shard:
        for kind, name in ((tarfile.DIRTYPE, "dir"), (tarfile.SYMTYPE, "dir/link.png")):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "x.png"
            shard.addfile(info)
        info = tarfile.TarInfo("dir/x.png")
        content = encoded(tmp_path, 1)
        info.size = len(content)
        shard.addfile(info, io.BytesIO(content))
    ds = cw.tar(tmp_path / "s.tar")
    assert len(ds) == 1 and same(image_of(ds.decode()), noise(7, 9, 1))


def test_globs_lists_and_paths(tmp_path: Path) -> None:
    shards = [simple_shard(tmp_path, f"train-{k:03}.tar", range(2 * k, 2 * k + 2)) for k in range(3)]
    check(cw.tar(shards[1]), [2, 3])
    check(cw.tar(str(tmp_path / "train-*.tar")), [0, 1, 2, 3, 4, 5])
    check(cw.tar([shards[2], shards[0]]), [4, 5, 0, 1])


def test_loading_shards_equals_loading_files(tmp_path: Path) -> None:
    ds = cw.tar(simple_shard(tmp_path, seeds=range(9))).decode().random_resized_crop(5)
    for batch in cw.DataLoader(ds, batch_size=4, shuffle=True, seed=2, num_workers=3):
        for k, id in enumerate(batch.ids):
            assert same(batch[0][k], image_of(ds, int(id), seed=2)) and batch[1][k] == 10 * id


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"a.png": b"x", "a.cls": b"dog"}, "cls.*dog"),
        ({"a.png": b"x", "a.cls": b"1", "b.png": b"y"}, "cls|label"),
        ({"notes.txt": b"x"}, "has no image, only .txt"),
    ],
)
def test_shards_that_are_refused(members: dict[str, bytes], message: str, tmp_path: Path) -> None:
    with pytest.raises((ValueError, FileNotFoundError), match=message) as caught:
        cw.tar(write_shard(tmp_path / "s.tar", members))
    assert isinstance(caught.value, cw.Error) and "s.tar" in str(caught.value)


def test_a_shard_cut_short_is_refused(tmp_path: Path) -> None:
    shard = simple_shard(tmp_path)
    shard.write_bytes(shard.read_bytes()[:1100])
    with pytest.raises(cw.Error, match=r"s\.tar"):
        cw.tar(shard)


def test_the_index_is_kept_and_used(tmp_path: Path) -> None:
    shard = simple_shard(tmp_path)
    index = tmp_path / "s.tar.cwindex"
    check(cw.tar(shard), [0, 1, 2])
    written = index.stat()
    check(cw.tar(shard), [0, 1, 2])
    assert index.stat().st_mtime_ns == written.st_mtime_ns and index.stat().st_ino == written.st_ino
    # Proof that it is read: headers wiped out behind its back, size and time as before.
    times = (shard.stat().st_atime_ns, shard.stat().st_mtime_ns)
    content = bytearray(shard.read_bytes())
    content[:512] = bytes(512)
    shard.write_bytes(content)
    os.utime(shard, ns=times)
    check(cw.tar(shard), [0, 1, 2])


def test_a_changed_shard_is_indexed_again(tmp_path: Path) -> None:
    check(cw.tar(simple_shard(tmp_path)), [0, 1, 2])
    check(cw.tar(simple_shard(tmp_path, seeds=range(5, 9))), [5, 6, 7, 8])
    shard = simple_shard(tmp_path, seeds=range(1, 5))  # the same size: only the time tells
    os.utime(shard, ns=(1, 1))
    check(cw.tar(shard), [1, 2, 3, 4])


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "text", "longer", "folder"])
def test_a_damaged_index_is_made_again(tmp_path: Path, damage: str) -> None:
    shard, index = simple_shard(tmp_path), tmp_path / "s.tar.cwindex"
    cw.tar(shard)
    good = index.read_bytes()
    for at in range(0, len(good), 7) if damage == "flip" else [0]:
        bad = {
            "cut": good[:-9],
            "flip": good[:at] + bytes([good[at] ^ 0x40]) + good[at + 1 :],
            "empty": b"",
            "text": b"hello",
            "longer": good + b"\0",
            "folder": b"",
        }[damage]
        index.unlink()
        if damage == "folder":
            index.mkdir()
        else:
            index.write_bytes(bad)
        check(cw.tar(shard), [0, 1, 2])
        assert damage == "folder" or index.read_bytes() == good


def test_in_a_read_only_folder_the_index_goes_to_the_cache() -> None:
    with tempfile.TemporaryDirectory() as name:  # unlike tmp_path, others can be let in
        shards, cache = Path(name) / "shards", Path(name) / "cache"
        shards.mkdir()
        cache.mkdir()
        shard = simple_shard(Path(name), folder=shards)
        for place, mode in ((Path(name), 0o755), (shards, 0o555), (cache, 0o777)):
            place.chmod(mode)
        for _ in range(2):
            ran = command(
                *("run", "--data", shard, "--pipeline", "decode", "--json"),
                env=os.environ | {"XDG_CACHE_HOME": str(cache)},
                **as_somebody(),
            )
            assert json.loads(ran.stdout)["samples"] == 3, ran.stderr
        shards.chmod(0o755)
        assert os.listdir(shards) == ["s.tar"]
        (kept,) = (cache / "cutwater").iterdir()
        assert kept.suffix == ".cwindex" and kept.read_bytes().startswith(b"CWTARIDX")


def test_a_jpeg_in_a_shard_reads_as_the_file_does(tmp_path: Path) -> None:
    jpeg = save(tmp_path / "x.jpg", noise(30, 40, block=4), quality=90)
    ds = cw.tar(write_shard(tmp_path / "s.tar", {"x.jpg": jpeg.read_bytes()})).decode()
    assert same(image_of(ds), rgb(jpeg))
