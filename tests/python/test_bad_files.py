# SPDX-License-Identifier: Apache-2.0
"""Things that are named like images and are none: refused with their name, and never waited for."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers import as_somebody, command, image_of, noise, run_python, save

import cutwater as cw


def refusal(path: Path) -> str:
    with pytest.raises(cw.SampleError) as caught:
        image_of(cw.files([path]).decode())
    assert caught.value.path == str(path) and str(path) in str(caught.value)
    return caught.value.reason


def test_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "x.jpg").touch()
    assert "empty" in refusal(tmp_path / "x.jpg")


def test_text(tmp_path: Path) -> None:
    (tmp_path / "x.jpg").write_text("no image")
    assert "not a JPEG, PNG, WebP, BMP or GIF" in refusal(tmp_path / "x.jpg")


@pytest.mark.parametrize("magic", [b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"BM", b"RIFF\x99\0\0\0WEBPVP8 "])
def test_a_head_without_a_body(magic: bytes, tmp_path: Path) -> None:
    for more in (b"", b"\0" * 20, b"\xff" * 200):
        (tmp_path / "x.jpg").write_bytes(magic + more)
        assert refusal(tmp_path / "x.jpg")


def test_a_folder(tmp_path: Path) -> None:
    (tmp_path / "x.jpg").mkdir()
    assert "folder" in refusal(tmp_path / "x.jpg")


def test_a_missing_file(tmp_path: Path) -> None:
    assert "No such file" in refusal(tmp_path / "x.jpg")


def test_a_link_to_itself(tmp_path: Path) -> None:
    (tmp_path / "x.jpg").symlink_to(tmp_path / "x.jpg")
    assert "link" in refusal(tmp_path / "x.jpg")


def test_a_named_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.jpg")
    code = "import sys, cutwater as cw\ntry: cw.files(sys.argv[1:]).get(0)\nexcept cw.SampleError as e: print(e)"
    assert "named pipe" in run_python(code, tmp_path / "x.jpg").stdout


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users can look into, unlike tmp_path."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


def test_a_file_without_permission(open_folder: Path) -> None:
    path = save(open_folder / "x.jpg", noise(9, 9))
    path.chmod(0)
    result = command("run", "--data", open_folder, "--pipeline", "decode", "--batch", 1, **as_somebody())
    assert result.returncode == 1
    assert str(path) in result.stderr and "Permission denied; check its permissions" in result.stderr
