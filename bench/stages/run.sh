#!/usr/bin/env bash
# Each stage beside what bounds it. usage: bench/stages/run.sh [FOLDER of JPEGs]
set -euo pipefail
cd "$(dirname "$0")/../.."
made="" server=""
trap 'rm -rf "$made"; [ -z "$server" ] || kill "$server"' EXIT
data=${1:-${DATA_DIR:-../shared/data}/imagenet}
if [ ! -d "$data" ]; then
  made=$(mktemp -d)
  .venv/bin/python tools/make_photos.py "$made" >/dev/null
  data=$(dirname "$(find "$made" -name '*.jp*g' | head -1)")
fi
cmake --preset release -DCUTWATER_STAGES=ON >/dev/null
cmake --build --preset release --target bench_jpeg bench_redis bench_resize >/dev/null
build/release/bin/bench_jpeg "$data"
build/release/bin/bench_resize
if command -v redis-server >/dev/null; then
  port=16379
  redis-server --port $port --bind 127.0.0.1 --save "" --appendonly no >/dev/null &
  server=$!
  until redis-cli -p $port ping >/dev/null 2>&1; do kill -0 $server; done
  build/release/bin/bench_redis $port
fi
