#!/usr/bin/env bash
# Rewrites the files that are made from the table of ops and from the Python module; with --check,
# only says whether they are up to date.
set -euo pipefail
cd "$(dirname "$0")/.."
.venv/bin/python tools/generate_ops.py build/bin/cutwater "$@"
stub=$(mktemp)
trap 'rm -f "$stub"' EXIT
{
  echo "# SPDX-License-Identifier: Apache-2.0"
  echo "# Made by tools/generate.sh from the built module: do not edit."
  .venv/bin/python -m nanobind.stubgen -q -m cutwater._core -o /dev/stdout
} >"$stub"
if ! cmp -s "$stub" python/cutwater/_core.pyi; then
  [ "${1:-}" != --check ] || { echo "not up to date: python/cutwater/_core.pyi; run 'make generate'" >&2; exit 1; }
  cp "$stub" python/cutwater/_core.pyi
fi
