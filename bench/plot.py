#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws a report of peers.py as bars, plain SVG on a white card, and can renew the table of a document.

usage: bench/plot.py OUT.json [-o docs/performance.svg] [--markdown docs/performance.md]
"""

from __future__ import annotations

import argparse
import json
import pathlib
from typing import Any
from xml.sax.saxutils import escape

from report import label, rewrite

WIDTH, LEFT, RIGHT, TOP, BAR, GAP = 1000, 290, 170, 96, 13, 12
STYLE = """
    .card { fill: #ffffff; stroke: #d0d7de; }
    .ours { fill: #2f6fb3; stroke: #2f6fb3; }
    .peer { fill: #8c959f; stroke: #8c959f; }
    .other { fill-opacity: 0.22; stroke-dasharray: 3 2; }
    .grid { stroke: #d8dee4; }
    text { font-family: ui-sans-serif, system-ui, -apple-system, "Segoe UI", "DejaVu Sans", Helvetica, Arial,
      sans-serif; font-size: 13.5px; fill: #1f2328; }
    .head { font-size: 16px; font-weight: 600; }
    .small { font-size: 12px; fill: #57606a; }
    .name { text-anchor: end; }
    .middle { text-anchor: middle; }"""


def step(most: float) -> int:
    """The distance of grid lines: 1, 2 or 5 times a power of ten, at most eight of them."""
    return next(s * 10**p for p in range(9) for s in (1, 2, 5) if most / (s * 10**p) <= 8)


def entries(report: dict[str, Any]) -> list[tuple[str, dict[str, dict[str, Any]]]]:
    """Rows by name, with their numbers for each count of cores: ours first, then the peers by speed."""
    tables: dict[str, dict[str, Any]] = report["cores"]
    first = next(iter(tables.values()))
    peers = sorted(
        (name for name in first if not ours(name)), key=lambda name: first[name].get("median", 0), reverse=True
    )
    order = [name for name in first if ours(name)] + peers
    return [(name, {cores: table[name] for cores, table in tables.items() if name in table}) for name in order]


def ours(name: str) -> bool:
    return name.startswith("cutwater")


def note(row: dict[str, Any]) -> str:
    pixels = row["pixels"]
    words = [f"pixels up to {pixels['max']} off"] if pixels["max"] else []
    return "; ".join(words + ([row["prepared"]] if row["prepared"] else []))


def draw(report: dict[str, Any]) -> str:
    rows = entries(report)
    counts = list(report["cores"])
    rates = [row["median"] / int(n) for _, by_cores in rows for n, row in by_cores.items() if "median" in row]
    most = max(rates, default=1.0)
    scale = (WIDTH - LEFT - RIGHT) / most
    pitch = max(2, len(counts)) * BAR + GAP
    height = TOP + len(rows) * pitch + 62
    bottom = TOP + len(rows) * pitch
    title = "Images per second and core, from JPEG files to float32 batches"
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'role="img" aria-labelledby="title desc">',
        f'  <title id="title">{title}</title>',
        f'  <desc id="desc">{escape(described(rows))}</desc>',
        f"  <style>{STYLE}\n  </style>",
        f'  <rect class="card" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="8"/>',
        f'  <text class="head" x="24" y="34">{title}</text>',
        f'  <text class="small" x="24" y="56">RandomResizedCrop(224), flip, normalize; {escape(report["data"])}; '
        f"{escape(report['processor'])}; median of {report['rounds']} alternating rounds</text>",
        f'  <text class="small" x="24" y="76">Bars of a loader, from above: with {" and ".join(counts)} '
        f"core{'s' if counts != ['1'] else ''}</text>",
    ]
    for value in range(0, int(most) + 1, step(most)):
        x = LEFT + value * scale
        out.append(f'  <line class="grid" x1="{x:.1f}" y1="{TOP - 8}" x2="{x:.1f}" y2="{bottom}"/>')
        out.append(f'  <text class="small middle" x="{x:.1f}" y="{bottom + 16}">{value}</text>')
    for i, (name, by_cores) in enumerate(rows):
        out += draw_row(name, by_cores, TOP + i * pitch, scale)
    y = height - 20
    out += [
        f'  <rect class="ours" x="24" y="{y - 10}" width="22" height="10"/>',
        f'  <rect class="peer" x="50" y="{y - 10}" width="22" height="10"/>',
        f'  <text class="small" x="80" y="{y}">the pixels of torchvision on Pillow</text>',
        f'  <rect class="peer other" x="330" y="{y - 10}" width="22" height="10"/>',
        f'  <text class="small" x="360" y="{y}">other pixels</text>',
        "</svg>",
    ]
    return "\n".join(out) + "\n"


def draw_row(name: str, by_cores: dict[str, dict[str, Any]], top: int, scale: float) -> list[str]:
    first = next(iter(by_cores.values()))
    middle = top + len(by_cores) * BAR / 2 + 4
    if "median" not in first:
        return [
            f'  <text class="name" x="{LEFT - 10}" y="{middle:.1f}">{escape(name)}</text>',
            f'  <text class="small" x="{LEFT + 6}" y="{middle:.1f}">could not run</text>',
        ]
    above = 5 if note(first) else 0
    out = [f'  <text class="name" x="{LEFT - 10}" y="{middle - above:.1f}">{escape(label(name, first))}</text>']
    if note(first):
        out.append(f'  <text class="small name" x="{LEFT - 10}" y="{middle + 9:.1f}">{escape(note(first))}</text>')
    kind = ("ours" if ours(name) else "peer") + (" other" if first["pixels"]["max"] else "")
    for k, (cores, row) in enumerate(by_cores.items()):
        if "median" not in row:
            continue
        rate = row["median"] / int(cores)
        y = top + k * BAR
        out.append(f'  <rect class="{kind}" x="{LEFT}" y="{y}" width="{rate * scale:.1f}" height="{BAR - 2}"/>')
        ratio = f", {row['it_to_torch']:.1f} x torch" if row["it_to_torch"] else ""
        out.append(
            f'  <text class="small" x="{LEFT + rate * scale + 7:.1f}" y="{y + BAR - 3}">{rate:.0f}{ratio}</text>'
        )
    return out


def described(rows: list[tuple[str, dict[str, dict[str, Any]]]]) -> str:
    """The picture in words."""
    said = []
    for name, by_cores in rows:
        rates = [f"{row['median'] / int(n):.0f}" for n, row in by_cores.items() if "median" in row]
        said.append(f"{name} {' and '.join(rates) if rates else 'could not run'}")
    return "; ".join(said) + "."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=pathlib.Path)
    parser.add_argument("-o", "--output", type=pathlib.Path)
    parser.add_argument("--markdown", type=pathlib.Path, help="a document whose table is to be replaced")
    options = parser.parse_args()
    report = json.loads(options.report.read_text())
    if options.output:
        options.output.write_text(draw(report))
    if options.markdown:
        rewrite(options.markdown, report)


if __name__ == "__main__":
    main()
