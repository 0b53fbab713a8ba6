#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Refuses includes against the layer table of ARCHITECTURE.md.

Reads the table between the markers `layers:begin` and `layers:end` there: per module its layer, what it
may include, and which public headers (include/cutwater) belong to it. Since `run` may not include `ops`, it
cannot name an op.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#include "([^"]+)"', re.M)


def read_table():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    block = text.split("layers:begin", 1)[1].split("layers:end", 1)[0]
    allowed, headers = {}, {}
    for line in block.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) < 4 or not cells[0].isdigit():
            continue
        module = cells[1].strip("`")
        allowed[module] = {name.strip(" `") for name in cells[2].split(",") if name.strip(" `—")}
        for header in re.findall(r"`([a-z_]+\.h)`", cells[3]):
            headers[header] = module
    return allowed, headers


def module_of(path, headers, allowed):
    """The module that a file belongs to, by its folder."""
    parts = path.relative_to(ROOT).parts
    if parts[0] == "include":
        return headers.get(parts[-1], "public" if parts[-1] == "cutwater.h" else None)
    if parts[0] in ("cli", "python", "bench"):
        return parts[0]
    if len(parts) == 2:  # src/loader.cc
        return "loader"
    if parts[1] == "ops":
        return f"ops/{parts[2]}" if len(parts) > 3 else "ops"
    return parts[1]


def main():
    allowed, headers = read_table()
    problems = []
    for path in sorted(
        [*ROOT.glob("src/**/*"), *ROOT.glob("include/**/*"), *ROOT.glob("cli/*"), *ROOT.glob("python/bind/*")]
    ):
        if path.suffix not in (".h", ".cc") or path.name.endswith("_test.cc") or path.name.startswith("test_"):
            continue
        module = module_of(path, headers, allowed)
        name = path.relative_to(ROOT)
        if module == "public":
            continue
        if module not in allowed:
            problems.append(f"{name}: module {module!r} is not in the layer table of ARCHITECTURE.md")
            continue
        for included in INCLUDE.findall(path.read_text()):
            if included.startswith("cutwater/"):
                target = headers.get(included.removeprefix("cutwater/"), "public")
            else:
                found = ROOT / "src" / included
                if not found.exists():  # beside the file: the same module
                    continue
                target = module_of(found, headers, allowed)
            if target not in (module, *allowed[module]) and "all" not in allowed[module]:
                problems.append(f"{name}: {module} may not include {target} ({included})")
    print("\n".join(problems) if problems else f"layers: {len(allowed)} modules, no include against the table")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
