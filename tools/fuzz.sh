#!/usr/bin/env bash
# Runs every fuzzer of build/fuzz (or those named), two at a time, for SECONDS in all. One line for
# each; an input that breaks a promise is kept in build/fuzz-found, and makes the status 1.
# usage: tools/fuzz.sh SECONDS [TARGET…]
set -euo pipefail
cd "$(dirname "$0")/.."
total=${1:?usage: tools/fuzz.sh SECONDS [TARGET…]}
shift
at_a_time=2
seeds=build/fuzz-seeds corpus=build/fuzz-corpus found=build/fuzz-found logs=build/fuzz-logs

targets=("$@")
if [ ${#targets[@]} = 0 ]; then
  for source in tests/fuzz/fuzz_*.cc; do targets+=("$(basename "$source" .cc | sed s/^fuzz_//)"); done
fi
for target in "${targets[@]}"; do
  [ -x "build/fuzz/bin/fuzz_$target" ] || { echo "no target '$target': see tests/fuzz" >&2; exit 2; }
done
each=$((total * at_a_time / ${#targets[@]}))
[ $each -ge 1 ] || each=1
mkdir -p "$logs"
memory=/dev/shm
[ -w $memory ] || memory=/tmp
TMPDIR=$(mktemp -d $memory/cutwater-fuzz.XXXXXX) # one target writes files
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
.venv/bin/python tools/make_seeds.py "$seeds"

# one TARGET: fuzzes from what was ever found and what earlier runs have learned.
one() {
  local target=$1 log="$logs/$1.log" status=0 folder dictionary=()
  local folders=("$corpus/$target")
  mkdir -p "$corpus/$target" "$found/$target"
  for folder in "$seeds/$target" "tests/fuzz/found/$target"; do
    [ -d "$folder" ] && folders+=("$folder")
  done
  [ -f "tests/fuzz/$target.dict" ] && dictionary=("-dict=tests/fuzz/$target.dict")
  "build/fuzz/bin/fuzz_$target" -max_total_time="$each" -timeout=20 -rss_limit_mb=2048 -malloc_limit_mb=64 \
    -print_final_stats=1 -artifact_prefix="$found/$target/" "${dictionary[@]}" "${folders[@]}" >"$log" 2>&1 || status=$?
  local runs speed coverage input
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  speed=$(sed -n 's/^stat::average_exec_per_sec: *//p' "$log")
  coverage=$(grep -o ' cov: [0-9]*' "$log" | tail -1 | cut -d' ' -f3 || true)
  input=$(sed -n 's/.*Test unit written to //p' "$log")
  printf '%-14s %9s executions  %6s/s  coverage %5s  found %s\n' \
    "$target" "${runs:-?}" "${speed:-?}" "${coverage:-?}" "${input:-nothing}"
  [ $status = 0 ] && return
  grep -m1 -A1 -E 'broken promise|ERROR: |runtime error' "$log" | sed 's/^/  /'
  echo "  again: build/fuzz/bin/fuzz_$target ${input:-(no input was kept; see $log)}"
  return 1
}
export -f one
export each seeds corpus found logs
printf '%s\n' "${targets[@]}" | xargs -P "$at_a_time" -I{} bash -c 'one {}' ||
  { echo "fuzz: promises are broken; see above" >&2; exit 1; }
echo "fuzz: nothing found in $each s for each of ${#targets[@]} targets"
