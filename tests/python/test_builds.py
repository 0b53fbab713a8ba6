# SPDX-License-Identifier: Apache-2.0
"""What ships: the same stream from g++ and from clang, and a plain `pip install .` that needs no torch."""

import json
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# dev is by clang.
COMMANDS = {preset: ROOT / "build" / preset / "bin" / "cutwater" for preset in ("release", "dev")}


def make_photos(folder):
    subprocess.run(
        [sys.executable, ROOT / "tools/make_photos.py", folder, "--count", "24", "--classes", "3"], check=True
    )
    return folder


def hashes(command, data):
    job = ["--pipeline", "imagenet-train", "--batch", "5", "--epochs", "2", "--seed", "3", "--hash", "--json"]
    run = subprocess.run([command, "run", "--data", data, *job], capture_output=True, text=True, check=True)
    return [(epoch["stream_hash"], epoch["set_hash"]) for epoch in json.loads(run.stdout)["epochs"]]


def test_every_compiler_gives_the_same_stream(tmp_path):
    built = {preset: command for preset, command in COMMANDS.items() if command.exists()}
    if len(built) < 2:
        pytest.skip("only one preset is built; `make test` builds them all")
    data = make_photos(tmp_path / "photos")
    streams = {preset: hashes(command, data) for preset, command in built.items()}
    assert len({tuple(stream) for stream in streams.values()}) == 1, streams


@pytest.mark.patient(900)  # compiles everything anew
def test_pip_install_alone(tmp_path):
    data = make_photos(tmp_path / "photos")
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    subprocess.run([venv / "bin/pip", "install", "--quiet", "--disable-pip-version-check", ROOT], check=True)
    program = """
import sys
import numpy
import cutwater as cw
loader = cw.DataLoader(cw.folder(sys.argv[1]).apply("imagenet-train"), batch_size=8, shuffle=True, num_workers=2)
for images, labels in loader:
    assert type(images) is numpy.ndarray and images.shape[1:] == (3, 224, 224) and images.dtype == numpy.float32
    assert labels.dtype == numpy.int64
assert "torch" not in sys.modules
print(cw.__version__, loader.stats()["samples"])
"""
    run = subprocess.run(
        [venv / "bin/python", "-c", program, data], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    version = subprocess.run([venv / "bin/cutwater", "--version"], capture_output=True, text=True, check=True)
    assert run.stdout.split() == [version.stdout.strip(), "24"]
