# SPDX-License-Identifier: Apache-2.0
"""Stores under attack: killed writers, flipped bytes, full disks, ctrl-C."""

from __future__ import annotations

import hashlib
import json
import os
import random
import resource
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from helpers import COMMAND, command, noise, same, save

import cutwater as cw

SAMPLES = 48
PIPELINE = "decode | random_horizontal_flip"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images of different sizes in two classes, and one that is none."""
    root = tmp_path_factory.mktemp("data")
    for k in range(SAMPLES):
        (root / f"class{k % 2}").mkdir(exist_ok=True)
        save(root / f"class{k % 2}" / f"{k:02}.png", noise(150 + k, 210 - k, seed=k, block=3))
    (root / "class1" / "13.png").write_bytes(b"no image")
    return root


def arguments(data: Path, out: Path, *more: object) -> list[object]:
    return ["materialize", "--data", data, "--pipeline", PIPELINE, "--cut", "decode", "-o", out, *more]


def digests(folder: Path) -> dict[str, str]:
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir()}


@pytest.fixture(scope="module")
def whole(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that was written without a disturbance."""
    out = tmp_path_factory.mktemp("whole") / "store"
    assert command(*arguments(data, out)).returncode == 0
    return out


def begun(data: Path, out: Path, **options: Any) -> subprocess.Popen[str]:
    """A writer at work."""
    words = [str(COMMAND), *map(str, arguments(data, out, "--threads", 2))]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **options)


def end_at(writer: subprocess.Popen[str], out: Path, files: int, how: signal.Signals) -> bool:
    """Ends the writer when its folder has so many files, by their renames; False when it was done before."""
    while writer.poll() is None:
        try:
            names = os.listdir(out)
        except FileNotFoundError:
            names = []
        if sum(not name.endswith(".tmp") for name in names) >= files:
            break
    writer.send_signal(how)
    writer.communicate()
    return writer.returncode != 0


def test_killed_at_any_point_it_goes_on_to_the_same_bytes(data: Path, whole: Path, tmp_path: Path) -> None:
    expected = digests(whole)
    rng = random.Random(5)
    killed = 0
    for k in range(20):
        out = tmp_path / str(k)
        # Up to all files of shards and parts, the index, and beyond; then once more on the way.
        for _ in range(rng.choice([1, 1, 2, 3])):
            killed += end_at(begun(data, out), out, rng.randrange(36), signal.SIGKILL)
        again = command(*arguments(data, out, "--json"))
        assert again.returncode == 0, again.stderr
        result = json.loads(again.stdout)
        assert result["samples"] == SAMPLES - 1 and [bad["id"] for bad in result["bad"]] == [30]
        assert digests(out) == expected
    assert killed >= 15
    assert cw.store(tmp_path / "3").get(0)["image"].shape == (150, 210, 3)


def test_ctrl_c_keeps_what_is_finished(data: Path, whole: Path, tmp_path: Path) -> None:
    for k in range(20):  # until it was quick enough
        out = tmp_path / str(k)
        if end_at(begun(data, out), out, 8, signal.SIGINT):
            break
    else:
        pytest.skip("the writer was always done first")
    assert not list(out.glob("*.tmp"))
    again = json.loads(command(*arguments(data, out, "--json")).stdout)
    assert again["resumed"] >= 3
    assert digests(out) == digests(whole)


def test_a_flipped_byte_anywhere_is_found(data: Path, whole: Path, tmp_path: Path) -> None:
    files = {file.name: bytearray(file.read_bytes()) for file in sorted(whole.iterdir())}
    ds = cw.folder(data).decode()
    expected = {i: ds.get(i)["image"] for i in range(SAMPLES) if i != 30}
    (tmp_path / "s").mkdir()
    for name, content in files.items():
        (tmp_path / "s" / name).write_bytes(content)
    names = sorted(files)
    rng = random.Random(7)
    read_as_damaged = 0
    for k in range(200):
        # Most bytes are samples'; the other half of the places is in the small files.
        name = rng.choice(names if k % 2 else ["meta.json", "index.npy"])
        at, bit = rng.randrange(len(files[name])), 1 << rng.randrange(8)
        files[name][at] ^= bit
        (tmp_path / "s" / name).write_bytes(files[name])
        result = command("verify", tmp_path / "s", "--json")
        said = json.loads(result.stdout)
        assert result.returncode == 1 and not said["ok"], (name, at)
        assert {damage["file"] for damage in said["bad"]} == {name}, (name, at)
        if name.endswith(".tar"):
            store = cw.store(tmp_path / "s")
            bad = set()
            for i, image in expected.items():
                try:
                    assert same(store.get(i)["image"], image), (name, at)
                except cw.SampleError as error:
                    assert "damaged" in error.reason and name in error.path
                    bad.add(i)
            assert bad == {damage["sample"] for damage in said["bad"]} - {None}
            read_as_damaged += len(bad)
        else:
            with pytest.raises(cw.InvalidArgument):
                cw.store(tmp_path / "s")
        files[name][at] ^= bit
        (tmp_path / "s" / name).write_bytes(files[name])
    assert read_as_damaged > 50
    assert json.loads(command("verify", tmp_path / "s", "--json").stdout)["ok"]


def test_a_file_that_may_not_grow(data: Path, whole: Path, tmp_path: Path) -> None:
    largest = max(file.stat().st_size for file in whole.glob("*.tar"))

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest - 1, largest - 1))

    failed = command(*arguments(data, tmp_path / "s", "--threads", 1), preexec_fn=limit)
    assert failed.returncode == 1
    assert "there is no room for more of it (File too large)" in failed.stderr
    assert "run the same again to go on" in failed.stderr
    left = os.listdir(tmp_path / "s")
    assert not [name for name in left if name.endswith(".tmp")] and "meta.json" not in left
    finished = {name for name in left if name.endswith(".tar")}
    assert {name.replace(".part", ".tar") for name in left if name.endswith(".part")} == finished
    assert command(*arguments(data, tmp_path / "s")).returncode == 0
    assert digests(tmp_path / "s") == digests(whole)


def test_a_first_try_that_may_not_be_written(data: Path, tmp_path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    failed = command(*arguments(data, tmp_path / "s"), preexec_fn=limit)
    assert failed.returncode == 1
    assert "a first try to write" in failed.stderr and "raise the limit of file sizes" in failed.stderr
    assert "building.json" not in failed.stderr and "finished" not in failed.stderr
    assert not (tmp_path / "s").exists()


def on_small_disk(tmp_path: Path, size: str, words: list[object]) -> subprocess.CompletedProcess[str]:
    """The command with a disk of its own at tmp_path/disk; the second line of stdout on is the disk's content."""
    (tmp_path / "disk").mkdir(exist_ok=True)
    script = f'mount -t tmpfs -o size={size} tmpfs "$0" && "$@"; status=$?; ls "$0"/s; exit $status'
    return subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, tmp_path / "disk", COMMAND, *map(str, words)],
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def small_disks(tmp_path_factory: pytest.TempPathFactory) -> None:
    if on_small_disk(tmp_path_factory.mktemp("try"), "1m", ["--version"]).stdout.split()[:1] != ["0.1.0"]:
        pytest.skip("file systems cannot be mounted here")


@pytest.mark.usefixtures("small_disks")
def test_a_disk_that_is_too_small(data: Path, tmp_path: Path) -> None:
    failed = on_small_disk(tmp_path, "1m", arguments(data, tmp_path / "disk" / "s"))
    assert failed.returncode == 1 and failed.stdout == ""
    assert "there is no room for this store: it needs about" in failed.stderr
    assert "(1.0 MiB) are free; choose another cut, codec or disk" in failed.stderr


@pytest.mark.usefixtures("small_disks")
def test_a_disk_that_becomes_full(tmp_path: Path) -> None:
    # Those that the forecast looks at are small.
    (tmp_path / "data").mkdir()
    for k in range(128):
        save(tmp_path / "data" / f"{k:03}.png", noise(*((8, 8) if k % 2 == 0 else (150, 150)), seed=k))
    failed = on_small_disk(tmp_path, "2m", arguments(tmp_path / "data", tmp_path / "disk" / "s"))
    assert failed.returncode == 1
    assert "there is no room for more of it (No space left on device)" in failed.stderr
    left = failed.stdout.split()
    assert "building.json" in left and "shard-000000.tar" in left
    assert not [name for name in left if name.endswith(".tmp")]


def test_verify_names_what_is_missing(whole: Path, tmp_path: Path) -> None:
    subprocess.run(["cp", "-r", whole, tmp_path / "s"], check=True)
    (tmp_path / "s" / "shard-000002.tar").unlink()
    content = (tmp_path / "s" / "shard-000004.tar").read_bytes()
    (tmp_path / "s" / "shard-000004.tar").write_bytes(content[:-3000])
    result = command("verify", tmp_path / "s", "--json")
    bad = json.loads(result.stdout)["bad"]
    assert result.returncode == 1
    assert {damage["file"] for damage in bad} == {"shard-000002.tar", "shard-000004.tar"}
    for missing in ("shard-000002.tar", "shard-000004.tar"):
        with pytest.raises(cw.Error, match=missing if missing == "shard-000002.tar" else "shard-00000"):
            cw.store(tmp_path / "s")
    assert command("verify", tmp_path).returncode == 2


def test_python_is_interrupted(data: Path, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ds = cw.folder(data).apply(PIPELINE)
    seen: list[int] = []

    def ctrl_c(done: int, samples: int, size: int) -> None:
        seen.append(done)
        if done > 0:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr("cutwater.stores._progress_line", lambda: ctrl_c)
    with pytest.raises(KeyboardInterrupt):
        cw.materialize(ds, "decode", out=tmp_path / "s", num_workers=1, progress=True)
    assert seen[0] == 0 and not list((tmp_path / "s").glob("*.tmp"))
    cw.materialize(ds, "decode", out=tmp_path / "s", progress=False)
    assert digests(tmp_path / "s") == digests(whole)
