#!/usr/bin/env bash
# Each stage beside what bounds it. usage: bench/stages/run.sh [FOLDER of JPEGs]
set -euo pipefail
cd "$(dirname "$0")/../.."
data=${1:-${DATA_DIR:-../shared/data}/imagenet}
if [ ! -d "$data" ]; then
  data=$(mktemp -d)
  trap 'rm -rf "$data"' EXIT
  .venv/bin/python tools/make_photos.py "$data" >/dev/null
  data=$(dirname "$(find "$data" -name '*.jp*g' | head -1)")
fi
cmake --preset release -DCUTWATER_STAGES=ON >/dev/null
cmake --build --preset release --target bench_jpeg bench_resize >/dev/null
build/release/bin/bench_jpeg "$data"
build/release/bin/bench_resize
