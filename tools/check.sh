#!/usr/bin/env bash
# What review should not have to find: format, lint, layers, generated files, types, clang-tidy.
set -euo pipefail
cd "$(dirname "$0")/.."

git ls-files -co --exclude-standard '*.h' '*.cc' | xargs clang-format --dry-run --Werror
.venv/bin/ruff check --quiet .
.venv/bin/ruff format --check --quiet . || { echo "ruff format: run 'make format'" >&2; exit 1; }
python3 tools/check_layers.py
tools/generate.sh --check
.venv/bin/mypy --no-error-summary
python3 tools/tidy.py build/release
echo "check: all fine"
