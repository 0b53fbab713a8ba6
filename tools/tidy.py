#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clang-tidy over all sources, in parallel; a file is skipped when neither it, its headers nor the
rules have changed since it last passed.

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
    return command["file"], result.returncode, result.stdout


def main():
    build = pathlib.Path(sys.argv[1])
    commands = [
        c
        for c in json.loads((build / "compile_commands.json").read_text())
        if pathlib.Path(c["file"]).is_relative_to(ROOT)
        and not c["file"].endswith("_test.cc")
        and pathlib.Path(c["file"]).relative_to(ROOT).parts[0] in ("src", "cli")
    ]
    headers = hashlib.sha256((ROOT / ".clang-tidy").read_bytes())
    for header in sorted([*ROOT.glob("include/**/*.h"), *ROOT.glob("src/**/*.h"), *ROOT.glob("cli/*.h")]):
        headers.update(header.read_bytes())
    passed_dir = build / "tidy"
    passed_dir.mkdir(exist_ok=True)

    def stamp(file):
        return passed_dir / hashlib.sha256(headers.digest() + pathlib.Path(file).read_bytes()).hexdigest()

    todo = [c for c in commands if not stamp(c["file"]).exists()]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for file, code, output in pool.map(lambda c: tidy(c, build), todo):
            if code == 0:
                stamp(file).touch()
            else:
                failed += 1
                print(output)
    print(f"clang-tidy: {len(commands)} files, {len(todo)} looked at, {failed} with findings")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
