# SPDX-License-Identifier: Apache-2.0
"""Fixtures, and a watchdog: a test that hangs ends the run and shows where it stood."""

from __future__ import annotations

import faulthandler
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from helpers import data_folder, link_classes, noise, save

import cutwater as cw

HANGS_AFTER_SECONDS = 120
_stderr = -1


def pytest_configure(config: pytest.Config) -> None:
    global _stderr
    config.addinivalue_line("markers", "patient(seconds): may take longer than others before it counts as hung")
    torch.set_num_threads(1)  # references are small: a thread pool only disturbs
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it, and so would theirs
    with config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        _stderr = os.dup(2)


@pytest.fixture(autouse=True)
def watchdog(request: pytest.FixtureRequest) -> Iterator[None]:
    patient = request.node.get_closest_marker("patient")
    seconds = patient.args[0] if patient else HANGS_AFTER_SECONDS
    faulthandler.dump_traceback_later(seconds, exit=True, file=_stderr)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture
def one_image(tmp_path: Path) -> Callable[..., cw.Dataset]:
    """one_image(height, width): a data set of one image of noise, not decoded yet."""

    def make(height: int, width: int, seed: int = 0) -> cw.Dataset:
        return cw.files([save(tmp_path / f"{height}x{width}_{seed}.png", noise(height, width, seed))])

    return make


@pytest.fixture(scope="session")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """23 small JPEGs of different sizes in three classes."""
    root = tmp_path_factory.mktemp("photos")
    for k in range(23):
        (root / f"class{k % 3}").mkdir(exist_ok=True)
        save(root / f"class{k % 3}" / f"{k:02}.jpg", noise(20 + k, 50 - k, seed=k, block=5))
    return root


@pytest.fixture(scope="session")
def real_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every file of imagenet/ and photos/ of the real data, as class folders of links."""
    folders = data_folder("imagenet"), data_folder("photos")
    return link_classes(tmp_path_factory.mktemp("real"), *folders)
