# SPDX-License-Identifier: Apache-2.0
"""The tables that a report of peers.py is shown as: plain text, and Markdown between two markers."""

from __future__ import annotations

import pathlib
from typing import Any

BEGIN, END = "<!-- table begin -->", "<!-- table end -->"
HEADINGS = [
    ("loader", "images/s", "worst-best", "spread", "ours/it", "it/torch", "CPU us/img"),
    ("memory MB", "first batch s", "pixels max / mean", "prepared"),
]


def difference(row: dict[str, Any]) -> str:
    pixels = row["pixels"]
    return "equal" if pixels["max"] == 0 else f"{pixels['max']} / {pixels['mean']:.2g}"


def label(name: str, row: dict[str, Any]) -> str:
    """With the variant, where the row was chosen from several."""
    return f"{name} ({row['variant']})" if "variants" in row else name


def cells(name: str, row: dict[str, Any]) -> list[str]:
    def ratio(what: str) -> str:
        return "-" if row[what] is None else f"{row[what]:.2f}"

    return [
        label(name, row),
        f"{row['median']:.0f}",
        f"{row['worst']:.0f}-{row['best']:.0f}",
        f"{100 * row['spread']:.0f} %",
        ratio("ours_to_it"),
        ratio("it_to_torch"),
        f"{row['cpu_us_per_image']:.0f}",
        f"{row['memory_mb']:.0f}",
        f"{row['first_batch_s']:.2f}",
        difference(row),
        row["prepared"] or "-",
    ]


def headings() -> list[str]:
    return [heading for part in HEADINGS for heading in part]


def title(report: dict[str, Any], cores: str) -> str:
    return (
        f"{cores} core{'s' if cores != '1' else ''} of {report['processor']}; {report['data']}; "
        f"{report['rounds']} alternating rounds of {report['epochs']} epochs"
    )


def text_table(report: dict[str, Any], cores: str) -> str:
    table = report["cores"][cores]
    lines = [headings(), *(cells(name, row) for name, row in table.items() if "cannot_run" not in row)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    shown = [f"\n{title(report, cores)}"]
    for line in lines:
        first, *rest = (
            cell.ljust(width) if i in (0, len(line) - 1) else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        shown.append("  " + "  ".join([first, *rest]).rstrip())
    shown += [f"  {name}: cannot run: {row['cannot_run']}" for name, row in table.items() if "cannot_run" in row]
    return "\n".join(shown)


def markdown(report: dict[str, Any]) -> str:
    parts = []
    for cores, table in report["cores"].items():
        lines = [headings(), ["---"] * len(headings())]
        for name, row in table.items():
            if "cannot_run" in row:
                failed = row["cannot_run"].replace("|", "\\|")
                lines.append([name, f"cannot run: {failed}", *[""] * (len(headings()) - 2)])
            else:
                lines.append(cells(name, row))
        parts.append(f"**{title(report, cores)}**\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines))
    versions: dict[str, str] = {}
    for table in report["cores"].values():
        for row in table.values():
            versions |= row.get("versions", {})
    named = ", ".join(f"{package} {version}" for package, version in sorted(versions.items()))
    return "\n\n".join([*parts, f"Versions: Python {report['python']}, {named}."])


def rewrite(document: pathlib.Path, report: dict[str, Any]) -> None:
    """Replaces what stands between the markers, with the picture of plot.py if it lies beside the document."""
    before, found, rest = document.read_text().partition(BEGIN)
    _, closed, after = rest.partition(END)
    if not found or not closed:
        raise SystemExit(f"{document}: no {BEGIN} followed by {END}")
    picture = document.with_suffix(".svg")
    shown = f"![Images per second and core]({picture.name})\n\n" if picture.exists() else ""
    document.write_text(f"{before}{BEGIN}\n\n{shown}{markdown(report)}\n\n{END}{after}")
