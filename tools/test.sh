#!/usr/bin/env bash
# All tests. C++ as g++ compiles it for users, as clang does with ASan and UBSan, and with TSan; Python with the
# references beside us; the same stream from g++ and from clang; pip install in an empty environment.
# The last line is "N passed, M failed" over everything. Reports go to build/reports.
set -uo pipefail
cd "$(dirname "$0")/.."
reports=build/reports
rm -rf "$reports"
mkdir -p "$reports"

for preset in dev tsan; do
  echo "== building $preset"
  tools/build.sh "$preset" || exit 1
done

# Some kernels place memory more randomly than TSan of g++ 12 can bear.
steady=()
setarch "$(uname -m)" -R true 2>/dev/null && steady=(setarch "$(uname -m)" -R)

# gRPC is not compiled for TSan, which then sees races in whatever goes through it: what runs a server is left out
# there. The server's own threads are tested without one (Workshop), and the rest with the other sanitizers.
by_grpc="RemoteStream.*:RemoteTrouble.*:RemoteParts.*:Server*:SlowClients.*"

for preset in release dev tsan; do
  echo "== C++ tests, $preset"
  filter="*"
  [ "$preset" = tsan ] && filter="-$by_grpc"
  "${steady[@]}" build/$preset/bin/cutwater_tests --gtest_brief=1 --gtest_filter="$filter" --gtest_output=json:"$reports/cpp-$preset.json" ||
    echo "cutwater_tests ($preset) ended with status $?"
done

echo "== Python tests"
.venv/bin/python -m pytest --junitxml="$reports/python.xml" || true

python3 tools/test_summary.py "$reports"
