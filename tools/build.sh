#!/usr/bin/env bash
# Configures and builds one preset. Prints only what went wrong.
# usage: tools/build.sh PRESET
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1
options=()
[ "$preset" = release ] && options+=(-DCUTWATER_PYTHON=ON "-DPython_EXECUTABLE=$PWD/.venv/bin/python")
pkg=$(dpkg-query -W -f='${db:Status-Status}' libgmock-dev 2>/dev/null || true)
[ "$pkg" = installed ] || options+=(-DCUTWATER_TESTS=OFF)
# Another checkout of the same files finds what this one has compiled.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { cmake --preset "$preset" "${options[@]}" && cmake --build --preset "$preset"; } >"$log" 2>&1; then
  grep -vE '^\[|^ninja: |^--' "$log" >&2 || cat "$log" >&2
  echo "build of preset '$preset' failed" >&2
  exit 1
fi
if [ "$preset" = release ]; then
  ln -sfn release/bin build/bin
  ln -sfn release/python build/python
fi
