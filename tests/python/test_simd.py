# SPDX-License-Identifier: Apache-2.0
"""One stream of bytes, whatever instructions, cuts, indexes and fusions it is made by."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from helpers import command, noise, run_python, save
from image_files import KINDS, write

from cutwater import _core

TRAIN = "decode | random_resized_crop(32) | random_horizontal_flip | to_tensor | normalize([0.5], [0.2])"
PIPELINES = [
    TRAIN,
    "decode(exif=True) | resize(40) | center_crop(33) | to_tensor",
    "decode | random_crop(21, padding=3) | to_tensor",
    "decode | resize([37, 29], bicubic)",
]


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """JPEGs of all layouts that Pillow writes, turned ones among them, and some other files."""
    root = tmp_path_factory.mktemp("pictures")
    (root / "a").mkdir()
    for name in [*(kind for kind in KINDS if kind.endswith(".jpg")), "rgb.png", "lossy.webp", "p.gif"]:
        write(root / "a", name)
    for k in range(9):
        exif = bytes.fromhex("45786966 0000 4d4d002a00000008 0001 0112 0003 00000001") + bytes(
            [0, k % 8 + 1, 0, 0, 0, 0, 0, 0]
        )
        pixels = noise(90 + 13 * k, 260 - 19 * k, seed=k, block=1 + k)
        save(root / "a" / f"turned{k}.jpg", pixels, subsampling=k % 3, exif=exif, quality=50 + 5 * k)
    return root


def hashes(data: Path, *more: object, pipeline: str = TRAIN, simd: str | None = None) -> list[str]:
    env = (
        {**os.environ, "CUTWATER_SIMD": simd} if simd else {k: v for k, v in os.environ.items() if k != "CUTWATER_SIMD"}
    )
    arguments = ("--batch", 7, "--seed", 3, "--epochs", 2, "--hash", "--json", *more)
    ran = command("run", "--data", data, "--pipeline", pipeline, *arguments, env=env)
    assert ran.returncode == 0, ran.stderr
    report = json.loads(ran.stdout)
    assert report["samples"] == 2 * len(list(data.rglob("*.*")))
    return [epoch["stream_hash"] for epoch in report["epochs"]]


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_every_level_gives_the_same_stream(pipeline: str, pictures: Path) -> None:
    expected = hashes(pictures, pipeline=pipeline)
    levels = _core.simd_levels()
    assert levels[-1] == "scalar" and len(set(levels)) == len(levels)
    for level in levels:
        assert hashes(pictures, pipeline=pipeline, simd=level) == expected, level


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_every_way_gives_the_same_stream(pipeline: str, pictures: Path, tmp_path: Path) -> None:
    expected = hashes(pictures, pipeline=pipeline)
    kept = tmp_path / "hints"
    for more in [
        ("--index", "off"),
        ("--index", kept),
        ("--index", kept),
        ("--hold", "entropy"),
        ("--hold", "decode"),
        ("--hold", "entropy", "--no-fuse"),
        ("--no-fuse",),
        ("--no-fuse", "--index", "off"),
        ("--threads", 1, "--index", "memory"),
    ]:
        assert hashes(pictures, *more, pipeline=pipeline) == expected, more
    assert kept.exists()


@pytest.mark.parametrize("level", ["avx1024", "", "AVX2", "scalar "])
def test_unknown_levels_are_refused_with_those_there_are(level: str, pictures: Path) -> None:
    env = {**os.environ, "CUTWATER_SIMD": level}
    known = ", ".join(_core.simd_levels())
    expected = f"simd must be one of {known} on this processor, got '{level}'"
    ran = command("run", "--data", pictures, "--pipeline", TRAIN, env=env)
    assert ran.returncode != 0 and expected in ran.stderr
    imported = run_python("import cutwater", env=env)
    assert imported.returncode != 0 and expected in imported.stderr


def test_python_uses_the_level_of_the_environment(pictures: Path) -> None:
    code = """if True:
        import hashlib, sys
        import cutwater as cw
        ds = cw.folder(sys.argv[1]).decode().random_resized_crop(19).to_tensor()
        batches = cw.DataLoader(ds, batch_size=5, output="numpy")
        print(hashlib.sha1(b"".join(batch["image"].tobytes() for batch in batches)).hexdigest())
    """
    results = {
        run_python(code, pictures, env={**os.environ, "CUTWATER_SIMD": level}).stdout for level in _core.simd_levels()
    }
    assert len(results) == 1 and results != {""}
