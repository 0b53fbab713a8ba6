# SPDX-License-Identifier: Apache-2.0
"""What all parts of sophon.py measure with: the data, the two sides of a link, and servers and trainers on them."""

from __future__ import annotations

import functools
import json
import os
import pathlib
from typing import Any

from peers import data_folder
from rows import ROOT
from sophon_net import CUTWATER, Keys, Loopback, Network, Refused, Server, Trainer, call


def verdict(held: bool) -> str:
    return "holds" if held else "FALLS SHORT"


def build_stage(name: str) -> str:
    """The program of bench/stages/NAME.cc."""
    call("cmake", "--preset", "release", "-DCUTWATER_STAGES=ON", "-S", ROOT)
    call("cmake", "--build", ROOT / "build/release", "--target", f"bench_{name}")
    return str(ROOT / f"build/release/bin/bench_{name}")


class Setup:
    def __init__(self, options: Any, scratch: pathlib.Path, network: Network) -> None:
        self.network, self.scratch = network, scratch
        self.kinds: list[str] = options.kinds.split(",")
        self.mbits = [int(mbit) for mbit in options.mbits.split(",")]
        self.threads = [int(count) for count in options.threads.split(",")]
        self.rounds: int = options.rounds
        self.root = pathlib.Path(os.environ.get("DATA_DIR") or ROOT.parent / "shared" / "data")
        if missing := [kind for kind in self.kinds if not (self.root / kind).is_dir()]:
            raise Refused(f"no folder {', '.join(missing)} in {self.root}; set DATA_DIR")

    @functools.cached_property
    def keys(self) -> Keys:
        return Keys.make(self.scratch)

    @functools.cache  # noqa: B019  (one of these in a process)
    def data(self, kind: str, least: int) -> str:
        """A class folder of links to these files, each so many times that there are about `least`."""
        folder, _ = data_folder(str(self.root / kind), least, self.scratch / f"{kind}-{least}")
        return folder

    def server(self, data: dict[str, str], threads: int, apart: bool = False, more: tuple[Any, ...] = ()) -> Server:
        return Server(self.network, self.keys, data, threads, apart, more)

    def loopback_server(self, data: dict[str, str], threads: int) -> Server:
        """Without a link, TLS or a token."""
        return Server(Loopback(), self.keys, data, threads)

    @staticmethod
    def trainer(server: Server, name: str, pipeline: str, policy: str, epochs: int, *more: Any) -> Trainer:
        return Trainer(server, name, pipeline, policy, epochs, *more)

    @staticmethod
    def local_hash(data: str) -> str:
        """Of an epoch from the files themselves."""
        said = call(CUTWATER, "run", "--data", data, "--pipeline", "imagenet-train", "--batch", 16, "--threads", 1,
                    "--seed", 1, "--hash", "--json")  # fmt: skip
        found: str = json.loads(said)["epochs"][0]["stream_hash"]
        return found
