# SPDX-License-Identifier: Apache-2.0
"""The picture of residents.py: three charts over one axis of time, plain SVG on a white card."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any
from xml.sax.saxutils import escape

from plot import STYLE as PLAIN
from plot import step

WIDTH, LEFT, RIGHT = 1000, 78, 190
TOP, GAP = 104, 40
HEIGHTS = (190, 130, 100)  # of the bytes, the progress, the hits
WINDOW_S = 1.0
COLORS = ("#2f6fb3", "#c9772b", "#4f8f5b")  # of forms; of jobs
STYLE = (
    PLAIN
    + """
    .axis { stroke: #57606a; }
    .limit { stroke: #b3261e; stroke-dasharray: 6 4; }
    .line { fill: none; stroke-width: 2; }
    .right { text-anchor: end; }"""
)
Points = list[tuple[float, float]]


class Chart:
    """A rectangle in which (seconds, value) has a place."""

    def __init__(self, top: float, height: float, seconds: float, most: float) -> None:
        self.top, self.bottom = top, top + height
        self._x = (WIDTH - LEFT - RIGHT) / seconds
        self._y = height / most

    def x(self, seconds: float) -> float:
        return LEFT + seconds * self._x

    def y(self, value: float) -> float:
        return self.bottom - value * self._y

    def path(self, points: Points) -> str:
        return " ".join(f"{self.x(s):.1f},{self.y(v):.1f}" for s, v in points)

    def frame(self, title: str, marks: Sequence[tuple[float, str]], seconds: float) -> list[str]:
        out = [f'  <text x="{LEFT}" y="{self.top - 10:.1f}">{escape(title)}</text>']
        for value, words in marks:
            y = self.y(value)
            out.append(f'  <line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{self.x(seconds):.1f}" y2="{y:.1f}"/>')
            out.append(f'  <text class="small right" x="{LEFT - 8}" y="{y + 4:.1f}">{escape(words)}</text>')
        return out


def bytes_by_form(report: dict[str, Any]) -> dict[str, Points]:
    """Of the forms that were ever there, in the order of the pipeline."""
    found: dict[str, Points] = {}
    for form, known in report["forms"].items():
        points = [
            (row["s"], float(sum(one["bytes"] for one in row["by_form"] if one["form"] == form)))
            for row in report["rows"]
        ]
        if any(value for _, value in points):
            found[known["name"]] = points
    return found


def progress(report: dict[str, Any], job: str) -> Points:
    """Epochs of samples that a job has got, while it was there. At the end that is more than its epochs: it works
    ahead."""
    points: Points = []
    epoch, before = 0, 0
    for row in report["rows"]:
        for seat in row["jobs"]:
            if seat["job"] == job:
                epoch += seat["had"] < before
                before = seat["had"]
                points.append((row["s"], epoch + before / seat["samples"]))
    return points


def at(points: Points, seconds: float) -> float:
    """The last value up to then; 0 before the first."""
    return next((value for s, value in reversed(points) if s <= seconds), 0.0)


def hit_share(report: dict[str, Any], courses: list[Points]) -> Points:
    """Hits by samples that jobs got, in the second before. The daemon's misses do not count samples: a job asks for
    each form of one."""
    hits = [(row["s"], float(row["hits"])) for row in report["rows"]]
    points: Points = []
    for s, _ in hits:
        had = report["samples"] * sum(at(course, s) - at(course, s - WINDOW_S) for course in courses)
        if s >= WINDOW_S and had > 0:
            points.append((s, min(1.0, (at(hits, s) - at(hits, s - WINDOW_S)) / had)))
    return points


def resident_chart(chart: Chart, report: dict[str, Any], end: float) -> list[str]:
    limit = report["rows"][-1]["limit"]
    apart = step(limit / 1e6)
    marks = [(mb * 1e6, f"{mb} MB") for mb in range(0, int(limit / 1e6) + 1, apart)]
    out = chart.frame("Resident, by form", marks, end)
    below: Points = [(row["s"], 0.0) for row in report["rows"]]
    by_form = bytes_by_form(report)
    for number, (color, (name, points)) in enumerate(zip(COLORS, by_form.items(), strict=False)):
        above = [(s, value + under) for (s, value), (_, under) in zip(points, below, strict=True)]
        area = f"{chart.path(above)} {chart.path(below[::-1])}"
        out.append(f'  <polygon points="{area}" style="fill: {color}; fill-opacity: 0.75"/>')
        below = above
        out += legend(chart, number, color, f"as '{name}'")
    y = chart.y(limit)
    out.append(f'  <line class="limit" x1="{LEFT}" y1="{y:.1f}" x2="{chart.x(end):.1f}" y2="{y:.1f}"/>')
    out.append(f'  <text class="small" x="{chart.x(end) + 14:.1f}" y="{y + 4:.1f}">the limit, books included</text>')
    return out


def legend(chart: Chart, number: int, color: str, words: str) -> list[str]:
    x, y = WIDTH - RIGHT + 14, chart.top + 30 + 20 * number
    return [
        f'  <rect x="{x}" y="{y - 10:.1f}" width="22" height="10" style="fill: {color}; fill-opacity: 0.75"/>',
        f'  <text class="small" x="{x + 30}" y="{y:.1f}">{escape(words)}</text>',
    ]


def progress_chart(chart: Chart, report: dict[str, Any], courses: list[Points], end: float) -> list[str]:
    marks = [(float(epoch), str(epoch)) for epoch in range(report["epochs"] + 1)]
    out = chart.frame("Epochs that each job has gone through", marks, end)
    for number, (color, name, points) in enumerate(zip(COLORS, report["jobs"], courses, strict=True)):
        seen = [(s, min(value, float(report["epochs"]))) for s, value in points]
        out.append(f'  <polyline class="line" points="{chart.path(seen)}" style="stroke: {color}"/>')
        out += legend(chart, number, color, f"{name}, {points[-1][0] - points[0][0]:.1f} s")
    return out


def hits_chart(chart: Chart, report: dict[str, Any], courses: list[Points], end: float) -> list[str]:
    out = chart.frame("Hits, of the samples of the last second", [(0, "0"), (0.5, "50 %"), (1, "100 %")], end)
    out.append(
        f'  <polyline class="line" points="{chart.path(hit_share(report, courses))}" style="stroke: {COLORS[0]}"/>'
    )
    for second in range(0, math.floor(end) + 1, step(end)):
        out.append(f'  <text class="small middle" x="{chart.x(second):.1f}" y="{chart.bottom + 18}">{second} s</text>')
    return out


def described(report: dict[str, Any], courses: list[Points]) -> str:
    """The picture in words."""
    last = report["rows"][-1]
    names = " and ".join(f"'{name}'" for name in bytes_by_form(report))
    lasted = ", ".join(f"{points[-1][0] - points[0][0]:.1f} s" for points in courses)
    return (
        f"The cache fills up to its limit of {last['limit'] / 1e6:.0f} MB with samples as {names}. "
        f"The jobs, each started later than the one before, take {lasted}. Hits rise and fall with their number."
    )


def draw(report: dict[str, Any]) -> str:
    rows = report["rows"]
    courses = [progress(report, job) for job in report["jobs"]]
    end = max(row["s"] for row in rows)
    tops = [TOP + sum(HEIGHTS[:i]) + GAP * i for i in range(len(HEIGHTS))]
    most = (rows[-1]["limit"] * 1.04, float(report["epochs"]), 1.0)
    resident, epochs, hits = (
        Chart(top, height, end, value) for top, height, value in zip(tops, HEIGHTS, most, strict=True)
    )
    height = tops[-1] + HEIGHTS[-1] + 40
    title = f"{len(courses)} jobs around one cache with room for {100 * report['share']:.0f} % of all samples' pixels"
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'role="img" aria-labelledby="title desc">',
        f'  <title id="title">{title}</title>',
        f'  <desc id="desc">{escape(described(report, courses))}</desc>',
        f"  <style>{STYLE}\n  </style>",
        f'  <rect class="card" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="8"/>',
        f'  <text class="head" x="24" y="34">{title}</text>',
        f'  <text class="small" x="24" y="56">imagenet-train, order ready; {escape(report["data"])}; split '
        f"{escape(report['split'] or 'chosen')}; "
        f"a job takes a batch of {report['batch']} every {report['step_ms']} ms</text>",
        *resident_chart(resident, report, end),
        *progress_chart(epochs, report, courses, end),
        *hits_chart(hits, report, courses, end),
        "</svg>",
    ]
    return "\n".join(out) + "\n"
