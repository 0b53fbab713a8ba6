# SPDX-License-Identifier: Apache-2.0
"""Pipelines: cuts, stepwise runs, fusion, text form, fingerprints."""

from __future__ import annotations

import random
from typing import Any

import pytest
from helpers import MEAN, STD, image_of, same
from random_pipelines import params, random_pipeline, value

import cutwater as cw
from cutwater import _core

TRAIN = "decode | resize(size=40) | random_crop(size=32) | random_horizontal_flip | to_tensor | normalize([0.5], [0.2])"


def same_at(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return a.keys() == b.keys() and all(same(a[name], b[name]) for name in a)


def test_a_run_up_to_a_cut_is_the_chain_up_to_there(photos: Any) -> None:
    full = cw.folder(photos).apply(TRAIN)
    for id in (0, 7, 22):
        shorter = cw.folder(photos)
        assert same_at(full.run(id, upto=0, epoch=2), shorter.get(id, epoch=2))
        for count, text in enumerate(TRAIN.split(" | "), start=1):
            shorter = cw.folder(photos).apply(" | ".join(TRAIN.split(" | ")[:count]))
            cut = count + 1  # decode has one inside
            assert same_at(full.run(id, upto=cut, epoch=2), shorter.get(id, epoch=2)), text
            assert same_at(full.run(id, upto=text.split("(")[0], epoch=2), shorter.get(id, epoch=2)), text
        inside = cw.folder(photos).entropy()
        assert same_at(full.run(id, upto="entropy", epoch=2), inside.get(id, epoch=2))
        assert same_at(inside.reconstruct().get(id), cw.folder(photos).decode().get(id))


@pytest.mark.parametrize("seed", range(60))
def test_fusing_and_leaving_out_regions_change_no_byte(seed: int, one_image: Any) -> None:
    """Fused, op by op, and cut by cut, where every op makes its whole output."""
    rng = random.Random(seed)
    pipeline = random_pipeline(rng, rng.randint(2, 7))
    ds = one_image(rng.randint(1, 60), rng.randint(1, 60), seed).apply(pipeline)
    for epoch in range(3):
        try:
            fused = ds.run(0, epoch=epoch)
        except cw.SampleError as refused:
            with pytest.raises(cw.SampleError, match=refused.op):
                ds.run(0, epoch=epoch, fuse=False)
            continue
        assert same_at(fused, ds.run(0, epoch=epoch, fuse=False)), str(pipeline)
        for cut in range(ds.pipeline.last_cut):
            alone, fused_there = (ds.run(0, upto=cut, epoch=epoch, fuse=fuse) for fuse in (False, True))
            assert same_at(alone, fused_there), (str(pipeline), cut)


@pytest.mark.parametrize("tail", ["to_tensor | normalize", "random_horizontal_flip | to_tensor | normalize"])
def test_fused_chains_are_reported_as_one(tail: str, photos: Any) -> None:
    text = "decode | resize([20, 20]) | grayscale(3) | " + tail.replace("normalize", f"normalize({MEAN}, {STD})")
    names = {}
    for fuse in (True, False):
        with cw.DataLoader(cw.folder(photos).apply(text), batch_size=4, fuse=fuse) as loader:
            next(iter(loader))
            names[fuse] = list(loader.stats()["ops"])
    assert names == {
        True: ["decode+resize", "grayscale", tail.replace(" | ", "+")],
        False: ["entropy", "decode", "resize", "grayscale", *tail.split(" | ")],
    }


def test_cuts_say_what_is_stable_and_what_the_fields_are() -> None:
    cuts = cw.parse(TRAIN).cuts()
    assert [cut["cut"] for cut in cuts] == list(range(8))
    assert [cut["after"] for cut in cuts] == [None, "entropy", *(call.split("(")[0] for call in TRAIN.split(" | "))]
    assert [cut["stable"] for cut in cuts] == [True, True, True, True, False, False, False, False]
    shapes = [(c["fields"]["image"]["dtype"], c["fields"]["image"]["shape"]) for c in cuts]
    assert shapes[:4] == [("uint8", [None])] * 2 + [("uint8", [None, None, 3])] * 2
    assert shapes[4:6] == [("uint8", [32, 32, 3])] * 2
    assert shapes[6:] == [("float32", [3, 32, 32])] * 2


def test_stable_cuts_are_the_same_in_every_epoch(photos: Any) -> None:
    ds = cw.folder(photos).apply(TRAIN)
    for cut in ds.cuts():
        results = [ds.run(5, upto=cut["cut"], epoch=epoch) for epoch in range(8)]
        assert all(same_at(results[0], other) for other in results) == cut["stable"], cut


def test_padding_of_a_random_crop_is_a_stable_cut_of_its_own(one_image: Any) -> None:
    ds = one_image(9, 9).decode().random_crop(12, padding=4)
    assert [(cut["name"], cut["stable"]) for cut in ds.cuts()[3:]] == [("pad", True), ("random_crop", False)]
    assert ds.run(0, upto="pad")["image"].shape == (17, 17, 3)


def test_cuts_have_names() -> None:
    pipeline = cw.parse("decode | resize(8) | resize(9) | center_crop(4) | resize(5)")
    assert [cut["name"] for cut in pipeline.cuts()] == [
        "source", "entropy", "decode", "resize", "resize#2", "center_crop", "resize#3",
    ]  # fmt: skip
    for cut in pipeline.cuts():
        assert pipeline.cut(cut["name"]) == pipeline.cut(str(cut["cut"])) == cut["cut"]
    for unknown in ("resize#4", "flip", "7", "-1", ""):
        with pytest.raises(ValueError, match=r"no cut .*known: 0\.\.6, source entropy decode resize resize#2"):
            pipeline.cut(unknown)


@pytest.mark.parametrize("seed", range(40))
def test_text_form_reads_back(seed: int) -> None:
    rng = random.Random(seed)
    pipeline = random_pipeline(rng, rng.randint(1, 8))
    again = cw.parse(str(pipeline))
    assert again == pipeline and str(again) == str(pipeline)
    assert again.fingerprint() == pipeline.fingerprint()


def test_text_forms_that_mean_the_same() -> None:
    pipeline = cw.parse('decode | resize(size=[8, 9], interpolation="box") | to_tensor')
    for text in (
        "decode|resize([8,9],box)|to_tensor",
        " decode( ) |\n resize( (8, 9,) , interpolation = 'box' ) | to_tensor() ",
        "decode(exif=false) | resize(size=(8.0, 9), interpolation=box, max_size=None) | to_tensor",
    ):
        assert cw.parse(text) == pipeline
    assert cw.parse("") == _core.Pipeline() and len(cw.parse("  ")) == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("decode | resise(8)", "unknown op 'resise'.*resize"),
        ("decode | resize(sise=8)", "resize: unknown parameter 'sise'.*size"),
        ("decode | resize", "resize: parameter 'size' is missing"),
        ("decode | resize(8, size=9)", "'size' is given twice"),
        ("decode | resize(0)", "size must be in 1..65536, got 0"),
        ("decode | resize(8.5)", "size must be .*got 8.5"),
        ("decode | resize(8, interpolation=cubic)", "interpolation must be one of nearest,.*got \"cubic\""),
        ("decode | resize(8, antialias=False)", "antialias=True"),
        ("decode | resize(8, pillow=11)", "pillow.*1[23].*11"),
        ("decode | resize(8, max_size=8)", "max_size 8 must be greater than size 8"),
        ("decode | resize([8, 9], max_size=10)", "max_size goes with one number"),
        ("decode | grayscale(1, 2)", "grayscale: too many parameters"),
        ("decode | random_horizontal_flip(p=1.5)", "p must be in 0..1, got 1.5"),
        ("decode | random_resized_crop(8, scale=[1, 0.5])", "scale must be two numbers.*got"),
        ("decode | pad([1, 2, 3])", "padding must be 1, 2 or 4 whole numbers.*got \\[1, 2, 3\\]"),
        ("decode | pad(1, fill=256)", "fill must be 1 or 3 whole numbers in 0..255"),
        ("decode | grayscale(2)", "num_output_channels must be 1 or 3, got 2"),
        ("decode | to_dtype(float99)", "dtype must be .*uint8.*got \"float99\""),
        ("decode | to_tensor | normalize([0.5, 0.5], [1])", "1 or 3 values"),
        ("decode | to_tensor | normalize([0.5], [0])", "std must not be 0"),
        ("decode | grayscale | to_tensor | normalize([1, 2, 3], [1])", "3 values for an image of 1 channels"),
        ("resize(8)", "resize: needs an image.*put decode before it"),
        ("decode | decode", "decode comes first, and once"),
        ("decode | to_tensor | resize(8)", "put it before to_tensor"),
        ("decode | normalize([1], [1])", "put to_tensor before it"),
        ("decode(max_pixels=0)", "max_pixels must be at least 1, got 0"),
        ("decode |", "character 9: expected a name, found the end"),
        ("decode resize(8)", "character 8: expected '\\|' or the end, found 'resize\\(8\\)'"),
        ("decode | resize(8", "expected '\\)'"),
        ("decode | resize([8, 9)", "expected ','"),
        ("decode | resize(\"8)", "closing quote"),
        ("imagenet-trian", "no preset 'imagenet-trian' .known: imagenet-train imagenet-val"),
    ],
)  # fmt: skip
def test_refusals_name_the_thing_and_the_way_out(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        cw.parse(text)
    assert isinstance(caught.value, cw.Error)


@pytest.mark.parametrize("op", [op["name"] for op in _core.ops()])
def test_every_parameter_is_in_the_fingerprint(op: str) -> None:
    definition = next(one for one in _core.ops() if one["name"] == op)
    start = {"decode": "", "entropy": "", "reconstruct": "entropy", "normalize": "decode | to_tensor"}.get(op, "decode")
    rng = random.Random(1)
    chosen = {p["name"]: value(rng, op, p["name"]) for p in definition["params"]}
    chosen |= {"size": 16} if op == "resize" else {}  # one number: max_size goes with it
    base = cw.parse(start).then(op, chosen).fingerprint()
    for name in chosen.keys() - {"antialias"}:  # which has one value only
        other = next(v for v in iter(lambda name=name: value(rng, op, name), ()) if v != chosen[name]) \
            if name != "max_size" else 99  # fmt: skip
        assert cw.parse(start).then(op, chosen | {name: other}).fingerprint() != base, name


def test_fingerprints_tell_order_and_data_apart(photos: Any, one_image: Any) -> None:
    texts = ["decode", "decode | pad(1) | resize(9)", "decode | resize(9) | pad(1)", "decode | pad(1)", ""]
    assert len({cw.parse(text).fingerprint() for text in texts}) == len(texts)
    ds = cw.folder(photos)
    assert ds.fingerprint == cw.folder(photos).fingerprint
    assert len({ds.fingerprint, ds.decode().fingerprint, one_image(3, 3).fingerprint, one_image(3, 4).fingerprint}) == 4
    assert [c["fingerprint"] for c in cw.parse(TRAIN).cuts()][:4] == [
        c["fingerprint"] for c in cw.parse("decode | resize(40)").cuts()
    ]


def test_presets_are_the_imagenet_recipes(photos: Any) -> None:
    source = cw.folder(photos)
    train = source.decode().random_resized_crop(224).random_horizontal_flip().to_tensor().normalize(MEAN, STD)
    val = source.decode().resize(256).center_crop(224).to_tensor().normalize(MEAN, STD)
    for name, by_hand in (("imagenet-train", train), ("imagenet-val", val)):
        ds = source.apply(name)
        assert ds.pipeline == by_hand.pipeline and ds.fingerprint == by_hand.fingerprint
        assert same(image_of(ds, 1), image_of(by_hand, 1))


def test_generated_parameters_are_those_of_the_table() -> None:
    """Signatures of the methods and of the table agree: names, order and defaults."""
    import inspect

    for op in _core.ops():
        signature = inspect.signature(getattr(cw.Dataset, op["name"]))
        given = [p for p in signature.parameters.values() if p.name != "self"]
        assert [p.name for p in given] == [p["name"] for p in op["params"]]
        assert [p.default is p.empty for p in given] == [p["required"] for p in op["params"]]
        assert params(random.Random(0), op).keys() <= {p.name for p in given}
