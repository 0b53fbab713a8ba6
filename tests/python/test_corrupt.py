# SPDX-License-Identifier: Apache-2.0
"""tools/corrupt.py: a small run that must find nothing, and proof that it would find something."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from helpers import REPO, noise, save
from image_files import KINDS, write


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(REPO / "tools"))
    import corrupt

    return corrupt


@pytest.mark.patient(300)
def test_damaged_files_have_pillows_verdict_and_pixels(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images, report = tmp_path / "images", tmp_path / "report.json"
    images.mkdir()
    for name in KINDS:
        write(images, name)
    save(images / "large.jpg", noise(700, 900, block=3), quality=95)  # several of Pillow's blocks
    monkeypatch.setattr(sys, "argv", ["corrupt.py", str(images), "--corruptions", "60", "--json", str(report)])
    assert tool.main() == 0
    result = json.loads(report.read_text())
    assert result["accepted"] + result["refused"] == 61 * (len(KINDS) + 1)
    assert result["accepted"] > 500 and result["refused"] > 500
    assert len(result["kinds"]) == 1 + len({kind.__name__ for kind in tool.KINDS})


def test_damage_depends_on_name_and_seed_alone(tool: ModuleType, tmp_path: Path) -> None:
    data = write(tmp_path, "420_0.jpg").read_bytes()
    made = [tool.corrupted(data, "a", seed) for seed in range(50)]
    assert made == [tool.corrupted(data, "a", seed) for seed in range(50)]
    assert made != [tool.corrupted(data, "b", seed) for seed in range(50)]
    assert sum(damaged != data for _, damaged in made) > 45


def test_what_no_decision_covers_is_a_difference(tool: ModuleType) -> None:
    jpeg, png = b"\xff\xd8\xff\xe0", b"\x89PNG\r\n\x1a\n"
    black, white = (np.full((1, 1, 3), value, np.uint8) for value in (0, 255))
    accepts = tool.Verdict(black, "1x1", "JPEG")
    refuses = tool.Verdict(None, "damaged", "JPEG")
    assert not tool.agree(accepts, tool.Verdict(white, "1x1")) and not tool.agree(accepts, refuses)
    assert tool.agree(accepts, accepts) and tool.agree(refuses, tool.Verdict(None, "for another reason"))
    for ours, theirs in ((accepts, tool.Verdict(white, "1x1")), (accepts, refuses), (refuses, accepts)):
        assert tool.decision(jpeg + bytes(50), ours, theirs) is None
        assert tool.decision(png + bytes(50), ours, theirs) is None
    assert tool.decision(jpeg + b"\xff\xc2", accepts, tool.Verdict(white, "1x1")) == "D1"
    assert tool.decision(jpeg + b"\xff\xda" + bytes(30) + b"\xff\xc0\0", accepts, refuses) == "D2"
    assert tool.decision(b"II*\0", refuses, tool.Verdict(black, "1x1", "TIFF")) == "D10"
