# SPDX-License-Identifier: Apache-2.0
"""Stores: the same stream from every cut and codec, and files that other tools read."""

from __future__ import annotations

import gzip
import importlib
import io
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import command, noise, rgb, same, save, stream

import cutwater as cw

CODECS = ["none", "lz4", "zstd:3", "shuffle-zstd:1", "delta-zstd:1"]
PIPELINES = [
    "decode | random_resized_crop(12) | random_horizontal_flip | to_tensor",
    "decode | resize(20) | center_crop(16) | to_tensor(channels_last=True) | normalize(0.5, 0.25)",
    "decode | resize(18) | center_crop(16) | to_dtype('float16', scale=True)",
]


def loader(ds: cw.Dataset, **options: Any) -> cw.DataLoader:
    return cw.DataLoader(ds, **{"batch_size": 5, "shuffle": True, "seed": 3, "num_workers": 2} | options)


def stable(ds: cw.Dataset) -> list[str]:
    return [cut["name"] for cut in ds.cuts() if cut["stable"]]


@pytest.fixture(scope="module")
def damaged(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The photos, three of which are none."""
    root = tmp_path_factory.mktemp("damaged") / "data"
    shutil.copytree(photos, root)
    files = sorted(root.rglob("*.jpg"))
    files[0].write_bytes(b"")
    files[7].write_bytes(files[7].read_bytes()[:300])
    files[22].write_bytes(b"not an image")
    return root


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_every_cut_and_codec_gives_the_same_stream(photos: Path, tmp_path: Path, pipeline: str, codec: str) -> None:
    ds = cw.folder(photos).apply(pipeline)
    expected = stream(loader(ds), 2)
    for cut in stable(ds):
        made = cw.materialize(ds, cut, codec, out=tmp_path / cut)
        assert made["samples"] == len(ds) and made["bad"] == [] and made["cut_name"] == cut and made["codec"] == codec
        store = cw.store(tmp_path / cut)
        prepared = store.apply(pipeline)
        assert prepared.fingerprint == ds.fingerprint
        assert stream(loader(prepared), 2) == expected
        assert stream(loader(prepared, num_workers=1, reads_in_flight=0, memory_limit="1MiB"), 2) == expected


@pytest.mark.parametrize("policy", ["skip", "substitute"])
def test_bad_samples_are_those_of_the_data(damaged: Path, tmp_path: Path, policy: str) -> None:
    ds = cw.folder(damaged).apply(PIPELINES[0])
    plain = loader(ds, on_error=policy)
    expected, bad = stream(plain, 2), plain.stats()["skipped" if policy == "skip" else "substituted"]
    assert len(bad) == 3
    for cut in stable(ds):
        made = cw.materialize(ds, cut, out=tmp_path / cut)
        prepared = loader(cw.store(tmp_path / cut).apply(PIPELINES[0]), on_error=policy)
        assert stream(prepared, 2) == expected
        if cut == "decode":
            assert made["bad"] == bad and made["samples"] == 20
            assert prepared.stats()["skipped" if policy == "skip" else "substituted"] == bad
    with pytest.raises(cw.SampleError) as original:
        ds.get(7)
    with pytest.raises(cw.SampleError) as kept:
        cw.store(tmp_path / "decode").get(7)
    assert str(kept.value) == str(original.value) and kept.value.op == "decode"


def test_the_data_set_of_a_store(photos: Path, tmp_path: Path) -> None:
    ds = cw.folder(photos).apply(PIPELINES[0])
    cw.materialize(ds, "entropy", "zstd", out=tmp_path / "s")
    store = cw.store(tmp_path / "s")
    assert str(store.pipeline) == "decode" and store.source.cut == 1
    assert (len(store), store.classes) == (len(ds), ds.classes)
    assert [store.label(i) for i in range(23)] == [ds.label(i) for i in range(23)]
    assert store.path(22).endswith("/s/shard-000011.tar/000000022.npy.zst")
    assert same(store.get(4)["image"], rgb(ds.path(4)))
    longer = store.random_resized_crop(12).random_horizontal_flip().to_tensor()
    assert longer.pipeline == ds.pipeline and longer.fingerprint == ds.fingerprint
    for i in range(0, 23, 5):
        assert longer.draws(i, epoch=2, seed=9) == ds.draws(i, epoch=2, seed=9)
        assert same(longer.run(i, "to_tensor", epoch=2)["image"], ds.get(i, epoch=2)["image"])
        assert same(longer.run(i, "entropy")["image"], ds.run(i, "entropy")["image"])
    with pytest.raises(cw.InvalidArgument, match="prepared up to cut 'entropy' and cannot be run up to 'source'"):
        longer.run(0, 0)
    with pytest.raises(cw.StaleStore, match="prepared by 'decode', which is not how 'decode\\(max_pixels=1000\\)"):
        store.apply("decode(max_pixels=1000) | to_tensor")
    with pytest.raises(cw.StaleStore, match="another pipeline, 'decode'"):
        cw.DataLoader(cw.Dataset(store.source, cw.parse("decode(max_pixels=1000)")), batch_size=1)


def test_a_state_of_the_files_is_one_of_the_store(photos: Path, tmp_path: Path) -> None:
    ds = cw.folder(photos).apply(PIPELINES[0])
    cw.materialize(ds, "decode", out=tmp_path / "s")
    first, second = loader(ds), loader(cw.store(tmp_path / "s").apply(PIPELINES[0]))
    batches = iter(first)
    next(batches)
    second.load_state_dict(first.state_dict())
    assert stream(second) == stream(loader(ds))[1:]


def test_what_is_refused(photos: Path, tmp_path: Path) -> None:
    ds = cw.folder(photos).apply(PIPELINES[0])
    with pytest.raises(cw.InvalidArgument, match=r"past the frontier, cut 2 \('decode'\)"):
        cw.materialize(ds, "to_tensor", out=tmp_path / "s")
    with pytest.raises(cw.InvalidArgument, match="codec 'zip' is not known"):
        cw.materialize(ds, "decode", "zip", out=tmp_path / "s")
    with pytest.raises(cw.InvalidArgument, match="something else in it"):
        cw.materialize(ds, "decode", out=photos)
    with pytest.raises(cw.NotFound, match="there is no store here"):
        cw.store(photos)
    with pytest.raises(cw.NotFound):
        cw.store(tmp_path / "nowhere")
    assert not (tmp_path / "s").exists()


def test_a_changed_file_makes_a_store_stale(photos: Path, tmp_path: Path) -> None:
    shutil.copytree(photos, tmp_path / "data")
    ds = cw.folder(tmp_path / "data").apply(PIPELINES[0])
    cw.materialize(ds, "decode", out=tmp_path / "s")
    assert cw.materialize(ds, "decode", out=tmp_path / "s")["resumed"] == 23
    file = Path(ds.path(11))
    os.utime(file, ns=(0, file.stat().st_mtime_ns + 1))
    with pytest.raises(cw.StaleStore, match="sizes and times of its files"):
        cw.materialize(ds, "decode", out=tmp_path / "s")
    with pytest.raises(cw.StaleStore, match="codec: there 'none', now 'lz4'"):
        cw.materialize(cw.folder(photos).apply(PIPELINES[0]), "decode", "lz4", out=tmp_path / "s")


def members(store: Path) -> Iterator[tuple[str, bytes]]:
    for shard in sorted(store.glob("shard-*.tar")):
        with tarfile.open(shard) as archive:
            for info in archive:
                assert (info.mtime, info.uid, info.gid, info.mode) == (0, 0, 0, 0o644)
                file = archive.extractfile(info)
                assert file is not None
                yield info.name, file.read()


def test_numpy_reads_the_index_and_the_members(damaged: Path, tmp_path: Path) -> None:
    ds = cw.folder(damaged).apply(PIPELINES[1])
    cut = "normalize"
    cw.materialize(ds, cut, out=tmp_path / "s")
    index = np.load(tmp_path / "s" / "index.npy", allow_pickle=False)
    meta = json.loads((tmp_path / "s" / "meta.json").read_text())
    bad = [failure["id"] for failure in meta["bad"]]
    assert len(bad) == 3 and list(np.flatnonzero(index["stored"] == 0)) == bad
    image = index["fields"]["image"]
    files = dict(members(tmp_path / "s"))
    assert len(files) == 2 * 20
    for i in set(range(23)) - set(bad):
        expected = ds.get(i)["image"]
        shard = (tmp_path / "s" / meta["shards"][index["shard"][i]]["name"]).read_bytes()
        payload = shard[image["offset"][i] : image["offset"][i] + image["size"][i]]
        assert image["offset"][i] % 64 == 0 and tuple(image["shape"][i][: image["rank"][i]]) == expected.shape
        # Channels are last in memory, and so they are in the file.
        assert same(np.load(io.BytesIO(files[f"{i:09}.npy"])), expected.transpose(1, 2, 0))
        assert payload == files[f"{i:09}.npy"][-len(payload) :]
        assert int(files[f"{i:09}.cls"]) == index["label"][i] == ds.label(i)


@pytest.mark.parametrize("codec, tool, suffix", [("zstd:3", "zstd", "zst"), ("lz4", "lz4", "lz4")])
def test_tools_unpack_the_members(photos: Path, tmp_path: Path, codec: str, tool: str, suffix: str) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"no {tool}")
    ds = cw.folder(photos).apply(PIPELINES[0])
    cw.materialize(ds, "decode", codec, out=tmp_path / "s")
    files = dict(members(tmp_path / "s"))
    for i in (0, 9, 22):
        packed = files[f"{i:09}.npy.{suffix}"]
        plain = subprocess.run([tool, "-dc"], input=packed, stdout=subprocess.PIPE, check=True).stdout
        assert same(np.load(io.BytesIO(plain)), rgb(ds.path(i)))


def test_webdataset_reads_our_shards(photos: Path, tmp_path: Path) -> None:
    wds = importlib.import_module("webdataset")
    ds = cw.folder(photos).apply(PIPELINES[1])
    for cut, extension in (("source", "jpg"), ("center_crop", "npy")):
        cw.materialize(ds, cut, out=tmp_path / cut)
        shards = sorted(map(str, (tmp_path / cut).glob("*.tar")))
        decoded = wds.WebDataset(shards, shardshuffle=False).decode("rgb8")
        samples = list(decoded.to_tuple("__key__", extension, "cls"))
        assert [int(key) for key, _, _ in samples] == list(range(23))
        assert [label for _, _, label in samples] == [ds.label(i) for i in range(23)]
        for i, (_, image, _) in enumerate(samples):
            assert same(image, ds.run(i, "decode" if cut == "source" else cut)["image"])


def test_we_read_shards_of_webdataset(photos: Path, tmp_path: Path) -> None:
    wds = importlib.import_module("webdataset")
    ds = cw.folder(photos).apply(PIPELINES[0])
    with wds.ShardWriter(str(tmp_path / "w-%02d.tar"), maxcount=7, verbose=0) as shards:
        for i in range(23):
            stored = Path(ds.path(i)).read_bytes()
            shards.write({"__key__": f"{i:04}", "jpg": stored, "cls": ds.label(i), "json": {"i": i}})
    tar = cw.tar(tmp_path / "w-*.tar").apply(PIPELINES[0])
    assert stream(loader(tar)) == stream(loader(ds))
    # And a store of them is as good as one of the files.
    cw.materialize(tar, "decode", "lz4", out=tmp_path / "s")
    assert stream(loader(cw.store(tmp_path / "s").apply(PIPELINES[0]))) == stream(loader(ds))


def test_stored_bytes_side_by_side_are_tar_shards(photos: Path, tmp_path: Path) -> None:
    ds = cw.folder(photos)
    cw.materialize(ds, 0, out=tmp_path / "s")
    for other in (cw.store(tmp_path / "s"), cw.tar(tmp_path / "s" / "shard-*.tar")):
        assert [other.get(i)["image"].tobytes() for i in range(23)] == [
            Path(ds.path(i)).read_bytes() for i in range(23)
        ]


def test_a_codec_that_does_not_pay_is_said_to(tmp_path: Path) -> None:
    paths = [save(tmp_path / f"{i}.png", noise(40, 40, i)) for i in range(3)]
    made = cw.materialize(cw.files(paths).decode(), "decode", "zstd:1", out=tmp_path / "s")
    assert made["bytes"] > made["payload_bytes"] > made["raw_bytes"] == 3 * 40 * 40 * 3
    said = command(
        "materialize", "--data", tmp_path, "--pipeline", "decode", "--cut", 0, "--codec", "lz4", "-o", tmp_path / "t"
    )
    assert "the codec does not pay" in said.stdout


def test_data_of_one_sample_and_of_equal_ones(tmp_path: Path) -> None:
    path = save(tmp_path / "one.png", noise(9, 9))
    for paths in ([path], [path] * 40):
        out = tmp_path / str(len(paths))
        assert cw.materialize(cw.files(paths).decode(), "decode", out=out)["samples"] == len(paths)
        assert all(same(cw.store(out).get(i)["image"], noise(9, 9)) for i in range(len(paths)))


def test_names_that_are_no_text(tmp_path: Path) -> None:
    for name in (b"k\xe4tze", "Hündin".encode()):
        folder = os.fsdecode(os.fsencode(tmp_path) + b"/data/" + name)
        os.makedirs(folder)
        save(Path(folder) / "a.png", noise(5, 5))
        (Path(folder) / "b.png").write_bytes(gzip.compress(b"no image"))
    ds = cw.folder(tmp_path / "data").decode()
    made = cw.materialize(ds, "decode", out=tmp_path / "s")
    store = cw.store(tmp_path / "s")
    assert store.classes == ds.classes
    assert [failure["path"] for failure in made["bad"]] == [ds.path(1), ds.path(3)]
    assert json.loads((tmp_path / "s" / "meta.json").read_text())["samples"] == 4
