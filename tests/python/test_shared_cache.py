# SPDX-License-Identifier: Apache-2.0
"""The daemon of the shared cache as a process: its face, its manners, and what becomes of what clients held.

The client's side of the same is in src/cache/shared_cache_test.cc.
"""

from __future__ import annotations

import getpass
import json
import os
import random
import resource
import signal
import socket
import stat
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from cache_client import CLEAR, COMMIT, HELLO, LEAVE, LIST, MIB, STAT, Client, Daemon, Gone
from helpers import command, until
from trial_caches import serve

HERE = Path(__file__).resolve().parent


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Of a socket, in a folder that is ours alone."""
    folder = tmp_path / "own"
    folder.mkdir(mode=0o700)
    return folder / "cache.sock"


def test_serves_and_leaves_nothing_behind(path: Path) -> None:
    with Daemon(path, "16MiB") as daemon:
        assert daemon.ready == {"socket": str(path), "limit": 16 * MIB, "pid": daemon.process.pid}
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        client = Client(path)
        assert client.limit == 16 * MIB
        assert client.put(1, b"value")
        for number in (signal.SIGTERM, signal.SIGINT):
            assert daemon.end(number) == 0
            assert not path.exists()
            assert client.socket.recv(100) == b"", "the client hears of it"
            assert client.memory.find(b"value") > 0, "and still has the memory"
            daemon = Daemon(path)
            client = Client(path)
            client.put(1, b"value")
        daemon.end()
    assert f"cutwater cache: 16.0 MiB at {path}" in daemon.log.read_text()


def test_a_second_daemon_is_told_who_serves(path: Path) -> None:
    with Daemon(path) as daemon:
        second = command("cache", "serve", "--memory", "1MiB", "--socket", path)
        assert second.returncode == 1
        assert f"by process {daemon.process.pid}" in second.stderr
        assert daemon.ask("stat")["pid"] == daemon.process.pid, "the first one serves on"
        daemon.end(signal.SIGKILL)
        assert path.exists()
    with Daemon(path, "2MiB") as daemon:
        assert daemon.ask("stat")["limit"] == 2 * MIB


def test_the_folder_must_be_ours(path: Path) -> None:
    path.parent.chmod(0o770)
    refused = command("cache", "serve", "--memory", "1MiB", "--socket", path)
    assert refused.returncode == 2
    assert "must belong to you" in refused.stderr and str(path.parent) in refused.stderr
    assert not path.exists()


def test_the_default_place_is_the_users(path: Path) -> None:
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(path.parent)}
    default = path.parent / "cutwater" / "cache.sock"
    none = command("cache", "stat", env=environment)
    assert none.returncode == 1
    assert none.stderr.endswith(f"nobody serves a cache at {default}; start one: cutwater cache serve --memory 8GiB\n")
    with Daemon(default, say_where=False, env=environment) as daemon:
        assert daemon.ready["socket"] == str(default)
        assert stat.S_IMODE(default.parent.stat().st_mode) == 0o700
        assert command("cache", "stat", env=environment).returncode == 0


def test_the_socket_has_the_names_that_a_loader_knows(path: Path) -> None:
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(path.parent)}
    default = path.parent / "cutwater" / "cache.sock"
    for name, place in ((f"unix:{path}", path), ("shared", default), ("unix:", default)):
        with Daemon(place, "16MiB", "--socket", name, say_where=False, env=environment) as daemon:
            assert daemon.ready["socket"] == str(place)
            assert Client(place).put(1, b"value")
            for verb in (["stat"], ["ls"], ["clear", "--all"]):
                run = command("cache", *verb, "--socket", name, "--json", env=environment)
                assert run.returncode == 0, run.stderr
                assert json.loads(run.stdout).get("socket", str(place)) == str(place)
            assert daemon.ask("stat")["entries"] == 0


def test_without_a_daemon_the_verbs_say_how_to_start_one(path: Path) -> None:
    for verb in (["stat"], ["ls"], ["clear", "--all"]):
        run = command("cache", *verb, "--socket", path)
        assert run.returncode == 1 and run.stdout == ""
        assert f"nobody serves a cache at {path}" in run.stderr
        assert f"cutwater cache serve --memory 8GiB --socket {path}" in run.stderr


def test_clear_removes_what_a_killed_daemon_left(path: Path) -> None:
    with Daemon(path) as daemon:
        daemon.end(signal.SIGKILL)
    assert path.exists()
    run = command("cache", "clear", "--all", "--socket", path, "--json")
    assert run.returncode == 0 and json.loads(run.stdout) == {"entries": 0, "bytes": 0}
    assert f"who served a cache at {path} was killed" in run.stderr
    assert not path.exists()
    with Daemon(path) as daemon:
        assert command("cache", "clear", "--all", "--socket", path).returncode == 0
        assert path.exists() and daemon.ask("stat")["entries"] == 0


@pytest.mark.parametrize(
    "words, reason",
    [
        (["clear"], "say what to clear"),
        (["clear", "--all", "--data", "1"], "say what to clear"),
        (["clear", "--form", "xyz"], "--form must be a number as 'cutwater cache ls' shows it, got 'xyz'"),
        (["serve", "--memory", "much"], "--memory must be a size"),
        (["serve", "--memory", "1000TiB"], "that this process may use; make it smaller"),
        (["serve", "--memory", "1MiB", "--quota", "alice"], "--quota must be USER=SIZE"),
        (["serve", "--memory", "1MiB", "--quota", "no-such-user=1MiB"], "there is no user 'no-such-user'"),
        (["serve", "--memory", "1MiB", "--quota", "0=much"], "--quota must be a size"),
    ],
)
def test_wrong_usage(path: Path, words: list[str], reason: str) -> None:
    run = command("cache", *words, "--socket", path)
    assert run.returncode == 2 and reason in run.stderr


def test_a_redis_server_is_not_ours_to_serve() -> None:
    run = command("cache", "serve", "--memory", "1MiB", "--socket", "redis://x")
    assert run.returncode == 2 and "a Redis server is started by redis-server" in run.stderr


def test_stat_ls_and_clear(path: Path) -> None:
    with Daemon(path) as daemon:
        empty = daemon.ask("stat")
        assert empty["entries"] == empty["clients"] == 0
        assert empty["by_form"] == empty["users"] == empty["jobs"] == []
        client = Client(path)
        sizes = {(1, 2): 3, (1, 3): 4, (2, 2): 5}
        for (data, form), count in sizes.items():
            for sample in range(count):
                assert client.put(sample, bytes(1000), data=data, form=form)
        client.join("tom", 50, data=1, form=2)
        client.join("\udcff \x1b[2J odd", 60, data=2, form=9)  # no text, and a terminal would obey it
        now = daemon.ask("stat")
        assert now["entries"] == 12 and now["clients"] == 1
        assert empty["bytes"] + 12 * 1000 < now["bytes"] < empty["bytes"] + 12 * 1024 + 1024
        forms = [
            {"data": f"{data:016x}", "form": f"{form:016x}", "entries": n, "bytes": n * 1000, "seats": seats}
            for (data, form), n, seats in zip(sizes, sizes.values(), (1, 0, 0), strict=True)
        ]
        assert now["by_form"] == forms
        assert daemon.ask("ls") == {"socket": str(path), "forms": forms}
        assert [(user["user"], user["entries"], user["quota"]) for user in now["users"]] == [
            (getpass.getuser(), 12, None)
        ]
        tom = {"job": "tom", "pid": os.getpid(), "data": f"{1:016x}", "samples": 50, "had": 0}
        assert tom in now["jobs"] and len(now["jobs"]) == 2
        for verb in ("stat", "ls"):
            text = command("cache", verb, "--socket", path)
            assert text.returncode == 0 and text.stdout.count("\n") >= 4
        assert daemon.ask("clear", "--data", "1", "--form", "3") == {"entries": 4, "bytes": 4000}
        assert daemon.ask("clear", "--form", f"{2:016x}") == {"entries": 8, "bytes": 8000}
        client.put(1, bytes(10))
        assert "1 entries" in command("cache", "clear", "--all", "--socket", path).stdout
        client.close()
        assert until(lambda: daemon.ask("stat")["clients"] == 0)
        after = daemon.ask("stat")
        assert after["bytes"] == empty["bytes"], "nothing is left behind"
        assert after["entries"] == 0 and after["jobs"] == []


def test_stat_has_the_same_keys_of_every_cache(path: Path, tmp_path: Path) -> None:
    """A Redis server counts hits, but not whose they are."""
    keys = {"bytes", "limit", "entries", "hits", "misses", "by_form"}
    with Daemon(path) as daemon:
        assert keys <= daemon.ask("stat").keys()
    with serve("redis", MIB, tmp_path) as redis:
        run = command("cache", "stat", "--socket", redis.name, "--json")
        assert run.returncode == 0, run.stderr
        now = json.loads(run.stdout)
        assert keys <= now.keys() and now["hits"] is None and now["misses"] is None
        assert "hits" not in command("cache", "stat", "--socket", redis.name).stdout


def test_a_quota_bounds_what_one_user_keeps(path: Path) -> None:
    with Daemon(path, "16MiB", "--quota", f"{getpass.getuser()}=1MiB") as daemon:
        client = Client(path)
        kept = [sample for sample in range(40) if client.put(sample, bytes(100_000))]
        assert kept == list(range(10))
        user = daemon.ask("stat")["users"][0]
        assert user["quota"] == MIB and user["entries"] == 10 and user["bytes"] <= MIB
        daemon.ask("clear", "--all")
        assert client.put(99, bytes(100_000))


GARBAGE = [b"", b"\0", bytes(7), bytes(8), b"\1\0\0\0\2\0\0\0", b"GET / HTTP/1.1\r\n\r\n", b"A" * 5000, b"\xff" * 56]


def test_garbage_ends_a_connection_and_nothing_else(path: Path) -> None:
    with Daemon(path) as daemon:
        good = Client(path)
        rng = random.Random(3)
        for garbage in [*GARBAGE, *(rng.randbytes(rng.randrange(1, 400)) for _ in range(200))]:
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as bad:
                bad.settimeout(20)
                bad.connect(str(path))
                bad.send(garbage)
                assert bad.recv(8192) == b"", garbage
        for kind, body in [
            (HELLO, struct.pack("<II", 1, 0)),  # a second one
            (COMMIT, struct.pack("<Q", 77)),
            (LEAVE, struct.pack("<II", 3, 0)),
            (LIST, struct.pack("<IIQQ", 9, 1, 0, 0)),
            (CLEAR, struct.pack("<IIQQ", 7, 0, 0, 0)),
            (99, b""),
            (STAT, b"\0"),
        ]:
            bad_client = Client(path)
            assert bad_client.put(5, b"held")  # what it may be reading stays its own until it has gone
            with pytest.raises(Gone):
                bad_client.ask(kind, body)
            assert daemon.ask("stat")["clients"] == 2
            bad_client.close()
            assert until(lambda: daemon.ask("stat")["clients"] == 1)
            daemon.ask("clear", "--all")
        assert good.put(1, b"still served")
        assert daemon.log.read_text().count("is disconnected: it said nonsense") > 100


HOLDER = """
import os, signal, sys
from cache_client import Client
client = Client(sys.argv[1])
assert client.reserve(5, 300_000)
client.join("doomed", 100_000)
print("ready", flush=True)
signal.pause()
"""


def test_a_killed_client_gives_back_what_it_held(path: Path) -> None:
    with Daemon(path) as daemon:
        before = daemon.ask("stat")["bytes"]
        words = [sys.executable, "-c", HOLDER, str(path)]
        with subprocess.Popen(words, cwd=HERE, stdout=subprocess.PIPE, text=True) as holder:
            assert holder.stdout and holder.stdout.readline() == "ready\n"
            now = daemon.ask("stat")
            assert now["bytes"] > before + 300_000 and now["clients"] == 1
            assert [(job["job"], job["pid"]) for job in now["jobs"]] == [("doomed", holder.pid)]
            holder.kill()
        assert until(lambda: daemon.ask("stat")["clients"] == 0)
        after = daemon.ask("stat")
        assert after["bytes"] == before and after["jobs"] == []
        assert Client(path).put(5, b"free again")


def test_there_may_be_more_clients_than_seats_and_numbers(path: Path) -> None:
    with Daemon(path) as daemon:
        clients = []
        with pytest.raises(AssertionError):  # the hello that is refused
            while True:
                clients.append(Client(path))
        assert 8 <= len(clients) <= 64
        assert daemon.ask("stat")["clients"] == len(clients), "questions need no number"
        clients.pop().close()
        assert until(lambda: daemon.ask("stat")["clients"] == len(clients))
        Client(path)


FEW_PAGES = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
int fallocate(int fd, int mode, off_t offset, off_t length) {
  if (offset + length > 8 << 20) { errno = ENOSPC; return -1; }
  return ((int (*)(int, int, off_t, off_t))dlsym(RTLD_NEXT, "fallocate"))(fd, mode, offset, length);
}
int fallocate64(int fd, int mode, off_t offset, off_t length) { return fallocate(fd, mode, offset, length); }
"""


def test_memory_that_the_system_refuses_is_a_full_cache(path: Path, tmp_path: Path) -> None:
    """The machine has 8 MiB left for a cache of 64: it is full there, and nobody is killed."""
    source, library = tmp_path / "few.c", tmp_path / "few.so"
    source.write_text(FEW_PAGES)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True)
    with Daemon(path, "64MiB", env={**os.environ, "LD_PRELOAD": str(library)}) as daemon:
        client = Client(path)
        kept = [sample for sample in range(100) if client.put(sample, bytes([sample]) * 300_000)]
        assert 15 <= len(kept) <= 28 and kept == list(range(len(kept)))
        for sample in kept:
            assert client.memory.find(bytes([sample]) * 1000) >= 0
        assert until(lambda: "the system has no more memory for it" in daemon.log.read_text())
        assert daemon.ask("stat")["entries"] == len(kept)


def test_a_file_size_limit_is_an_error_at_the_start(path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (MIB, MIB))

    run = command("cache", "serve", "--memory", "16MiB", "--socket", path, preexec_fn=limit)
    assert run.returncode == 1
    assert "a cache of 16.0 MiB that processes share cannot be made: File too large" in run.stderr
    assert not path.exists()


def test_help_names_every_verb() -> None:
    text = command("cache", "--help").stdout
    assert all(verb in text for verb in ("serve", "stat", "ls", "clear"))
    assert "--quota" in command("cache", "serve", "--help").stdout
