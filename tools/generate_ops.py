#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes python/cutwater/_ops.py and docs/ops.md from the table of ops, so that they never disagree.

usage: generate_ops.py COMMAND [--check]    COMMAND: the built `cutwater`, whose `ops --json` is read
"""

import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def default_text(value):
    return repr(tuple(value)) if isinstance(value, list) and len(value) != 1 else repr(value)


def methods(ops):
    lines = [
        "# SPDX-License-Identifier: Apache-2.0",
        "# Made by tools/generate_ops.py from the table of ops: do not edit.",
        '"""One method per op, with the parameters of the table."""',
        "",
        "from __future__ import annotations",
        "",
        "from collections.abc import Sequence",
        "from typing import TYPE_CHECKING, Any",
        "",
        "if TYPE_CHECKING:",
        "    from cutwater.dataset import Dataset",
        "",
        "",
        "class Ops:",
        '    """The ops as methods; each returns a new data set."""',
        "",
        "    def _then(self, op: str, **params: Any) -> Dataset:",
        "        raise NotImplementedError",
    ]
    for op in ops:
        signature = ["self"]
        for p in op["params"]:
            # Enums of torchvision, torch and NumPy are accepted where the table says str.
            kind = "Any" if p["type"] == "str" else p["type"]
            if not p["required"] and p["default"] is None and "None" not in kind:
                kind += " | None"
            signature.append(f"{p['name']}: {kind}" + ("" if p["required"] else f" = {default_text(p['default'])}"))
        call = ", ".join([repr(op["name"])] + [f"{p['name']}={p['name']}" for p in op["params"]])
        lines += ["", f"    def {op['name']}("]
        lines += [f"        {part}," for part in signature]
        lines += ["    ) -> Dataset:"]
        doc = [op["doc"]]
        if op["draws"]:
            doc.append("Draws random numbers per sample and epoch.")
        if op["params"]:
            doc += [""] + [f"{p['name']}: {p['doc']}" for p in op["params"]]
        lines.append(f'        """{doc[0]}' + ('"""' if len(doc) == 1 else ""))
        if len(doc) > 1:
            lines += [("        " + line).rstrip() for line in doc[1:]] + ['        """']
        lines.append(f"        return self._then({call})")
    return "\n".join(lines) + "\n"


def reference(ops):
    lines = [
        "<!-- Made by tools/generate_ops.py from the table of ops: do not edit. -->",
        "# Ops",
        "",
        "Each op is a method of a data set, a name in the text of a pipeline, and a row of `cutwater ops`.",
        "Ops that draw random numbers are marked; cuts before the first of them are stable.",
    ]
    for op in ops:
        lines += ["", f"## {op['name']}", "", op["doc"] + (" *Draws.*" if op["draws"] else "")]
        if op["params"]:
            lines += ["", "| parameter | type | default | |", "|---|---|---|---|"]
            for p in op["params"]:
                default = "required" if p["required"] else f"`{default_text(p['default'])}`"
                kind = p["type"].replace("|", "\\|")
                lines.append(f"| `{p['name']}` | `{kind}` | {default} | {p['doc']} |")
    return "\n".join(lines) + "\n"


def main():
    command, check = sys.argv[1], "--check" in sys.argv
    ops = json.loads(subprocess.run([command, "ops", "--json"], check=True, capture_output=True, text=True).stdout)
    stale = []
    for path, text in (("python/cutwater/_ops.py", methods(ops["ops"])), ("docs/ops.md", reference(ops["ops"]))):
        file = ROOT / path
        if not file.exists() or file.read_text() != text:
            stale.append(path)
            if not check:
                file.write_text(text)
    if stale and check:
        sys.exit(f"not up to date: {', '.join(stale)}; run `make generate`")


if __name__ == "__main__":
    main()
