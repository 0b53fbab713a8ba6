#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clang-tidy over all sources, in parallel; a file is skipped when neither it, its headers nor the rules have changed
since it last passed, in this checkout or in another of this user.

usage: tidy.py BUILD_FOLDER     (has compile_commands.json)
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def tidy(command, build):
    result = subprocess.run(
        ["clang-tidy", "--quiet", "-p", str(build), "--extra-arg=-Wno-unknown-warning-option", command["file"]],
        capture_output=True,
        text=True,
    )
    return result.returncode, result.stdout


def headers_of(build):
    """The headers of ours that each object was made from, as the compiler told ninja."""
    listed = subprocess.run(["ninja", "-C", str(build), "-t", "deps"], capture_output=True, text=True, check=True)
    headers, current = {}, None
    for line in listed.stdout.splitlines():
        if line.startswith(" "):
            file = pathlib.Path(os.path.normpath(build.resolve() / line.strip()))
            if file.is_relative_to(ROOT) and file.suffix == ".h":
                current.append(str(file))
        elif ": #deps" in line:
            current = headers.setdefault(line.split(":")[0], [])
    return headers


def made_by(command):
    words = command["command"].split()
    return words[words.index("-o") + 1]


def everything():
    """For an object that ninja knows nothing of."""
    return [str(f) for f in (*ROOT.glob("include/**/*.h"), *ROOT.glob("src/**/*.h"), *ROOT.glob("cli/*.h"))]


def main():
    build = pathlib.Path(sys.argv[1])
    commands = [
        c
        for c in json.loads((build / "compile_commands.json").read_text())
        if pathlib.Path(c["file"]).is_relative_to(ROOT)
        and not c["file"].endswith("_test.cc")
        and pathlib.Path(c["file"]).relative_to(ROOT).parts[0] in ("src", "cli")
    ]
    passed_dir = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "cutwater/tidy"
    passed_dir.mkdir(parents=True, exist_ok=True)
    headers = headers_of(build)
    rules = (ROOT / ".clang-tidy").read_bytes()

    def stamp(command):
        """Where it is noted that this very text has passed."""
        content = hashlib.sha256(rules)
        for file in sorted({command["file"], *headers.get(made_by(command), everything())}):
            content.update(f"{os.path.relpath(file, ROOT)}\n".encode())
            content.update(pathlib.Path(file).read_bytes())
        return passed_dir / content.hexdigest()

    todo = [c for c in commands if not stamp(c).exists()]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for command, (code, output) in zip(todo, pool.map(lambda c: tidy(c, build), todo), strict=True):
            if code == 0:
                stamp(command).touch()
            else:
                failed += 1
                print(output)
    print(f"clang-tidy: {len(commands)} files, {len(todo)} looked at, {failed} with findings")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
