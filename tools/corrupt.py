# SPDX-License-Identifier: Apache-2.0
"""Damages images in many ways and compares what we make of them with what Pillow makes of them.

usage: tools/corrupt.py FOLDER… [--corruptions N] [--jobs N] [--json FILE] [--keep FOLDER]

Every image is taken as it is and with N corruptions, each fixed by the file's name and a seed. Both
sides must refuse it, or both must give the same pixels. What differs is a difference that
docs/images.md lists (D1, D2…) or a bug; bugs are printed, kept with --keep, and make the status 1.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
import traceback
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import PIL.Image

import cutwater as cw

ENDINGS = {".jpeg", ".jpg", ".png", ".webp", ".gif", ".bmp"}
FORMATS = {"JPEG", "MPO", "PNG", "WEBP", "GIF", "BMP", "DIB"}
HEADER_BYTES = 700  # of a JPEG: its tables; of all others: everything that is not pixels
AS_IT_IS = -1  # in place of a seed

# ---- damage -------------------------------------------------------------------------------------


def some_range(data: bytes, rng: random.Random, largest: int = 4000) -> slice:
    begin = rng.randrange(len(data))
    return slice(begin, begin + 1 + int(rng.random() ** 3 * largest))


def flip_bytes(data: bytes, rng: random.Random, end: int | None = None) -> bytes:
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        out[rng.randrange(min(end or len(data), len(data)))] = rng.choice((0, 0xFF, rng.randrange(256)))
    return bytes(out)


def flip_bits(data: bytes, rng: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(rng.choice((1, 2, 8))):
        out[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(out)


def truncate(data: bytes, rng: random.Random) -> bytes:
    kept = data[: rng.randrange(len(data))] if rng.random() < 0.6 else data[: -rng.randrange(1, 40)]
    return kept + (b"\xff\xd9" if rng.random() < 0.3 else b"")


def delete(data: bytes, rng: random.Random) -> bytes:
    gone = some_range(data, rng)
    return data[: gone.start] + data[gone.stop :]


def duplicate(data: bytes, rng: random.Random) -> bytes:
    twice = some_range(data, rng)
    return data[: twice.stop] + data[twice.start :]


def overwrite(data: bytes, rng: random.Random) -> bytes:
    hit = some_range(data, rng)
    length = len(data[hit])
    return data[: hit.start] + rng.choice((bytes(length), b"\xff" * length, rng.randbytes(length))) + data[hit.stop :]


def damage_header(data: bytes, rng: random.Random) -> bytes:
    return flip_bytes(data, rng, HEADER_BYTES)


def places(data: bytes) -> list[int]:
    """Where a marker, chunk or block begins, by the look of it."""
    if data[:2] == b"\xff\xd8":
        return [i for i in range(len(data) - 1) if data[i] == 0xFF and data[i + 1] not in (0, 0xFF)]
    if data[:4] == b"\x89PNG":
        names = (b"IHDR", b"PLTE", b"IDAT", b"tRNS", b"IEND", b"iCCP", b"zTXt", b"eXIf")
        return [data.find(name) for name in names if name in data]
    return list(range(min(60, len(data))))


def edit_marker(data: bytes, rng: random.Random) -> bytes:
    """Another code, another length, a marker more or a marker less."""
    at = rng.choice(places(data) or [0])
    out = bytearray(data)
    what = rng.randrange(5)
    if what == 0:
        out[at + 1 : at + 2] = bytes([rng.choice((*range(0xC0, 0xD0), *range(0xD0, 0xE0), rng.randrange(256)))])
    elif what == 1:
        out[at + 2 : at + 4] = rng.choice((b"\0\0", b"\0\2", b"\xff\xff", rng.randbytes(2)))
    elif what == 2:
        codes = (0xC0, 0xC2, 0xC4, 0xD0, 0xD3, 0xD8, 0xD9, 0xDA, 0xDD, 0xFE, rng.randrange(256))
        out[at:at] = bytes([0xFF, rng.choice(codes)])
    elif what == 3:
        del out[at : at + 2]
    else:
        other = rng.choice(places(data) or [0])
        length = rng.choice((2, 20, 200))
        out[at:at] = data[other : other + length]
    return bytes(out)


def with_checksums(data: bytes) -> bytes:
    """A PNG whose chunks have the checksums that they ought to have, as far as it can be walked."""
    out, at = bytearray(data), 8
    while at + 12 <= len(data):
        end = at + 8 + int.from_bytes(data[at : at + 4], "big")
        if end + 4 > len(data):
            break
        out[end : end + 4] = zlib.crc32(data[at + 4 : end]).to_bytes(4, "big")
        at = end + 4
    return bytes(out)


def append(data: bytes, rng: random.Random) -> bytes:
    return data + rng.choice((bytes(70000), rng.randbytes(100), data[:300], b"\xff\xd8\xff\xc0", b"\xff"))


KINDS: list[Callable[[bytes, random.Random], bytes]] = [
    flip_bytes,
    flip_bits,
    truncate,
    delete,
    duplicate,
    overwrite,
    damage_header,
    damage_header,
    edit_marker,
    edit_marker,
    append,
]


def corrupted(data: bytes, name: str, seed: int) -> tuple[str, bytes]:
    """The kind of damage and the damaged bytes: always the same for a name and a seed."""
    if seed == AS_IT_IS:
        return "as it is", data
    rng = random.Random(f"{name}/{seed}")
    kind = rng.choice(KINDS)
    damaged = kind(data, rng)
    # Most damage to a PNG would end at a checksum.
    sealed = data[:4] == b"\x89PNG" and rng.random() < 0.7
    return kind.__name__, with_checksums(damaged) if sealed else damaged


# ---- verdicts -----------------------------------------------------------------------------------


@dataclass
class Verdict:
    pixels: np.ndarray | None
    text: str  # the size, or why the file is refused
    format: str = ""  # Pillow's name for it, where it got so far
    raised_in: tuple[str, ...] = ()  # Pillow's functions, the innermost last


def pillows(path: Path) -> Verdict:
    format = ""
    try:
        with warnings.catch_warnings(action="ignore"), PIL.Image.open(path) as image:
            format = image.format or ""
            pixels = np.asarray(image.convert("RGB"))
        return Verdict(pixels, f"{pixels.shape[1]}x{pixels.shape[0]}", format)
    except Exception as error:
        frames = tuple(f"{Path(f.filename).stem}.{f.name}" for f in traceback.extract_tb(error.__traceback__))
        return Verdict(None, f"{type(error).__name__}: {error}", format, frames)


def ours(dataset: cw.Dataset, id: int) -> Verdict:
    try:
        pixels = dataset.get(id)["image"]
        return Verdict(pixels, f"{pixels.shape[1]}x{pixels.shape[0]}")
    except cw.SampleError as error:
        return Verdict(None, error.reason)


def agree(a: Verdict, b: Verdict) -> bool:
    if a.pixels is None or b.pixels is None:
        return a.pixels is b.pixels
    return np.array_equal(a.pixels, b.pixels)


def is_progressive(data: bytes) -> bool:
    """A JPEG of several scans, or of a progressive kind."""
    kinds = (b"\xff\xc2", b"\xff\xc6", b"\xff\xca", b"\xff\xce")
    return data[:2] == b"\xff\xd8" and any(kind in data for kind in kinds)


def ends_in_a_frame_marker(data: bytes) -> bool:
    """A frame marker after the first scan began, without the eight bytes that libjpeg reads after it."""
    begin = max(data.find(b"\xff\xda"), len(data) - 9)
    frames = set(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
    return any(data[i] == 0xFF and data[i + 1] in frames for i in range(begin, len(data) - 1))


def decision(data: bytes, we: Verdict, they: Verdict) -> str | None:
    """Which of the differences that docs/images.md lists this is; none of them: a bug."""
    jpeg, png = data[:3] == b"\xff\xd8\xff", data[:8] == b"\x89PNG\r\n\x1a\n"
    if we.pixels is not None and they.pixels is not None:
        return "D1" if is_progressive(data) else None
    if we.pixels is not None:
        if jpeg and "JpegImagePlugin._read_dpi_from_exif" in they.raised_in:
            return "D3"
        if jpeg and any(name.startswith("MpoImagePlugin.") or name.endswith("_getmp") for name in they.raised_in):
            return "D4"
        if jpeg and ends_in_a_frame_marker(data):
            return "D2"
        return "D7" if png and b"PLTE" not in data and b"tRNS" in data else None
    if "max_scans" in we.text or "max_bytes" in we.text:
        return "D9"
    if they.format not in FORMATS:
        return "D10"
    if jpeg and b"\xff\xc3" in data:
        return "D2b"
    if png and data.count(b"IHDR") > 1:
        return "D6"
    return "D8" if png and "text" in we.text and b"iTXt" in data else None


# ---- the run ------------------------------------------------------------------------------------


@dataclass
class Difference:
    file: str
    seed: int
    kind: str
    ours: str
    pillows: str
    decision: str | None
    differing_pixels: int = 0
    largest_step: int = 0


@dataclass
class Report:
    accepted: int
    refused: int
    kinds: Counter[str]
    differences: list[Difference]


def compare(path: Path, corruptions: int, max_pixels: int, keep: Path | None) -> Report:
    """One image and all its corruptions, as files in memory."""
    PIL.Image.MAX_IMAGE_PIXELS = max_pixels // 2  # Pillow refuses above twice this number
    data = path.read_bytes()
    report = Report(0, 0, Counter(), [])
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        seeds = range(AS_IT_IS, corruptions)
        files = [Path(folder) / f"{seed}{path.suffix}" for seed in seeds]
        dataset = cw.files(files).decode(max_pixels=max_pixels)
        for id, (seed, file) in enumerate(zip(seeds, files, strict=True)):
            kind, damaged = corrupted(data, path.name, seed)
            file.write_bytes(damaged)
            we, they = ours(dataset, id), pillows(file)
            file.unlink()
            report.kinds[kind] += 1
            report.refused += they.pixels is None
            report.accepted += they.pixels is not None
            if agree(we, they):
                continue
            difference = Difference(path.name, seed, kind, we.text, they.text, decision(damaged, we, they))
            if we.pixels is not None and they.pixels is not None and we.pixels.shape == they.pixels.shape:
                steps = np.abs(we.pixels.astype(int) - they.pixels)
                difference.differing_pixels = int(steps.any(axis=2).sum())
                difference.largest_step = int(steps.max())
            report.differences.append(difference)
            if keep and not difference.decision:
                (keep / f"{path.stem}.{seed}{path.suffix}").write_bytes(damaged)
    return report


def images_in(folders: list[Path]) -> Iterator[Path]:
    for folder in folders:
        yield from (file for file in sorted(folder.iterdir()) if file.suffix.lower() in ENDINGS)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path, help="folders of images; not searched deeper")
    parser.add_argument("--corruptions", type=int, default=20, help="of each image (20)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    parser.add_argument("--max-pixels", type=int, default=20_000_000, help="limit of both sides (20000000)")
    parser.add_argument("--json", type=Path, help="write the report here")
    parser.add_argument("--keep", type=Path, help="keep the files of differences that are not listed here")
    args = parser.parse_args()
    if args.keep:
        args.keep.mkdir(parents=True, exist_ok=True)

    images = list(images_in(args.folders))
    if not images:
        parser.error(f"no images in {', '.join(map(str, args.folders))}")
    total = Report(0, 0, Counter(), [])
    begin = time.monotonic()
    with ProcessPoolExecutor(args.jobs) as pool:
        jobs = {pool.submit(compare, path, args.corruptions, args.max_pixels, args.keep): path for path in images}
        for done, job in enumerate(as_completed(jobs), 1):
            try:
                report = job.result()
            except BrokenProcessPool:
                print(f"a process died; {jobs[job]} may be why", file=sys.stderr)
                return 1
            total.accepted += report.accepted
            total.refused += report.refused
            total.kinds += report.kinds
            total.differences += report.differences
            if sys.stderr.isatty():
                print(f"\r{done} of {len(images)} images", end="", file=sys.stderr)
    seconds = time.monotonic() - begin

    unlisted = [d for d in total.differences if d.decision is None]
    listed = Counter(d.decision for d in total.differences if d.decision)
    if args.json:
        result = {
            "images": len(images),
            "accepted": total.accepted,
            "refused": total.refused,
            "kinds": total.kinds,
            "listed": listed,
            "differences": [asdict(d) for d in total.differences],
            "seconds": round(seconds, 1),
        }
        args.json.write_text(json.dumps(result, indent=1) + "\n")
    for d in unlisted:
        more = f" ({d.differing_pixels} pixels, up to {d.largest_step})" if d.differing_pixels else ""
        print(f"{d.file} seed {d.seed} ({d.kind}): ours: {d.ours}; Pillow: {d.pillows}{more}")
    files = total.accepted + total.refused
    print(
        f"{len(images)} images, {files} files in {seconds:.0f} s: Pillow accepts {total.accepted}, refuses "
        f"{total.refused}; differences: {len(unlisted)}, and listed: {dict(sorted(listed.items()))}"
    )
    return 1 if unlisted else 0


if __name__ == "__main__":
    sys.exit(main())
