# SPDX-License-Identifier: Apache-2.0
"""Small inputs from which the fuzzers begin: one folder for each target of tests/fuzz.

usage: tools/make_seeds.py FOLDER
"""

from __future__ import annotations

import io
import itertools
import json
import struct
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image

Seeds = Iterator[tuple[str, bytes]]

PIPELINES = [
    "decode",
    "decode(exif=True, max_pixels=1000) | resize(size=[192, 256], interpolation='bicubic', max_size=300, pillow=12)",
    "decode | random_resized_crop(224, scale=(0.08, 1), ratio=(0.75, 1.5)) | random_horizontal_flip(p=2.5e-1)",
    "decode | resize(256) | center_crop(224) | to_tensor | normalize(mean=[0.485, 0.456, 0.406], std=0.25)",
    'decode | random_crop(size=32, padding=4, pad_if_needed=True, fill=(1, 2, 3), padding_mode="edge")',
    "decode | pad(padding=[1, 2, 3, 4], fill=7) | grayscale(num_output_channels=3) | five_crop((8, 9,))",
    'decode | random_vertical_flip | to_dtype(dtype="float16", scale=true)',
]


def picture(width: int, height: int, mode: str = "RGB") -> PIL.Image.Image:
    """Smooth with a little noise, so that most coefficients are there and few are large."""
    rng = np.random.default_rng(width * height)
    y, x = np.mgrid[:height, :width]
    planes = [128 + 90 * np.sin(x / (5 + c) + c) * np.cos(y / (7 - c)) for c in range(3)]
    pixels = np.stack(planes, axis=2) + rng.normal(0, 8, (height, width, 3))
    image = PIL.Image.fromarray(pixels.clip(0, 255).astype(np.uint8))
    return image.quantize(9) if mode == "P" else image.convert(mode)


def saved(image: PIL.Image.Image, format: str, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, format, **options)
    return file.getvalue()


def with_frame(jpeg: bytes, width: int, height: int, sampling: int) -> bytes:
    """Another size and sampling of the first component. As long as the number and make of the blocks
    stay the same, this is a sound file of a scrambled picture."""
    at = jpeg.index(b"\xff\xc0")
    size = height.to_bytes(2, "big") + width.to_bytes(2, "big")
    return jpeg[: at + 5] + size + jpeg[at + 9 : at + 11] + bytes([sampling]) + jpeg[at + 12 :]


def jpegs() -> Seeds:
    color, gray, cmyk = picture(32, 32), picture(27, 19, "L"), picture(18, 25, "CMYK")
    options = [
        {},
        {"optimize": True},
        {"progressive": True},
        {"restart_marker_blocks": 1},
        {"restart_marker_rows": 1, "progressive": True},
        {"quality": 100},
        {"quality": 3},
    ]
    for k, option in enumerate(options):
        for sampling, (width, height) in itertools.product(range(3), [(32, 32), (17, 13), (1, 9)]):
            yield (
                f"{k}-{sampling}-{width}x{height}",
                saved(picture(width, height), "JPEG", subsampling=sampling, **option),
            )
        yield f"{k}-gray", saved(gray, "JPEG", **option)
        yield f"{k}-cmyk", saved(cmyk, "JPEG", **option)
    yield "rgb", saved(color, "JPEG", keep_rgb=True)
    # Pillow writes no 4:4:0, 4:1:1 or arithmetic codes. Any bits are sound arithmetic codes.
    twice, four_times = saved(color, "JPEG", subsampling=1), saved(color, "JPEG", subsampling=2)
    for width, height in [(32, 32), (27, 29)]:
        yield f"440-{width}x{height}", with_frame(twice, width, height, 0x12)
        yield f"411-{width}x{height}", with_frame(four_times, width, height, 0x41)
    yield "arithmetic", four_times.replace(b"\xff\xc0", b"\xff\xc9")
    yield "arithmetic-gray", saved(gray, "JPEG").replace(b"\xff\xc0", b"\xff\xc9")
    yield "arithmetic-progressive", saved(color, "JPEG", progressive=True).replace(b"\xff\xc2", b"\xff\xca")


def pngs() -> Seeds:
    for mode in ("1", "L", "LA", "P", "RGB", "RGBA"):
        for level in (0, 9):
            yield f"{mode}-{level}", saved(picture(13, 9, mode), "PNG", compress_level=level)
            flat = saved(picture(13, 9, mode), "PNG", compress_level=level)
            # Said to be interlaced: some rows are missing at the end, and filters are other bytes.
            yield f"{mode}-{level}-interlaced", flat[:28] + b"\1" + flat[29:]
    yield "gray16", saved(PIL.Image.fromarray(np.arange(99, dtype=np.uint16).reshape(9, 11) * 500), "PNG")
    yield "transparent", saved(picture(9, 9, "P"), "PNG", transparency=3)
    frames = [picture(8, 8), picture(8, 8).rotate(90)]
    yield "animated", saved(frames[0], "PNG", save_all=True, append_images=frames[1:])


def webps() -> Seeds:
    for mode, lossless in itertools.product(("RGB", "RGBA"), (False, True)):
        yield f"{mode}-{lossless}", saved(picture(21, 17, mode), "WEBP", lossless=lossless)
    frames = [picture(12, 12), picture(12, 12).rotate(90)]
    yield "animated", saved(frames[0], "WEBP", save_all=True, append_images=frames[1:])


def gifs_and_bmps() -> Seeds:
    for interlace in (0, 1):
        yield f"gif-{interlace}", saved(picture(15, 21, "P"), "GIF", interlace=interlace)
    yield "gif-transparent", saved(picture(9, 9, "P"), "GIF", transparency=2)
    frames = [picture(12, 12), picture(12, 12).rotate(90)]
    yield "gif-animated", saved(frames[0], "GIF", save_all=True, append_images=frames[1:])
    for mode in ("1", "L", "P", "RGB", "RGBA"):
        yield f"bmp-{mode}", saved(picture(11, 7, mode), "BMP")
    palette = b"".join(bytes([i, 255 - i, i // 2, 0]) for i in range(16))
    for name, bits, compression, runs in [
        ("rle8", 8, 1, b"\4\5\0\4\1\2\3\4\0\0\5\7\0\2\1\0\2\1\0\1"),
        ("rle4", 4, 2, b"\5\x12\0\4\x12\x34\0\0\6\x77\0\1"),
    ]:
        fields = [(40, 4), (8, 4), (3, 4), (1, 2), (bits, 2), (compression, 4), *[(0, 4)] * 3, (16, 4), (0, 4)]
        info = b"".join(value.to_bytes(size, "little") for value, size in fields)
        start = 14 + len(info) + len(palette)
        yield f"bmp-{name}", b"BM" + bytes(8) + start.to_bytes(4, "little") + info + palette + runs


def tars() -> Seeds:
    for format in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        for folder in ("", "long" * 20 + "/"):
            file = io.BytesIO()
            with tarfile.open(fileobj=file, mode="w", format=format) as archive:
                for name, content in (("a.jpg", b"image"), ("a.cls", b"7\n"), ("b.png", b"x" * 600), ("b.cls", b"0")):
                    member = tarfile.TarInfo(folder + name)
                    member.size = len(content)
                    archive.addfile(member, io.BytesIO(content))
            yield f"{format}-{len(folder)}", file.getvalue()[: 512 * 24]


def kept_indexes() -> Seeds:
    """As src/source/FORMAT.md has it; what names the shard, and the digest, the target fills in."""

    def words(*numbers: int) -> bytes:
        return b"".join(number.to_bytes(8, "little") for number in numbers)

    for labels in (0, 1):
        samples = words(512, 100, labels * 5, 5) + words(2048, 900, labels * 6, 10)
        head = b"CWTARIDX" + (1).to_bytes(4, "little") + labels.to_bytes(4, "little")
        yield f"labels-{labels}", head + words(4096, 0, 2, 10) + samples + b"a.jpgb.jpg"


def varint(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)


def coefficient_forms() -> Seeds:
    """As src/ops/image/COEFFICIENTS.md has it; the size of the whole the target fills in."""
    layouts = {"gray": (0, [0x11]), "444": (1, [0x11] * 3), "420": (1, [0x22, 0x11, 0x11]), "rgb": (2, [0x11] * 3)}
    rng = np.random.default_rng(1)
    for (name, (color, sampling)), (width, height) in itertools.product(layouts.items(), [(7, 5), (33, 17)]):
        most_across, most_down = max(s >> 4 for s in sampling), max(s & 15 for s in sampling)
        head = b"cw.coef1" + bytes(4) + width.to_bytes(2, "little") + height.to_bytes(2, "little")
        head += bytes([color, 1, *sampling]).ljust(8, b"\0")
        head += b"".join((1 + k % 64).to_bytes(2, "little") for k in range(64 * len(sampling)))
        rows = []
        for factors in sampling:
            blocks = -(-width // (8 * most_across)) * (factors >> 4)
            for _ in range(-(-height // (8 * most_down)) * (factors & 15)):
                masks = rng.integers(0, 1 << 63, blocks, dtype=np.uint64) & rng.integers(0, 1 << 63, blocks, np.uint64)
                values = sum((int(mask) >> 1).bit_count() << (int(mask) & 1) for mask in masks)
                dcs = rng.integers(-200, 200, blocks, dtype=np.int16)
                rows.append(masks.tobytes() + dcs.tobytes() + rng.bytes(values))
        begins = itertools.accumulate(map(len, rows), initial=len(head) + 4 * (len(rows) + 1))
        table = b"".join(begin.to_bytes(4, "little") for begin, _ in zip(begins, rows, strict=False)) + bytes(4)
        yield f"{name}-{width}x{height}", head + table + b"".join(rows) + bytes(64)


def excerpts() -> Seeds:
    """As src/ops/image/EXCERPT.md has it; the size of the whole the target fills in. And what they are made of."""
    for name, jpeg in jpegs():
        frame = max(jpeg.find(b"\xff" + marker) for marker in (b"\xc0", b"\xc2", b"\xc9", b"\xca"))
        height, width = (int.from_bytes(jpeg[at : at + 2], "big") for at in (frame + 5, frame + 7))
        for left, top in [(0, 0), (32, 16)]:
            numbers = (left + width, top + height, left, top)
            place = b"".join(number.to_bytes(2, "little") for number in numbers)
            yield f"{name}-{left}", b"cw.exct1" + bytes(4) + place + bytes([1, 0, 0, 0]) + jpeg
        yield name, jpeg[:2] + b"\xff\xfe\x02\x00" + bytes(510) + jpeg[2:]


def entropy_indexes() -> Seeds:
    """Which file, then as src/ops/image/ENTROPY_INDEX.md has it; the content's name the target fills in."""
    for file, rows in itertools.product((0, 3, 5, 7), (0, 1, 3)):
        steps = b"".join(varint(900 * k) + varint(3) + varint(8) + varint(0) for k in range(2 * rows))
        yield f"{file}-{rows}", bytes([file, 1]) + bytes(8) + varint(rows) + steps


def kept_hints() -> Seeds:
    """As src/source/HINTS.md has it; what names the data set, and the digest, the target fills in."""
    for count in (0, 1, 3):
        entries = b"".join(
            (30 * k).to_bytes(8, "little") + (k + 1).to_bytes(4, "little") + b"x" * (k + 1) for k in range(count)
        )
        yield str(count), b"CWHINTS1" + bytes(40) + count.to_bytes(8, "little") + entries


def profiles() -> Seeds:
    """Which file, then its content, as src/profile/FORMAT.md has it; the others are those of the target."""
    rates = {"reads_per_s": 1, "bytes_per_s": 2}
    storage = {"cold_random": rates, "cold_sequential": rates, "warm_file_s": 5, "warm_part_s": 6}
    names = ("source", "pixels", "jitter")
    columns = ("bytes", "op_s", "prefix_s", "finish_s", "first_s", "memory_s")
    variants = ("variant_bytes", "variant_encode_s", "variant_decode_s")
    meta = {
        "format": "cutwater profile",
        "version": 1,
        **dict.fromkeys(("data", "pipeline", "fingerprint", "source_identity"), "x"),
        **{"data_samples": 10, "samples": 2, "seconds": 12, "threads": 2, "relative_error": 0.25},
        **{"reads_files": False, "engine_s": 10, "memory_bytes_per_s": 9, "consumer_samples_per_s": None},
        "fresh_memory_bytes_per_s": 9,
        "storage": {
            **storage,
            "warm_per_byte_s": 7,
            "check_per_byte_s": 8,
            "write_bytes_per_s": 13,
            "write_file_s": 14,
        },
        "cuts": [
            {"cut": k, "name": name, "after": name if k else None, "stable": k < 2} for k, name in enumerate(names)
        ],
        "variants": [{"cut": cut, "codec": codec} for cut in (0, 1) for codec in ("none", "zstd:3")],
        "bad": [{"id": 5, "path": "x", "op": "pixels", "reason": "cannot be"}],
        "files": {name: f"{name}.npy" for name in ("ids", *columns, *variants)},
    }
    yield "meta", b"\0" + json.dumps(meta).encode()
    arrays = [np.array([7, 3]), *(np.ones((2, width)) for width in (3, 3, 2, 2, 2, 4, 4))]
    for k, array in enumerate(arrays):
        file = io.BytesIO()
        np.save(file, array)
        yield str(k), bytes([k + 1]) + file.getvalue()


def store_indexes() -> Seeds:
    """A kind, then what src/store/FORMAT.md has: text without its seal, or rows of the index."""
    plan = {
        "format": "cutwater store",
        "version": 1,
        "pipeline": "decode",
        "cut": 1,
        "cut_name": "entropy",
        "fingerprint": "f",
        "codec": "zstd:3",
        "source": {"identity": "i", "stamp": "s"},
        "samples": 3,
        "samples_per_shard": 2,
        "fields": ["image", "label"],
        "label_field": True,
        "has_labels": True,
        "classes": ["cat", {"hex": "ff"}],
    }
    sums = {"bytes": 4096, "checksum": "0" * 32}
    shards = [{"name": f"shard-{k:06}.tar", **sums} for k in range(2)]
    bad = [{"id": 2, "path": "p", "op": "decode", "reason": "r"}]
    files = {"raw_bytes": 9, "index": {"name": "index.npy", **sums}, "shards": shards, "bad": bad}
    part = {"format": "cutwater part of a store", "version": 1, "shard": 0, "file": shards[0], "raw_bytes": 9}
    for k, text in enumerate([plan, plan | files, part | {"rows": {"bytes": 0, "checksum": "0" * 32}, "bad": bad}]):
        yield f"text-{k}", b"\0" + json.dumps(text, indent=2).removesuffix("\n}").encode()
    tensor = [("offset", "u8"), ("size", "u8"), ("checksum", "u8"), ("shape", "i8", 6)]
    row = [
        ("shard", "u4"),
        ("stored", "u4"),
        ("label", "i8"),
        *tensor,
        ("dtype", "u1"),
        ("layout", "u1"),
        ("rank", "u2"),
    ]
    for kind, (dtype, layout) in itertools.product((2, 3), ((0, 0), (5, 2), (0, 4))):
        rows = np.zeros(4, np.dtype(row))
        rows["shard"], rows["stored"], rows["rank"], rows["dtype"], rows["layout"] = [0, 0, 0, 1], 1, 3, dtype, layout
        rows["offset"], rows["shape"][:, :3] = [1024, 2048, 4096, 1024], (5, 4, 3)
        rows["size"] = 5 if layout == 4 else 5 * 4 * 3 * (4 if dtype == 5 else 1)
        yield f"rows-{kind}-{dtype}-{layout}", bytes([kind]) + rows.tobytes()


def store_members() -> Seeds:
    """Codec, kind of tensor, number of bytes (high, low), and the bytes of a member's data."""
    plain = bytes(range(60)) * 2
    lz4 = bytes.fromhex("04224d18") + bytes([0x68, 0x40, len(plain), *bytes(7), 0x81])
    lz4 += bytes([len(plain), 0, 0, 0x80]) + plain + bytes(4)
    zstd = (
        bytes.fromhex("28b52ffd") + bytes([0x20, len(plain), 1 | (len(plain) << 3) & 0xFF, len(plain) >> 5, 0]) + plain
    )
    for codec, content in enumerate((plain, lz4, zstd, zstd, zstd)):
        for kind in range(8):
            yield f"{codec}-{kind}", bytes([codec, kind, 0, len(plain)]) + content


def forms() -> Seeds:
    """As src/variant/FORM.md has them: one or two raw fields, without a checksum."""
    for fields in (1, 2):
        names = [b"image", b"label"][:fields]
        start = 40 + 72 * fields + sum(map(len, names))
        records, tensors = b"", b""
        for name, (dtype, shape, size) in zip(names, [(5, (3, 2, 2), 48), (3, (), 8)], strict=False):
            tensors += bytes(-(start + len(tensors)) % 64)
            dims = [*shape, *[0] * (6 - len(shape))]
            records += bytes([dtype, 2 if shape else 0, len(shape), len(name), 0, 0, 0, 0])
            records += b"".join(n.to_bytes(8, "little") for n in (start + len(tensors), size, *dims))
            tensors += bytes(range(size))
        body = records + b"".join(names) + tensors
        head = b"CWF1" + bytes(12) + (40 + len(body)).to_bytes(8, "little")
        head += (5).to_bytes(8, "little") + (2).to_bytes(4, "little") + fields.to_bytes(4, "little")
        yield str(fields), head + body


def cache_packets() -> Seeds:
    """As src/cache/PROTOCOL.md has them, each after its client and its number of bytes."""

    def packet(kind: int, *fields: int | bytes, client: int = 0, version: int = 1) -> bytes:
        words = [field if isinstance(field, bytes) else struct.pack("<Q", field) for field in fields]
        body = struct.pack("<II", version, kind) + b"".join(words)
        return struct.pack("<BH", client, len(body)) + body

    def key(sample: int, draw: int = 0) -> bytes:
        return struct.pack("<4Q", 7, 9, sample, draw)

    hello, second = packet(1, 1), struct.pack("<d", 1.0)
    join = packet(6, b"job".ljust(64, b"\0"), 7, 100, 1, 9, bytes(31 * 8))
    put = packet(2, key(3), 1000, second)
    questions = packet(8) + b"".join(packet(9, what | 1 << 32, 0, 0) for what in range(3))
    yield "put", hello + put + packet(3, 1) + packet(2, key(4), 50, second) + packet(4, 2)
    yield (
        "full",
        hello
        + b"".join(packet(2, key(n), 60000, second) + packet(3, n) for n in range(1, 6))
        + questions
        + packet(10, 0, 0, 0),
    )
    yield "jobs", hello + join + join + packet(2, key(1, 5), 9, second) + packet(7, 0) + questions
    yield "two", hello + put + packet(1, 1, client=1) + packet(3, 1, client=1) + packet(5, key(3)) + questions
    yield "version", packet(1, 1, version=2) + packet(1, 0) + questions + put


def pipeline_texts() -> Seeds:
    for k, text in enumerate(PIPELINES):
        yield str(k), text.encode()


def fetch_requests() -> Seeds:
    """As src/proto/cutwater.proto has them; identities and fingerprints the target fills in."""

    def field(number: int, value: int | bytes) -> bytes:
        if isinstance(value, int):
            return varint(number << 3) + varint(value)
        return varint(number << 3 | 2) + varint(len(value)) + value

    ways = [b"", field(3, 1), field(1, 1), field(1, 1) + field(2, b"delta-zstd:1"), field(1, 2)]
    wanted = field(2, field(1, 7) + field(2, 2) + field(3, 1) + varint(4 << 3 | 5) + struct.pack("<f", 1e6))
    for k, text in enumerate(PIPELINES):
        begin = field(1, b"data") + field(3, text.encode()) + field(5, 9)
        begin += b"".join(field(6, way) for way in ways[: 2 + k]) + field(7, k % 2)
        yield f"begin-{k}", field(1, begin) + wanted * k
    yield "list", field(1, b"data") + field(2, 1) + field(3, 9)
    failure = field(1, 2) + field(2, b"cannot be") + field(3, b"path") + field(4, b"read")
    numbers = struct.pack("<3f", 100, 50, 25)
    yield "reply", field(2, 7) + field(3, 1) + field(4, 99) + field(6, numbers) + field(7, numbers) + field(9, 1)
    yield "failure", field(2, 7) + field(10, failure)


def redis_values() -> Seeds:
    header = b"CWVALUE1" + b"".join(n.to_bytes(8, "little") for n in (5, 4096, 1, 0, 0, 0, 0))
    yield "value", b"$69\r\n" + header + b"abcde\r\n"
    yield "none", b"$-1\r\n"
    yield "error", b"-MOVED 3999 127.0.0.1:6381\r\n"
    yield "slots", b"*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:7000\r\n"
    yield "stored", b"+OK\r\n+OK\r\n:1\r\n"
    yield "note", b"1 2 3 4 1 "
    yield "url", b"user:p%40ss@[::1]:7/2?timeout=2s&slow=1s&ttl=1d&chunk=1MiB&prefix=a&cluster=0&ca=/x"


SEEDS = {
    "cache_protocol": cache_packets,
    "form": forms,
    "jpeg": jpegs,
    "png": pngs,
    "webp": webps,
    "gif_bmp": gifs_and_bmps,
    "tar": tars,
    "kept_index": kept_indexes,
    "coefficients": coefficient_forms,
    "entropy_index": entropy_indexes,
    "excerpt": excerpts,
    "fetch_request": fetch_requests,
    "hints": kept_hints,
    "profile": profiles,
    "pipeline_text": pipeline_texts,
    "redis_value": redis_values,
    "store_index": store_indexes,
    "store_member": store_members,
}


def main() -> None:
    for target, seeds in SEEDS.items():
        folder = Path(sys.argv[1]) / target
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in seeds():
            (folder / name).write_bytes(content)


if __name__ == "__main__":
    main()
