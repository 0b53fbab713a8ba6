# SPDX-License-Identifier: Apache-2.0
"""The documents are run: what they show works, what they link to exists."""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMAND = ROOT / "build/bin/cutwater"

DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("src/**/*.md")])
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```\s*$", re.M | re.S)
LINK = re.compile(r"!?\[[^\]]*\]\(([^()\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.M)


@dataclass
class Block:
    language: str
    text: str
    line: int  # of its first line of text


def blocks(document: pathlib.Path, *languages: str) -> list[Block]:
    text = document.read_text()
    return [
        Block(match[1], match[2], text.count("\n", 0, match.start(2)) + 1)
        for match in FENCE.finditer(text)
        if match[1] in languages
    ]


def name(document: pathlib.Path) -> str:
    return str(document.relative_to(ROOT))


def of(*languages: str) -> list[pathlib.Path]:
    return [document for document in DOCUMENTS if blocks(document, *languages)]


def execute(code: str, document: pathlib.Path, line: int, namespace: dict[str, object]) -> None:
    """Runs Python so that a traceback shows the document and its line."""
    exec(compile("\n" * (line - 1) + code, str(document), "exec"), namespace)


@pytest.fixture
def scene(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A folder with what the documents speak of: train/ and val/, each with cats and dogs."""
    rng = np.random.default_rng(1)
    for split, count in (("train", 40), ("val", 10)):
        for kind in ("cat", "dog"):
            folder = tmp_path / split / kind
            folder.mkdir(parents=True)
            for i in range(count):
                width, height = (int(side) for side in rng.integers(256, 400, 2))
                coarse = Image.fromarray(rng.integers(0, 256, (9, 9, 3), np.uint8))
                coarse.resize((width, height), Image.Resampling.BICUBIC).save(folder / f"{i:03d}.jpg", quality=90)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path


@contextlib.contextmanager
def running(line: str, **how: Any) -> Iterator[None]:
    """A command that ends with '&', from its first word on stderr until the document ends."""
    words = ["bash", "-c", f"exec {line.rstrip(' &')}"]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **how) as process:
        assert process.stderr and process.stderr.readline(), f"{line}: ended"
        yield
        process.terminate()


@pytest.mark.parametrize("document", of("python", "bash", "console"), ids=name)
def test_blocks_run(document: pathlib.Path, scene: pathlib.Path) -> None:
    """Python blocks in order, in one namespace; lines that call the command between them."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    path = f"{COMMAND.parent}{os.pathsep}{os.environ['PATH']}"
    how: dict[str, Any] = {"cwd": scene, "env": {**os.environ, "PATH": path}}
    with contextlib.ExitStack() as background:
        for block in blocks(document, "python", "bash", "console"):
            if block.language == "python":
                execute(block.text, document, block.line, namespace)
                continue
            for offset, line in enumerate(block.text.splitlines()):
                called = re.match(r"(?:\$ )?(?:build/bin/)?(cutwater .*)", line)
                if not called:
                    continue
                if called[1].endswith("&"):
                    background.enter_context(running(called[1], **how))
                    continue
                run = subprocess.run(["bash", "-c", called[1]], capture_output=True, text=True, timeout=120, **how)
                where = f"{name(document)}:{block.line + offset}: {line}"
                assert run.returncode == 0, f"{where}\n{run.stdout}{run.stderr}"


@pytest.mark.parametrize("document", of("diff"), ids=name)
@pytest.mark.parametrize("side", ["before", "after"])
def test_both_sides_of_a_diff_run(document: pathlib.Path, side: str, scene: pathlib.Path) -> None:
    keep = {"before": " -", "after": " +"}[side]
    for block in blocks(document, "diff"):
        lines = [line[1:] if line[:1] in keep else "" for line in block.text.splitlines()]
        execute("\n".join(lines), document, block.line, {"__name__": "__main__"})


@pytest.mark.parametrize("document", of("cpp"), ids=name)
def test_cpp_compiles(document: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Each C++ block is a whole file. What CONTRIBUTING.md adds to the table of ops is declared first."""
    table = tmp_path / "table.h"
    added = re.findall(r"constinit const OpDef (k\w+)", document.read_text())
    declarations = [f"extern const OpDef {op};" for op in added]
    lines = ['#include "ops/image/image_ops.h"', "namespace cutwater::image {", *declarations, "}"]
    table.write_text("\n".join(lines) + "\n")
    for block in blocks(document, "cpp"):
        file = tmp_path / "block.cc"
        file.write_text(f'#line {block.line} "{name(document)}"\n{block.text}')
        command = ["g++", "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion"]
        command += ["-Werror", f"-I{ROOT}/include", f"-I{ROOT}/src", "-include", str(table), str(file)]
        compiled = subprocess.run(command, capture_output=True, text=True)
        assert compiled.returncode == 0, compiled.stderr


def anchors(document: pathlib.Path) -> set[str]:
    """The names that GitHub gives to a document's headings."""
    text = FENCE.sub("", document.read_text())
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in HEADING.findall(text))
    return {heading.replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_links_lead_somewhere(document: pathlib.Path) -> None:
    broken = []
    for target in LINK.findall(FENCE.sub("", document.read_text())):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (document.parent / path).resolve() if path else document
        if not file.exists() or not file.is_relative_to(ROOT):
            broken.append(target)
        elif anchor and anchor not in anchors(file):
            broken.append(f"{target} (no such heading)")
    assert not broken


def test_every_block_has_a_language_that_is_run_or_shown() -> None:
    known = {"python", "bash", "console", "cpp", "diff", "toml", "json", "text"}
    unknown = [
        f"{name(document)}: {match[1] or 'no language'}"
        for document in DOCUMENTS
        for match in FENCE.finditer(document.read_text())
        if match[1] not in known
    ]
    assert not unknown


def test_the_demo_makes_its_photographs(tmp_path: pathlib.Path) -> None:
    """Deterministic, in class folders, and more of them leave the first ones as they are."""
    for folder, count in (("few", "6"), ("more", "8")):
        command = [sys.executable, str(ROOT / "tools/make_photos.py"), str(tmp_path / folder), "--count", count]
        subprocess.run([*command, "--classes", "3"], check=True)
    few = sorted((tmp_path / "few").rglob("*.jpg"))
    assert len(few) == 6 and len({file.parent for file in few}) == 3
    for file in few:
        assert file.read_bytes() == (tmp_path / "more" / file.relative_to(tmp_path / "few")).read_bytes()
        with Image.open(file) as image:
            image.load()
            assert image.format == "JPEG" and min(image.size) > 50
