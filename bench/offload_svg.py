#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws plans of a server near the storage: what each policy sends in an epoch, and with how many storage threads.

usage: bench/offload_svg.py NAME=PLAN.json [NAME=PLAN.json ...] [-o docs/offload.svg]

A plan is what `cutwater plan --policy sophon --link RATE -o PLAN.json` writes.
"""

from __future__ import annotations

import argparse
import json
import pathlib
from typing import Any
from xml.sax.saxutils import escape

from plot import STYLE as PLAIN

WIDTH, TOP, PANEL, GAP = 1000, 84, 250, 28
BARS, BARS_RIGHT, LINES, LINES_RIGHT = 108, 500, 618, 900  # from left to right
ROW = 34
OPTION_COLORS = ("#2f6fb3", "#c9772b", "#4f8f5b", "#9a6fb0", "#b3261e", "#57606a")
POLICIES = {
    "sophon": ("#2f6fb3", ""),
    "paper": ("#c9772b", "7 4"),
    "resize-off": ("#4f8f5b", "2 3"),
    "all-off": ("#b3261e", "9 3 2 3"),
    "no-off": ("#57606a", "4 4"),
}
STYLE = (
    PLAIN
    + """
    .line { fill: none; stroke-width: 2; }
    .right { text-anchor: end; }"""
)


def per_sample(value: float, plan: dict[str, Any]) -> float:
    """In kB."""
    return value / plan["samples"] / 1e3


def outcomes(plan: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """By policy, in the order of the picture."""
    found = {row["offload"]["policy"]: row["offload"] for row in [plan["choice"], *plan["alternatives"]]}
    return {policy: found[policy] for policy in POLICIES}


def options_of(plans: dict[str, dict[str, Any]]) -> list[str]:
    """What is sent by anybody, most first: the order of colors."""
    bytes_of: dict[str, float] = {}
    for plan in plans.values():
        for outcome in outcomes(plan).values():
            for share in outcome["shares"]:
                sent = share["samples_share"] / len(plans)
                bytes_of[share["option"]] = bytes_of.get(share["option"], 0) + sent
    return sorted(bytes_of, key=lambda option: -bytes_of[option])


def color_of(option: str, options: list[str]) -> str:
    return OPTION_COLORS[min(options.index(option), len(OPTION_COLORS) - 1)]


def bars(plan: dict[str, Any], options: list[str], top: float) -> list[str]:
    rows = outcomes(plan)
    most = max(outcome["bytes"] for outcome in rows.values())
    raw = rows["no-off"]["bytes"]
    out = []
    for number, (policy, outcome) in enumerate(rows.items()):
        y, x = top + 34 + number * ROW, float(BARS)
        out.append(f'  <text class="name" x="{BARS - 10}" y="{y + 14:.1f}">{policy}</text>')
        for share in outcome["shares"]:
            width = (BARS_RIGHT - BARS) * share["bytes"] / most
            color = color_of(share["option"], options)
            out.append(f'  <rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="20" style="fill: {color}"/>')
            x += width
        words = f"{per_sample(outcome['bytes'], plan):.0f} kB"
        if outcome["bytes"] != raw:
            less = outcome["bytes"] < raw
            times = raw / outcome["bytes"] if less else outcome["bytes"] / raw
            words += f", {times:.2f}x {'less' if less else 'more'}"
        inside = x > BARS_RIGHT - 90
        place = (
            f'class="small right" x="{x - 8:.1f}" style="fill: #ffffff"' if inside else f'class="small" x="{x + 8:.1f}"'
        )
        out.append(f'  <text {place} y="{y + 14:.1f}">{words}</text>')
    return out


def lines(plan: dict[str, Any], top: float) -> list[str]:
    rows, names = plan["offload"]["by_threads"], plan["offload"]["policies"]
    # all-off would flatten the others: what is far above raw ends at the upper edge, and says so.
    raw = rows[0]["bytes"][names.index("no-off")]
    most = min(max(max(row["bytes"]) for row in rows), 1.4 * raw)
    bottom, height = top + PANEL - 46, PANEL - 80
    last = rows[-1]["storage_threads"]

    def x(threads: float) -> float:
        return LINES + (LINES_RIGHT - LINES) * threads / last

    def y(value: float) -> float:
        return bottom - height * min(value, most) / most

    out = []
    for part in range(5):
        value = most * part / 4
        at, words = y(value), f"{per_sample(value, plan):.0f} kB"
        out.append(f'  <line class="grid" x1="{LINES}" y1="{at:.1f}" x2="{LINES_RIGHT}" y2="{at:.1f}"/>')
        out.append(f'  <text class="small right" x="{LINES - 8}" y="{at + 4:.1f}">{words}</text>')
    for row in rows:
        at = x(row["storage_threads"])
        out.append(f'  <text class="small middle" x="{at:.1f}" y="{bottom + 18}">{row["storage_threads"]:.0f}</text>')
    middle = (LINES + LINES_RIGHT) / 2
    out.append(f'  <text class="small middle" x="{middle:.1f}" y="{bottom + 36}">threads near the storage</text>')
    ends: list[tuple[float, str, str]] = []
    for policy, (color, dash) in POLICIES.items():
        values = [row["bytes"][names.index(policy)] for row in rows]
        points = " ".join(f"{x(row['storage_threads']):.1f},{y(v):.1f}" for row, v in zip(rows, values, strict=True))
        out.append(
            f'  <polyline class="line" points="{points}" style="stroke: {color}; stroke-dasharray: {dash or 0}"/>'
        )
        above = f", {per_sample(values[-1], plan):.0f} kB" if values[-1] > most else ""
        ends.append((y(values[-1]), policy, above))
    below = -1e9
    for end, policy, above in sorted(ends):
        below = max(end, below + 16)
        out.append(
            f'  <text class="small" x="{LINES_RIGHT + 10}" y="{below + 4:.1f}" '
            f'style="fill: {POLICIES[policy][0]}">{policy}{above}</text>'
        )
    return out


def described(plans: dict[str, dict[str, Any]]) -> str:
    """The picture in words."""
    return " ".join(
        f"{name}: "
        + ", ".join(f"{policy} {per_sample(o['bytes'], plan):.0f} kB" for policy, o in outcomes(plan).items())
        + "."
        for name, plan in plans.items()
    )


def circumstances(plan: dict[str, Any]) -> str:
    budget = plan["budget"]
    link = f"{budget['link_bytes_per_s'] * 8 / 1e6:.0f} Mb/s" if budget["link_bytes_per_s"] else "any link"
    return f"{link}, storage threads: {budget['storage_threads']:.0f}, trainer's: {budget['threads']}"


def draw(plans: dict[str, dict[str, Any]]) -> str:
    options = options_of(plans)
    height = TOP + len(plans) * (PANEL + GAP) - 12
    title = "What goes over the link for a sample, on average, by policy"
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'role="img" aria-labelledby="title desc">',
        f'  <title id="title">{title}</title>',
        f'  <desc id="desc">{escape(described(plans))}</desc>',
        f"  <style>{STYLE}\n  </style>",
        f'  <rect class="card" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="8"/>',
        f'  <text class="head" x="24" y="34">{title}</text>',
    ]
    x = 24.0
    for option in options[: len(OPTION_COLORS)]:
        out.append(f'  <rect x="{x:.1f}" y="50" width="22" height="10" style="fill: {color_of(option, options)}"/>')
        out.append(f'  <text class="small" x="{x + 28:.1f}" y="60">{escape(option)}</text>')
        x += 46 + 6.8 * len(option)
    for number, (name, plan) in enumerate(plans.items()):
        top = TOP + number * (PANEL + GAP)
        words = f"{name}: {plan['samples']} samples, {circumstances(plan)}"
        out.append(f'  <text x="24" y="{top + 16}">{escape(words)}</text>')
        out += bars(plan, options, top) + lines(plan, top)
    return "\n".join([*out, "</svg>"]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("plans", nargs="+", metavar="NAME=PLAN.json")
    parser.add_argument("-o", "--output", type=pathlib.Path, default=pathlib.Path("docs/offload.svg"))
    arguments = parser.parse_args()
    plans = {}
    for given in arguments.plans:
        name, equals, path = given.rpartition("=")
        if not equals:
            parser.error(f"{given!r} has no name; give NAME=PLAN.json")
        plans[name] = json.loads(pathlib.Path(path).read_text())
    arguments.output.write_text(draw(plans))


if __name__ == "__main__":
    main()
