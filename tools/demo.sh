#!/usr/bin/env bash
# What `make demo` shows after the build: this machine, a measured run, and one batch in Python.
# usage: tools/demo.sh [DATA]    DATA: a folder of images; made when it does not exist
set -euo pipefail
cd "$(dirname "$0")/.."
data=${1:-demo-data}
data=${data%/}
export PATH="$PWD/.venv/bin:$PATH" # doctor looks for torch where python3 does

heading() { printf '\n== %s\n' "$*"; }
show() {
  printf '$ %s\n' "$*"
  "$@"
}

heading "This machine"
show build/bin/cutwater doctor

if [ ! -e "$data" ]; then
  heading "Three hundred photographs for $data (once; drawn, not downloaded)"
  partial=$(mktemp -d "$data.XXXXXX")
  trap 'rm -rf "$partial"' EXIT
  chmod 755 "$partial"
  python tools/make_photos.py "$partial"
  mv "$partial" "$data"
  printf '%s files, %s\n' "$(find "$data" -name '*.jpg' | wc -l)" "$(du -sh "$data" | cut -f1)"
fi

heading "Two epochs of the ImageNet training recipe, and a hash of every byte delivered"
show build/bin/cutwater run --data "$data" --pipeline imagenet-train --batch 64 --epochs 2 --hash

heading "The same from Python"
python - "$data" <<'PYTHON'
import sys

import cutwater as cw

data = cw.folder(sys.argv[1]).apply("imagenet-train")
print(f"{len(data)} samples of {len(data.classes)} classes; sample 0 is {data.path(0)}")
print("what epoch 0 draws for it:")
for draw in data.draws(0, epoch=0, seed=7):
    print("  ", {name: value for name, value in draw.items() if name != "position"})

with cw.DataLoader(data, batch_size=64, shuffle=True, seed=7, output="numpy") as loader:
    for batch in loader:
        if batch.index == 0:
            images = batch["image"]
            print(f"first batch: {batch}")
            print(f"  ids {batch.ids[:6].tolist()}…, {images.dtype}, mean {images.mean():+.4f}, std {images.std():.4f}")
    print("loader.explain():")
    print("   " + loader.explain().replace("\n", "\n   "))
PYTHON

heading "Next"
cat <<TEXT
  make demo DATA=your/images       the same with your own class folders
  build/bin/cutwater run --data $data --pipeline imagenet-train --threads 1 --hash
                                   another number of threads: the hashes stay
  build/bin/cutwater run --data $data --pipeline imagenet-train --step-ms 50
                                   a training step of 50 ms per batch: who waits for whom?
  build/bin/cutwater ops           what a pipeline can be made of
  docs/loader.md                   the loader from Python, argument by argument
TEXT
