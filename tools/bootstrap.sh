#!/usr/bin/env bash
# Installs what is missing, by package name; silent and quick when all is there.
# usage: tools/bootstrap.sh build|test
#   build   compilers, codecs, a virtual environment in .venv with what building needs
#   test    also clang, sanitizers, a browser, a Redis server, torch and torchvision, and .venvs/pillow12
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:-build}

packages=(g++ cmake ninja-build ccache make python3 python3-venv python3-dev
          libjpeg-dev zlib1g-dev libwebp-dev libhwy-dev
          libcli11-dev nlohmann-json3-dev libtomlplusplus-dev libxxhash-dev liburing-dev
          libzstd-dev liblz4-dev libhiredis-dev libssl-dev
          libgrpc++-dev libprotobuf-dev protobuf-compiler prometheus-cpp-dev)
if [ "$what" = test ]; then
  packages+=(clang clang-format clang-tidy libclang-rt-14-dev libgtest-dev libgmock-dev
             chromium redis-server openssl)
fi

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  sudo=""
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || { echo "run as root, or install: ${missing[*]}" >&2; exit 1; }
    sudo=sudo
  fi
  echo "installing: ${missing[*]}" >&2
  $sudo apt-get update -qq
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

# install_into VENV REQUIREMENTS: only when the requirements have changed since the last time.
install_into() {
  local stamp
  stamp="$1/.$(basename "$2").sha256"
  [ -x "$1/bin/pip" ] || python3 -m venv "$1"
  if ! sha256sum --check --status "$stamp" 2>/dev/null; then
    echo "installing into $1: $2" >&2
    "$1/bin/pip" install --quiet --disable-pip-version-check -r "$2"
    sha256sum "$2" >"$stamp"
  fi
}

install_into .venv requirements/build.txt
if [ "$what" = test ]; then
  install_into .venv requirements/test.txt
  install_into .venvs/pillow12 requirements/pillow12.txt
fi

# The virtual environment imports cutwater from the build folder.
site=$(echo .venv/lib/python3*/site-packages)
[ -f "$site/cutwater-build.pth" ] || echo "$PWD/build/python" >"$site/cutwater-build.pth"
