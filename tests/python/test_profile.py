# SPDX-License-Identifier: Apache-2.0
"""Profiles from Python and from the command: true sizes, files that others read, named bad samples."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import COMMAND, command, noise, save, until

import cutwater as cw

TEXT = "decode | resize(20) | center_crop(16) | random_horizontal_flip | to_tensor"


def nbytes(sample: dict[str, Any]) -> int:
    """Labels are plain numbers of eight bytes."""
    return sum(field.nbytes if isinstance(field, np.ndarray) else 8 for field in sample.values())


@pytest.fixture(scope="module")
def ds(photos: Path) -> cw.Dataset:
    return cw.folder(photos).apply(TEXT)


@pytest.fixture(scope="module")
def profile(ds: cw.Dataset) -> cw.Profile:
    return cw.profile(ds, num_workers=2)


def columns(profile: cw.Profile, folder: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What NumPy and json make of the files."""
    profile.save(folder)
    meta = json.loads((folder / "meta.json").read_text())
    return meta, {name: np.load(folder / file) for name, file in meta["files"].items()}


def test_sizes_are_those_of_the_cuts(ds: cw.Dataset, profile: cw.Profile, tmp_path: Path) -> None:
    meta, arrays = columns(profile, tmp_path / "p")
    last = len(meta["cuts"]) - 1
    assert [cut["name"] for cut in meta["cuts"]] == [cut["name"] for cut in ds.cuts()]
    assert [cut["stable"] for cut in meta["cuts"]] == [cut["stable"] for cut in ds.cuts()]
    assert arrays["ids"].tolist() == profile.ids == list(dict.fromkeys(profile.ids))
    for row, id in enumerate(profile.ids):
        expected = [nbytes(ds.run(id, upto=k, epoch=2)) for k in range(last + 1)]
        assert arrays["bytes"][row].tolist() == expected


def test_columns_are_consistent(profile: cw.Profile, tmp_path: Path) -> None:
    meta, arrays = columns(profile, tmp_path / "p")
    samples, cuts, stable = len(profile.ids), len(meta["cuts"]), sum(cut["stable"] for cut in meta["cuts"])
    for name, array in arrays.items():
        assert array.dtype == (np.int64 if name == "ids" else np.float64)
        assert np.isfinite(array).all() and (array >= 0).all()
    for name in ("bytes", "op_s", "prefix_s"):
        assert arrays[name].shape == (samples, cuts)
    for name in ("finish_s", "first_s", "memory_s"):
        assert arrays[name].shape == (samples, stable)
    assert (arrays["op_s"][:, 0] == 0).all() and (arrays["op_s"][:, 1:].mean(axis=0) > 0).all()
    assert (arrays["finish_s"] > 0).all()
    for k, variant in enumerate(meta["variants"]):
        if variant["codec"] == "none":
            assert (arrays["variant_bytes"][:, k] == arrays["bytes"][:, variant["cut"]]).all()
            assert (arrays["variant_decode_s"][:, k] == 0).all()
    assert {"lz4", "zstd:1", "zstd:3", "delta-zstd:1"} <= {variant["codec"] for variant in meta["variants"]}


def test_means_are_those_of_the_columns(profile: cw.Profile, tmp_path: Path) -> None:
    meta, arrays = columns(profile, tmp_path / "p")
    report = profile.to_dict()
    for k, cut in enumerate(report["cuts"]):
        assert cut["bytes"] == pytest.approx(arrays["bytes"][:, k].mean())
        assert cut["op_s"] == pytest.approx(arrays["op_s"][:, k].mean())
    for k, variant in enumerate(meta["variants"]):
        mean = report["cuts"][variant["cut"]]["variants"][variant["codec"]]
        assert mean["bytes"] == pytest.approx(arrays["variant_bytes"][:, k].mean())
        assert mean["decode_s"] == pytest.approx(arrays["variant_decode_s"][:, k].mean())


def test_round_trip(profile: cw.Profile, tmp_path: Path) -> None:
    profile.save(tmp_path / "p")
    loaded = cw.Profile.load(tmp_path / "p")
    assert loaded.to_dict() == profile.to_dict()
    assert loaded.table() == profile.table()
    assert loaded.ids == profile.ids
    assert f"of {len(profile.ids)} samples" in repr(loaded)


def test_the_table_names_every_cut(ds: cw.Dataset, profile: cw.Profile) -> None:
    lines = profile.table().splitlines()
    for cut in ds.cuts():
        assert any(line.split()[:2] == [str(cut["cut"]), cut["name"]] for line in lines)


def test_the_seed_draws_the_samples(ds: cw.Dataset) -> None:
    ids = [cw.profile(ds, samples=5, seed=seed, num_workers=1).ids for seed in (1, 1, 2)]
    assert ids[0] == ids[1] != ids[2]
    assert len(set(ids[0])) == 5


def test_bad_files_are_counted_and_named(tmp_path: Path) -> None:
    for k in range(6):
        save(tmp_path / f"{k}.png", noise(9, 9, k))
    (tmp_path / "3.png").write_text("no image")
    (tmp_path / "4.png").write_bytes(b"")
    report = cw.profile(cw.folder(tmp_path).decode()).to_dict()
    assert report["samples"] == 4
    assert sorted((bad["id"], bad["op"]) for bad in report["bad"]) == [(3, "decode"), (4, "read")]
    assert {os.path.basename(bad["path"]) for bad in report["bad"]} == {"3.png", "4.png"}
    with pytest.raises(cw.SampleError, match=r"[34]\.png"):
        cw.profile(cw.files([tmp_path / "3.png", tmp_path / "4.png"]).decode())


def test_tar_shards_and_memory(photos: Path, tmp_path: Path) -> None:
    paths = sorted(photos.rglob("*.jpg"))[:4]
    subprocess.run(
        [
            "tar",
            "-cf",
            tmp_path / "a.tar",
            "-C",
            paths[0].parent.parent,
            *(str(path.relative_to(photos)) for path in paths),
        ],
        check=True,
    )
    shard = cw.profile(cw.tar(tmp_path / "a.tar").decode()).to_dict()
    held = cw.profile(cw.memory([path.read_bytes() for path in paths]).decode()).to_dict()
    assert not shard["storage"]["reads_files"] and not held["storage"]["reads_files"]
    assert [cut["bytes"] for cut in shard["cuts"]] == [cut["bytes"] for cut in held["cuts"]]


def test_a_store_stands_for_the_data_at_cut_0_only(photos: Path, tmp_path: Path) -> None:
    ds = cw.folder(photos).apply(TEXT)
    for cut in ("source", "decode"):
        cw.materialize(ds, cut, out=tmp_path / cut)
    made = command(
        "profile", "--data", tmp_path / "source", "--pipeline", TEXT, "--samples", 4, "-o", tmp_path / "p", "--json"
    )
    assert (made.returncode, made.stderr) == (0, "")
    assert json.loads(made.stdout)["data_samples"] == len(ds)
    refused = command("profile", "--data", tmp_path / "decode", "--pipeline", TEXT, "-o", tmp_path / "q")
    assert refused.returncode == 2
    assert "the source stands at cut 2" in refused.stderr


def test_what_is_refused(ds: cw.Dataset, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="stands at cut 2"):
        cw.profile(ds.in_memory("decode"))
    for wrong in ({"samples": 0}, {"max_seconds": 0}, {"num_workers": 0}, {"consumer": -1}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            cw.profile(ds, **wrong)
    with pytest.raises(TypeError, match="dataset"):
        cw.profile("train")  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError, match=r"no meta\.json"):
        cw.Profile.load(tmp_path)


def run_profile(photos: Path, out: Path, *more: object) -> subprocess.CompletedProcess[str]:
    return command("profile", "--data", photos, "--pipeline", TEXT, "-o", out, *more)


def test_the_command_reports_what_it_promises(photos: Path, tmp_path: Path) -> None:
    result = run_profile(photos, tmp_path / "p", "--samples", 6, "--threads", 2, "--consumer", 1000, "--json")
    assert (result.returncode, result.stderr) == (0, "")
    report = json.loads(result.stdout)
    assert report.keys() >= {"samples", "seconds", "cuts", "bad", "storage", "relative_error"}
    assert (report["samples"], report["consumer_samples_per_s"], report["bad"]) == (6, 1000, [])
    assert report["data"] == str(photos)
    for cut in report["cuts"]:
        assert cut.keys() >= {"cut", "name", "after", "stable", "bytes", "variants", "op_s", "prefix_s", "finish_s"}
        assert cut["finish_s"] is not None and cut["variants"]
        assert (cut["memory_s"] is not None) == cut["stable"]
        for variant in cut["variants"].values():
            assert variant.keys() == {"bytes", "encode_s", "decode_s"}
    assert report == cw.Profile.load(tmp_path / "p").to_dict()
    text = run_profile(photos, tmp_path / "p", "--samples", 6).stdout
    assert "6 of 23 samples" in text and "fresh" in text


def test_the_command_refuses(photos: Path, tmp_path: Path) -> None:
    data = ["profile", "--data", photos, "--pipeline", TEXT]
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    for wrong in (
        data,
        [*data, "-o", tmp_path / "p", "--samples", 0],
        [*data, "-o", tmp_path / "p", "--max-seconds", 0],
        [*data, "-o", tmp_path / "p", "--threads", 0],
        [*data, "-o", tmp_path / "full", "--samples", 1],
        ["profile", "--data", tmp_path / "nowhere", "--pipeline", TEXT, "-o", tmp_path / "p"],
    ):
        result = command(*wrong)
        assert (result.returncode, result.stdout) == (2, ""), wrong
        assert result.stderr, wrong


def test_ctrl_c_ends_it_without_a_profile(photos: Path, tmp_path: Path) -> None:
    big = save(tmp_path / "big.png", noise(2000, 2000))
    (tmp_path / "list.csv").write_text("path\n" + f"{big}\n" * 2000)
    arguments = ["profile", "--data", tmp_path / "list.csv", "--pipeline", TEXT, "-o", tmp_path / "p"]
    person, terminal = pty.openpty()
    process = subprocess.Popen([COMMAND, *map(str, arguments)], stdout=subprocess.PIPE, stderr=terminal, text=True)
    os.close(terminal)
    assert b"profile [" in os.read(person, 65536)  # progress, on a terminal: it is under way
    process.send_signal(signal.SIGINT)
    assert until(lambda: process.poll() is not None)
    out, _ = process.communicate()
    os.close(person)
    assert (process.returncode, out) == (130, "")
    assert not (tmp_path / "p").exists()


def test_fresh_cuts_and_excerpts_have_their_columns(photos: Path, tmp_path: Path) -> None:
    ds = cw.folder(photos).apply("decode | random_resized_crop(8, scale=[0.1, 0.2]) | random_horizontal_flip")
    made = cw.profile(ds, samples=8)
    meta, arrays = columns(made, tmp_path / "p")
    fresh = [cut["cut"] for cut in meta["cuts"] if not cut["stable"]]
    assert arrays["fresh_finish_s"].shape == (8, len(fresh))
    assert (arrays["fresh_finish_s"] > 0).all()
    for k, variant in enumerate(meta["fresh_variants"]):
        assert variant["cut"] in fresh
        if variant["codec"] == "none":
            assert (arrays["fresh_variant_bytes"][:, k] == arrays["bytes"][:, variant["cut"]]).all()
    excerpt = made.to_dict()["excerpt"]
    there = arrays["excerpt_bytes"][:, 0] > 0
    assert excerpt["share"] == there.mean() > 0
    assert (arrays["excerpt_bytes"][there, 0] < arrays["bytes"][there, 0]).all()
    assert (arrays["excerpt_make_s"][:, 0] > 0).tolist() == there.tolist()
    assert excerpt["bytes"] == pytest.approx(arrays["excerpt_bytes"][there, 0].mean())
    assert "excerpt: " in made.table()
