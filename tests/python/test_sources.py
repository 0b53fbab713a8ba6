# SPDX-License-Identifier: Apache-2.0
"""folder() and files(): the listing of torchvision's ImageFolder, tables as people write them."""

from __future__ import annotations

import csv
import os
import random
from pathlib import Path
from typing import Any

import pytest
from helpers import image_of, noise, rgb, same, save
from torchvision.datasets import ImageFolder

import cutwater as cw

NAMES = ["a", "B", "a-b", "a b", "jack-o'-lantern", "Zürich", "日本", "x.y", "10", "9", "_", "ß", "%41", "é", "e\u0301"]
ENDINGS = [".jpg", ".JPG", ".jpeg", ".JPEG", ".png", ".PnG", ".bmp", ".webp", ".txt", ".jpg.bak", ""]


def as_listing(ds: cw.Dataset) -> tuple[list[str], list[tuple[str, int]]]:
    return ds.classes, [(ds.path(i), ds.label(i)) for i in range(len(ds))]


def random_tree(root: Path, rng: random.Random) -> Path:
    """Classes with nested folders, odd names, files that are no images, and links of both kinds."""
    elsewhere = root / "elsewhere"
    (elsewhere / "deep").mkdir(parents=True)
    (elsewhere / "deep" / "linked.png").touch()
    tree = root / "tree"
    for name in rng.sample(NAMES, 7):
        place = tree / name
        for _ in range(rng.randint(1, 4)):
            place.mkdir(parents=True, exist_ok=True)
            for k in range(rng.randint(0, 4)):
                (place / (rng.choice(NAMES) + str(k) + rng.choice(ENDINGS))).touch()
            place = place / rng.choice(NAMES)
        (tree / name / "there is one.jpg").touch()
        if rng.random() < 0.5:
            (tree / name / "link").symlink_to(elsewhere)
        if rng.random() < 0.5:
            (tree / name / "link.jpg").symlink_to(elsewhere / "deep" / "linked.png")
    (tree / "not a class.jpg").touch()
    return tree


@pytest.mark.parametrize("seed", range(25))
def test_folder_lists_what_image_folder_lists(seed: int, tmp_path: Path) -> None:
    tree = random_tree(tmp_path, random.Random(seed))
    theirs = ImageFolder(tree)
    ours = cw.folder(tree)
    assert as_listing(ours) == (theirs.classes, theirs.samples)
    assert [ours.label(i) for i in range(len(ours))] == theirs.targets


def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    """Linux allows any bytes; Python shows them as surrogates."""
    place = tmp_path / os.fsdecode(b"caf\xe9")
    place.mkdir()
    path = save(place / os.fsdecode(b"\xff.png"), noise(5, 6))
    theirs = ImageFolder(tmp_path)
    ours = cw.folder(tmp_path)
    assert same(image_of(ours.decode()), rgb(path))
    assert as_listing(ours) == (theirs.classes, theirs.samples)
    assert same(image_of(cw.files([path]).decode()), rgb(path))


def test_a_bad_file_whose_name_is_not_utf8_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"x\xff.png")).write_text("no image")
    with pytest.raises(cw.SampleError) as caught:
        cw.folder(tmp_path).decode().get(0)
    assert os.fsencode(caught.value.path).endswith(b"x\xff.png")


def test_a_class_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real" / "inner").mkdir(parents=True)
    (tmp_path / "real" / "inner" / "x.png").touch()
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "linked").symlink_to(tmp_path / "real")
    theirs = ImageFolder(tmp_path / "tree")
    assert as_listing(cw.folder(tmp_path / "tree")) == (theirs.classes, theirs.samples)


def test_a_link_back_to_its_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.png").touch()
    (tmp_path / "a" / "again").symlink_to(tmp_path)
    with pytest.raises(ValueError, match="a link leads back"):
        cw.folder(tmp_path)


def test_classes_without_images(tmp_path: Path) -> None:
    for name in ("full", "empty"):
        (tmp_path / name).mkdir()
    (tmp_path / "full" / "x.png").touch()
    with pytest.raises(FileNotFoundError, match=r"no image in the classes empty.*allow_empty=True"):
        cw.folder(tmp_path)
    theirs = ImageFolder(tmp_path, allow_empty=True)
    assert as_listing(cw.folder(tmp_path, allow_empty=True)) == (theirs.classes, theirs.samples)


def test_extensions_can_be_chosen(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    for name in ("x.foo", "y.FOO", "z.png"):
        (tmp_path / "a" / name).touch()
    listed = cw.folder(tmp_path, extensions=[".foo"])
    assert [Path(listed.path(i)).name for i in range(len(listed))] == ["x.foo", "y.FOO"]


def test_a_flat_folder_is_sorted_and_knows_gifs(tmp_path: Path) -> None:
    for name in ("b.jpg", "a.gif", "B.PNG", "ü.webp", "notes.txt"):
        (tmp_path / name).touch()
    ds = cw.folder(tmp_path)
    assert [Path(ds.path(i)).name for i in range(len(ds))] == ["B.PNG", "a.gif", "b.jpg", "ü.webp"]
    assert ds.classes == [] and Path(ds.path(-1)).name == "ü.webp"


@pytest.fixture
def images(tmp_path: Path) -> list[Path]:
    (tmp_path / "sub dir").mkdir()
    names = ["one.png", "sub dir/two, three.png", 'quo"te.png', "日本.png"]
    return [save(tmp_path / name, noise(5, 6, k)) for k, name in enumerate(names)]


def check(ds: cw.Dataset, images: list[Path], labels: list[int], classes: list[str]) -> None:
    assert [os.path.realpath(ds.path(i)) for i in range(len(ds))] == [os.path.realpath(path) for path in images]
    assert [ds.label(i) for i in range(len(ds))] == [ds.decode().get(i)["label"] for i in range(len(ds))] == labels
    assert ds.classes == classes
    assert all(same(image_of(ds.decode(), i), rgb(path)) for i, path in enumerate(images))


def test_lists_of_files(images: list[Path]) -> None:
    check(cw.files(images, labels=[3, 1, 3, -2]), images, [3, 1, 3, -2], [])
    check(
        cw.files(tuple(map(str, images)), labels=["dog", "cat", "dog", "eel"]),
        images,
        [1, 0, 1, 2],
        ["cat", "dog", "eel"],
    )
    check(cw.files([*images[:1]] * 3, labels=[0, 1, 2]), [*images[:1]] * 3, [0, 1, 2], [])
    bare = cw.files(images)
    assert len(bare) == 4 and bare.get(0).keys() == {"image"}
    assert bytes(bare.get(2)["image"]) == images[2].read_bytes()


@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize(("ending", "dialect"), [("csv", "excel"), ("csv", "unix"), ("tsv", "excel-tab")])
@pytest.mark.parametrize(
    ("labels", "numbers", "classes"),
    [(["7", "0", "7", "-1"], [7, 0, 7, -1], []), (["b", "a", "10", "b"], [2, 1, 0, 2], ["10", "a", "b"])],
)
def test_tables(
    images: list[Path],
    tmp_path: Path,
    ending: str,
    dialect: str,
    absolute: bool,
    labels: Any,
    numbers: Any,
    classes: Any,
) -> None:
    table = tmp_path / f"table.{ending}"
    with table.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, dialect)
        writer.writerow(["weight", "label", "path"])
        for path, label in zip(images, labels, strict=True):
            writer.writerow(["0.5", label, path if absolute else path.relative_to(tmp_path)])
    check(cw.files(table), images, numbers, classes)


def test_tables_from_spreadsheets(images: list[Path], tmp_path: Path) -> None:
    table = tmp_path / "excel.csv"
    table.write_bytes(b"\xef\xbb\xbfpath\r\none.png\r\n\r\n" + "日本.png".encode() + b"\r\n")
    ds = cw.files(table)
    assert [Path(ds.path(i)).name for i in range(len(ds))] == ["one.png", "日本.png"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty; the first line must be a header with a column 'path'"),
        ("file,label\nx,1\n", "no column 'path'; its columns are: file, label"),
        ("path,label,path\n", "column 'path' twice"),
        ("path,label\nx.png\n", "line 2: has 1 columns, the header has 2"),
        ("path,label\nx.png,\n", "line 2: column 'label' is empty"),
        ("path,label\n\n,3\n", "line 3: column 'path' is empty"),
        ('path\n"x.png\n', "line 2: column 1: a quoted field is not closed"),
        ('path\nx"y.png\n', "quote"),
    ],
)
def test_tables_that_are_refused_name_the_line(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(ValueError, match=message) as caught:
        cw.files(tmp_path / "t.csv")
    assert str(tmp_path / "t.csv") in str(caught.value)


def test_the_same_files_elsewhere_are_the_same_data(tmp_path: Path) -> None:
    for place in ("here", "there"):
        (tmp_path / place / "a").mkdir(parents=True)
        save(tmp_path / place / "a" / "x.png", noise(5, 6))
    here, there = cw.folder(tmp_path / "here"), cw.folder(tmp_path / "there")
    assert here.fingerprint == there.fingerprint
    save(tmp_path / "there" / "a" / "y.png", noise(5, 6))
    assert cw.folder(tmp_path / "there").fingerprint != here.fingerprint
