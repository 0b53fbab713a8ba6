# SPDX-License-Identifier: Apache-2.0
"""Loaders that are closed, dropped, forked or too slow: clear errors, no thread left, no wait without end."""

from __future__ import annotations

import gc
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import ids_of, run_python, save, seen, stream, threads_of, until

import cutwater as cw

TEXT = "decode | random_resized_crop(16)"


@pytest.fixture
def ds(photos: Path) -> cw.Dataset:
    return cw.folder(photos).apply(TEXT)


@pytest.fixture(autouse=True)
def no_loader_of_an_earlier_test() -> None:
    gc.collect()


def loader(ds: cw.Dataset, **options: Any) -> cw.DataLoader:
    return cw.DataLoader(ds, **{"batch_size": 4, "num_workers": 3} | options)


def test_close_ends_the_iteration_and_the_threads(ds: cw.Dataset) -> None:
    before = threads_of()
    feed = loader(ds)
    it = iter(feed)
    batch = next(it)
    assert threads_of() == before + 3
    kept = seen(batch)
    feed.close()
    feed.close()  # twice is once
    with pytest.raises(cw.Closed) as caught:
        next(it)
    assert isinstance(caught.value, ValueError) and "closed" in str(caught.value)
    assert until(lambda: threads_of() <= before)
    assert seen(batch) == kept


@pytest.mark.parametrize("used", [True, False], ids=["after use", "never used"])
def test_a_closed_loader_does_not_start_again(ds: cw.Dataset, used: bool) -> None:
    feed = loader(ds)
    if used:
        stream(feed)
    feed.close()
    with pytest.raises(cw.Closed):
        stream(feed)


def test_leaving_the_context_closes(ds: cw.Dataset) -> None:
    before = threads_of()
    with loader(ds) as feed:
        assert len(stream(feed)) == 6
    assert until(lambda: threads_of() <= before)
    with pytest.raises(RuntimeError, match="in the block"), loader(ds) as feed:
        next(iter(feed))
        raise RuntimeError("in the block")
    assert until(lambda: threads_of() <= before)


@pytest.mark.parametrize("order", ["strict", "ready"])
def test_loaders_dropped_half_way_leave_nothing(ds: cw.Dataset, order: str) -> None:
    before = threads_of()
    kept = []
    for k in range(30):
        it = iter(loader(ds, order=order, shuffle=True, seed=k))
        kept.append(next(it))
        if k % 3 == 0:
            next(it)
        del it
    gc.collect()
    assert until(lambda: threads_of() <= before)
    assert all(len(batch[0]) == 4 for batch in kept)


def test_close_wakes_a_waiting_consumer(slow: cw.Dataset) -> None:
    feed = loader(slow, batch_size=8, num_workers=1)
    it = iter(feed)
    closer = threading.Thread(target=feed.close)
    closer.start()
    with pytest.raises(cw.Closed):
        next(it)
    closer.join()


@pytest.fixture(scope="session")
def slow(tmp_path_factory: pytest.TempPathFactory) -> cw.Dataset:
    """16 images that take a thread some tenths of a second each."""
    path = save(tmp_path_factory.mktemp("slow") / "large.png", np.zeros((4000, 6000, 3), np.uint8), compress_level=1)
    return cw.files([path] * 16).decode().resize((8, 8), interpolation="lanczos")


def test_a_timeout_is_an_error_and_not_the_end(slow: cw.Dataset) -> None:
    feed = loader(slow, batch_size=4, num_workers=1, timeout=0.001)
    it = iter(feed)
    ids: list[int] = []
    timeouts = 0
    while len(ids) < 8:
        try:
            ids += ids_of([next(it)])
        except cw.Timeout as error:
            assert isinstance(error, TimeoutError) and "0.001" in str(error)
            timeouts += 1
        except StopIteration:
            break
    assert timeouts > 0
    assert ids == list(range(8))


def test_without_a_timeout_a_slow_batch_is_waited_for(slow: cw.Dataset) -> None:
    with loader(slow, batch_size=4, num_workers=1) as feed:
        assert ids_of([next(iter(feed))]) == [0, 1, 2, 3]


FORK = """
import os, signal, sys, time, cutwater as cw
ds = cw.folder(sys.argv[1]).apply("decode | random_resized_crop(64)")
loader = cw.DataLoader(ds, batch_size=4, num_workers=4, output="numpy")
leave = {"at once": os._exit, "as usual": sys.exit}[sys.argv[2]]
for turn in range(30):
    it = iter(loader)
    next(it)
    child = os.fork()
    if child == 0:
        signal.alarm(10)  # a child that hangs is killed by this
        try:
            next(it)
        except cw.Error as error:
            leave(7 if "after the fork" in str(error) else 8)
        leave(9)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status != 7:
        print("child", turn, "ended with", status)
        break
print(len(list(loader)) == len(loader))
"""


@pytest.mark.parametrize("leave", ["at once", "as usual"])
def test_use_after_a_fork_is_an_error_and_not_a_hang(photos: Path, leave: str) -> None:
    result = run_python(FORK, photos, leave)
    assert (result.stdout, result.stderr) == ("True\n", "")


def test_a_loader_made_in_the_child_works(photos: Path) -> None:
    code = """
import os, sys, cutwater as cw
def ids():
    ds = cw.folder(sys.argv[1]).apply("decode | resize([8, 8])")
    return [int(i) for b in cw.DataLoader(ds, batch_size=4, output="numpy") for i in b.ids]
expected = ids()
child = os.fork()
if child == 0:
    sys.exit(0 if ids() == expected else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    result = run_python(code, photos)
    assert result.stdout == "0\n", result.stderr


@pytest.mark.parametrize("ending", ["", "sys.exit(0)", "del it", "loader.close()"])
def test_the_interpreter_ends_with_work_under_way(photos: Path, ending: str) -> None:
    code = f"""
import sys, cutwater as cw
ds = cw.folder(sys.argv[1]).apply("decode | random_resized_crop(64)")
loader = cw.DataLoader(ds, batch_size=2, num_workers=4, output="numpy")
it = iter(loader)
batch = next(it)
{ending}
"""
    result = run_python(code, photos)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_ctrl_c_ends_a_wait(slow: cw.Dataset) -> None:
    code = f"""
import os, signal, threading, cutwater as cw
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
slow = cw.files([{slow.path(0)!r}] * 64).decode().resize((8, 8))
loader = cw.DataLoader(slow, batch_size=64, num_workers=1, output="numpy")
made = lambda: loader.stats()["ops"]["decode+resize"]["calls"]
def interrupt():
    while made() == 0: pass
    os.kill(os.getpid(), signal.SIGINT)
try:
    it = iter(loader)
    threading.Thread(target=interrupt).start()
    next(it)
except KeyboardInterrupt:
    print(0 < made() < 64)
"""
    result = run_python(code)
    assert result.stdout == "True\n", result.stderr
