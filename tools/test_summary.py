#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds up the test reports of a folder; the last line is `N passed, M failed`.

A report that is missing (a crash before it was written) counts as one failure.
"""

import json
import pathlib
import sys
import xml.etree.ElementTree as ET

EXPECTED = ("cpp-release.json", "cpp-dev.json", "cpp-tsan.json", "python.xml")


def main():
    folder = pathlib.Path(sys.argv[1])
    passed = failed = skipped = 0
    for name in EXPECTED:
        report = folder / name
        if not report.exists():
            print(f"{name}: missing, the run crashed")
            failed += 1
            continue
        if report.suffix == ".json":
            run = json.loads(report.read_text())
            bad = run["failures"] + run["errors"]
            skip = sum(t.get("result") == "SKIPPED" for s in run["testsuites"] for t in s["testsuite"])
            good = run["tests"] - bad - skip - run["disabled"]
        else:
            suites = ET.parse(report).getroot().iter("testsuite")
            good = bad = skip = 0
            for suite in suites:
                wrong = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
                bad += wrong
                skip += int(suite.get("skipped", 0))
                good += int(suite.get("tests", 0)) - wrong - int(suite.get("skipped", 0))
        print(f"{name}: {good} passed, {bad} failed, {skip} skipped")
        passed, failed, skipped = passed + good, failed + bad, skipped + skip
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
