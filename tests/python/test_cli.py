# SPDX-License-Identifier: Apache-2.0
"""The command: what it prints and where, what it proves, how it ends."""

from __future__ import annotations

import ctypes
import ctypes.util
import json
import os
import pty
import re
import signal
import struct
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import COMMAND, command, noise, save, threads_of, until

import cutwater as cw
from cutwater import _core

TEXT = "decode | random_resized_crop(16) | random_horizontal_flip | to_tensor | normalize([0.5], [0.2])"


def run_json(data: Path, *more: object, pipeline: object = TEXT) -> dict[str, Any]:
    result = command("run", "--data", data, "--pipeline", pipeline, "--batch", 5, "--seed", 3, "--json", *more)
    assert (result.returncode, result.stderr) == (0, "")
    return json.loads(result.stdout)  # fails when anything else is there


def hashes(data: Path, *more: object, pipeline: object = TEXT, key: str = "stream_hash") -> list[str]:
    return [epoch[key] for epoch in run_json(data, "--epochs", 2, "--hash", *more, pipeline=pipeline)["epochs"]]


def test_run_reports_what_it_promises(photos: Path) -> None:
    report = run_json(photos, "--epochs", 2, "--hash", "--step-ms", 1)
    promised = {"samples", "seconds", "samples_per_s", "first_batch_s", "busy_share", "bound_by", "rss_bytes"}
    assert promised | {"ops", "epochs"} <= report.keys()
    assert report["samples"] == 46
    assert [(epoch["epoch"], epoch["samples"]) for epoch in report["epochs"]] == [(0, 23), (1, 23)]
    assert all(epoch.keys() >= {"epoch", "samples", "seconds", "stream_hash", "set_hash"} for epoch in report["epochs"])
    assert next(iter(report["ops"])).startswith("decode+random_resized_crop")
    assert all(op.keys() >= {"seconds", "calls"} for op in report["ops"].values())
    assert 0 < report["busy_share"] <= 1


@pytest.mark.parametrize("jobs", [1, 2])
def test_run_counts_by_epoch(photos: Path, jobs: int) -> None:
    words = (
        "--jobs",
        jobs,
        "--epochs",
        3,
        "--cache",
        "8MiB",
        "--cache-cut",
        "decode",
        "--link",
        "1GB/s",
        "--step-ms",
        1,
    )
    report = run_json(photos, *words)
    epochs = report["epochs"]
    looked_up = sum(epoch["hits"] + epoch["misses"] for epoch in epochs)
    assert 3 * 23 * jobs <= looked_up <= report["cache"]["hits"] + report["cache"]["misses"]  # threads are ahead
    assert epochs[0]["misses"] >= 23 and sum(epoch["hits"] for epoch in epochs[1:]) > 0
    read = sum(path.stat().st_size for path in photos.rglob("*.jpg"))
    assert read <= report["wire_bytes"] and 0 < epochs[0]["wire_bytes"] <= report["wire_bytes"]
    busy = sum(epoch["busy_s"] for epoch in epochs)
    assert busy == pytest.approx(report["busy_share"] * report["seconds"])
    assert sum(epoch["cpu_s"] for epoch in epochs) > 0


@pytest.mark.parametrize(
    "more", [["--threads", 2], ["--threads", 7], ["--no-fuse"], ["--memory-limit", "1MiB"], ["--step-ms", 1]], ids=str
)
def test_one_stream_however_it_is_made(photos: Path, more: list[object]) -> None:
    assert hashes(photos, *more) == hashes(photos, "--threads", 1)


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_ready_delivers_the_same_set(photos: Path, threads: int) -> None:
    expected = hashes(photos, key="set_hash")
    assert hashes(photos, "--order", "ready", "--threads", threads, key="set_hash") == expected
    assert len({*expected, *hashes(photos)}) == 4  # epochs differ, and so do the two kinds


def test_what_is_asked_for_shows_in_the_hash(photos: Path) -> None:
    streams = {
        tuple(hashes(photos, *more, pipeline=pipeline))
        for more, pipeline in [
            ([], TEXT),
            (["--no-shuffle"], TEXT),
            (["--drop-last"], TEXT),
            ([], TEXT.replace("16", "17")),
            (["--on-error", "skip"], TEXT.replace("0.2", "0.3")),
        ]
    }
    assert len(streams) == 5


class Hash128(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


def test_the_hash_is_of_what_python_delivers(photos: Path) -> None:
    """XXH3 over the hashes of the samples: each of its id, then its fields."""
    name = ctypes.util.find_library("xxhash")
    if name is None:
        pytest.skip("no libxxhash here: tools/bootstrap.sh installs it")
    xxh3 = ctypes.CDLL(name).XXH3_128bits
    xxh3.restype, xxh3.argtypes = Hash128, [ctypes.c_char_p, ctypes.c_size_t]

    def digest(content: bytes) -> Hash128:
        return xxh3(content, len(content))

    ds = cw.folder(photos).apply(TEXT)
    feed = cw.DataLoader(ds, batch_size=5, shuffle=True, seed=3, output="numpy")
    expected = []
    for _ in range(2):
        stream = b""
        for batch in feed:
            for k, id in enumerate(batch.ids):
                fields = b"".join(np.ascontiguousarray(field[k]).tobytes() for field in batch)
                one = digest(struct.pack("<q", id) + fields)
                stream += struct.pack("<QQ", one.low, one.high)
        total = digest(stream)
        expected.append(f"{total.high:016x}{total.low:016x}")
    assert hashes(photos) == expected


def test_pipelines_from_toml_and_presets(photos: Path, tmp_path: Path) -> None:
    (tmp_path / "text.toml").write_text(f'pipeline = "{TEXT}"\n')
    (tmp_path / "ops.toml").write_text(
        '[[op]]\nname = "decode"\n[[op]]\nname = "random_resized_crop"\nsize = 16\n'
        '[[op]]\nname = "random_horizontal_flip"\n[[op]]\nname = "to_tensor"\n'
        '[[op]]\nname = "normalize"\nmean = [0.5]\nstd = [0.2]\n'
    )
    expected = hashes(photos)
    assert hashes(photos, pipeline=tmp_path / "text.toml") == hashes(photos, pipeline=tmp_path / "ops.toml") == expected
    for name, text in _core.presets().items():
        (tmp_path / "preset.toml").write_text(f'pipeline = "{name}"\n')
        expected = hashes(photos, pipeline=text)
        assert hashes(photos, pipeline=name) == hashes(photos, pipeline=tmp_path / "preset.toml") == expected


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("pipeline = ", "bad.toml: line 1"),
        ("x = 1\n", r"bad.toml: needs pipeline = .* or a list of \[\[op\]\]"),
        ("[[op]]\nsize = 3\n", r"bad.toml: each \[\[op\]\] needs a name"),
        ('[[op]]\nname = "decode"\nexif = "up"\n', "decode: exif must be true or false"),
        ('[[op]]\nname = "decode"\n[[op]]\nname = "pad"\npadding = ["a"]\n', "padding must be a list of numbers"),
        ("[[op]]\nname = 'decod'\n", "unknown op 'decod'.*decode"),
    ],
)
def test_toml_that_is_refused(toml: str, message: str, photos: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text(toml)
    result = command("run", "--data", photos, "--pipeline", tmp_path / "bad.toml")
    assert (result.returncode, result.stdout) == (2, "")
    assert re.search(message, result.stderr)


def test_data_of_every_kind(photos: Path, tmp_path: Path) -> None:
    flat, table = tmp_path / "flat", tmp_path / "table.csv"
    flat.mkdir()
    paths = [save(flat / f"{k}.png", noise(9, 9, k)) for k in range(3)]
    table.write_text("path,label\n" + "".join(f"{path},{k}\n" for k, path in enumerate(paths)))
    for data, samples in ((photos, 23), (flat, 3), (table, 3)):
        assert run_json(data, pipeline="decode | resize([8, 8])")["samples"] == samples


def status(*args: object) -> int:
    return command(*args).returncode


def test_exit_status_and_where_messages_go(photos: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "x.jpg").write_text("no image")
    run = ["run", "--data", photos, "--pipeline", TEXT]
    assert status(*run) == 0
    failed = command("run", "--data", broken, "--pipeline", TEXT)
    assert failed.returncode == 1 and "x.jpg" in failed.stderr and failed.stdout == ""
    for wrong in (
        [],
        ["fly"],
        ["run"],
        [*run, "--bach", 3],
        [*run, "--batch", "many"],
        [*run, "--batch", 0],
        [*run, "--epochs", 0],
        [*run, "--threads", 0],
        [*run, "--order", "fast"],
        [*run, "--memory-limit", "lots"],
        [*run, "--max-errors", "few"],
        ["run", "--data", photos, "--pipeline", "decode | fly"],
        ["run", "--data", photos, "--pipeline", "nowhere.toml"],
        ["run", "--data", tmp_path / "nowhere", "--pipeline", TEXT],
        ["ops", "fly"],
    ):
        result = command(*wrong)
        assert (result.returncode, result.stdout) == (2, ""), wrong
        assert result.stderr, wrong


def test_bad_samples_can_be_skipped(tmp_path: Path) -> None:
    for k in range(6):
        save(tmp_path / f"{k}.png", noise(9, 9, k))
    (tmp_path / "3.png").write_text("no image")
    report = run_json(tmp_path, "--on-error", "skip", "--max-errors", "1")
    assert report["samples"] == 5 and [entry["id"] for entry in report["skipped"]] == [3]
    run = ["run", "--data", tmp_path, "--pipeline", TEXT, "--on-error", "skip", "--max-errors"]
    assert [status(*run, most) for most in ("0", "0.1", "0.5")] == [1, 1, 0]


@pytest.mark.parametrize("verb", [[], ["run"], ["profile"], ["ops"], ["doctor"]])
def test_help(verb: list[str]) -> None:
    result = command(*verb, "--help")
    assert (result.returncode, result.stderr) == (0, "") and "--help" in result.stdout


def test_ops_is_the_table() -> None:
    report = json.loads(command("ops", "--json").stdout)
    assert [(op["name"], op["draws"]) for op in report["ops"]] == [(op["name"], op["draws"]) for op in _core.ops()]
    assert all(op.keys() >= {"name", "domain", "draws", "params"} for op in report["ops"])
    assert report["presets"] == _core.presets()
    assert json.loads(command("ops", "resize", "--json").stdout)["name"] == "resize"
    for name in ("decode", "to_dtype", "imagenet-val"):
        assert name in command("ops").stdout


def test_doctor() -> None:
    report = json.loads(command("doctor", "--json").stdout)
    assert report.keys() >= {"cores", "quota", "memory_bytes", "simd", "codecs", "cuda", "torch", "problems"}
    assert report["cores"] == len(os.sched_getaffinity(0))
    assert all(problem.keys() == {"what", "fix"} for problem in report["problems"])
    assert "cores" in command("doctor").stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_it(photos: Path, number: signal.Signals) -> None:
    arguments = ["run", "--data", photos, "--pipeline", TEXT, "--epochs", "1000000", "--threads", "3", "--json"]
    process = subprocess.Popen([COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert until(lambda: threads_of(process.pid) == 4)
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (130, "") and "interrupted" in err


def test_progress_is_for_people_only(photos: Path) -> None:
    arguments = [COMMAND, "run", "--data", photos, "--pipeline", TEXT]
    assert subprocess.run(arguments, capture_output=True, timeout=60).stderr == b""
    person, terminal = pty.openpty()
    result = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=terminal, text=True, timeout=60)
    os.close(terminal)
    shown = os.read(person, 65536)
    os.close(person)
    assert b"epoch 1/1 [" in shown
    assert "epoch 1/1" not in result.stdout and "23 samples in" in result.stdout
