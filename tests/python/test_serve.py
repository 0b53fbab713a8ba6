# SPDX-License-Identifier: Apache-2.0
"""`cutwater serve` as its users and its enemies see it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
from helpers import COMMAND, command, noise, save, until
from serve_process import ServeProcess

PIPELINE = "decode | random_resized_crop(24) | random_horizontal_flip | to_tensor"
TOKEN = "correct horse battery"


def run(data: object, *options: object, pipeline: str = PIPELINE, **how: Any) -> dict[str, Any]:
    ran = command("run", "--data", data, "--pipeline", pipeline, "--batch", 8, "--hash", "--json", *options, **how)
    assert ran.returncode == 0, ran.stderr
    result: dict[str, Any] = json.loads(ran.stdout)
    return result


def stream_of(result: dict[str, Any]) -> list[str]:
    return [epoch["stream_hash"] for epoch in result["epochs"]]


def fails(*words: object, **how: Any) -> str:
    """The one line that it says."""
    ran = command(*words, **how)
    assert ran.returncode != 0
    assert ran.stdout == ""
    lines = ran.stderr.strip().splitlines()
    assert len(lines) == 1, ran.stderr
    return lines[0]


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text(TOKEN + "\n")
    file.chmod(0o600)
    return file


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """ca.pem vouches for server.pem, which is that of 127.0.0.1; other.pem for nobody here."""
    if not shutil.which("openssl"):
        pytest.skip("no openssl")
    folder = tmp_path_factory.mktemp("certificates")

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    for name in ("ca", "other"):
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.pem",
                "-subj", f"/CN={name}", "-days", "2")  # fmt: skip
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=here")
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
            "-extfile", "names", "-out", "server.pem")  # fmt: skip
    return folder


def test_the_stream_is_that_of_the_files(photos: Path) -> None:
    expected = stream_of(run(photos, "--epochs", 2))
    with ServeProcess(photos) as server:
        for policy in ("auto", "sophon", "none", "no-off", "all-off", "resize-off", "paper"):
            result = run(server.url(), "--epochs", 2, "--policy", policy)
            assert stream_of(result) == expected, policy
            assert result["offload"]["policy"] == policy
            assert result["wire_bytes"] == result["offload"]["wire_bytes"] > 0
            by_epoch = [epoch["wire_bytes"] for epoch in result["epochs"]]
            assert 0 < by_epoch[0] <= sum(by_epoch) <= result["wire_bytes"], "what comes ahead is of the epoch before"
            times = result["offload"]["times"]
            assert (times is not None) == (policy in ("auto", "sophon", "paper"))
            for when in times or ():
                assert set(times[when]) == {"consumer_s", "compute_s", "storage_s", "network_s"}
                assert all(seconds >= 0 for seconds in times[when].values())


@pytest.fixture(scope="module")
def large_photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """48 photographs that are worth sending parts of."""
    root = tmp_path_factory.mktemp("large")
    for k in range(48):
        (root / f"class{k % 3}").mkdir(exist_ok=True)
        save(root / f"class{k % 3}" / f"{k:02}.jpg", noise(300 + k, 400 - k, seed=k, block=4), quality=90)
    return root


@pytest.mark.parametrize("secret", [False, True])
def test_the_stream_is_that_of_the_files_however_it_is_sent(
    large_photos: Path, secret: bool, token_file: Path, certificates: Path
) -> None:
    """Each way of the policies is really taken, on a link that makes it worth while."""
    pipeline = "decode | random_resized_crop(64) | random_horizontal_flip | to_tensor"
    expected = stream_of(run(large_photos, "--epochs", 3, pipeline=pipeline))
    options: tuple[object, ...] = ("--threads", 1)
    if secret:
        options += ("--tls-cert", certificates / "server.pem", "--tls-key", certificates / "server.key",
                    "--token-file", token_file)  # fmt: skip
    known = os.environ | {"CUTWATER_TOKEN": TOKEN, "CUTWATER_CA": str(certificates / "ca.pem")}
    taken: dict[str, set[str]] = {}
    with ServeProcess(large_photos, options=options) as server:
        url = f"grpcs://{server.address}/" if secret else server.url()
        for policy in ("auto", "sophon", "none", "all-off", "resize-off", "paper"):
            result = run(url, "--epochs", 3, "--policy", policy, "--link", "10Mb/s", pipeline=pipeline, env=known)
            assert stream_of(result) == expected, policy
            taken[policy] = {name for name, way in result["offload"]["by_way"].items() if way["samples"]}
    assert taken["none"] == {"raw"}
    for policy in ("auto", "sophon"):
        assert taken[policy] & {"excerpt"}, f"{policy}: {taken}"
    for policy in ("all-off", "resize-off", "paper"):
        assert taken[policy] - {"raw"}, f"{policy}: {taken}"


def test_a_run_from_a_server_can_record_a_profile(photos: Path, tmp_path: Path) -> None:
    """Samples that are recorded come as they are stored, whatever the policy would send."""
    expected = stream_of(run(photos))
    with ServeProcess(photos) as server:
        for policy in ("none", "all-off"):
            kept = tmp_path / policy
            assert stream_of(run(server.url(), "--policy", policy, "--profile", kept)) == expected
            about = command("plan", "--profile", kept, "--json")
            assert about.returncode == 0, about.stderr


def test_says_where_it_is(photos: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with ServeProcess(f"first={photos}", photos, options=("--threads", 0, "--metrics", 0), log=log) as server:
        assert server.ready["pid"] == server.process.pid
        assert server.ready["threads"] == 0
        assert server.ready["data"] == [{"name": "first", "samples": 23}, {"name": photos.name, "samples": 23}]
        assert f"grpc://{server.address}/first: 23 samples, 0 threads for ops" in log.read_text()
        for name in ("first", photos.name):
            ways = run(server.url(name), "--policy", "all-off")["offload"]["by_way"]
            samples = [way["samples"] for way in ways.values()]
            assert samples[0] >= 23 and not any(samples[1:]), "without threads, everything goes as stored"
        assert "no data set ''; it has 'first'" in fails("run", "--data", server.url(), "--pipeline", PIPELINE)


def test_a_share_of_the_cores_is_a_thread_or_more_and_none_is_none(photos: Path) -> None:
    for share, threads in ((0, 0), (0.001, 1)):
        with ServeProcess(photos, options=("--cpu-share", share)) as server:
            assert server.ready["threads"] == threads


def metrics_of(server: ServeProcess) -> dict[str, float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.ready['metrics_port']}/metrics", timeout=20) as page:
        lines = [line.split() for line in page.read().decode().splitlines() if not line.startswith("#")]
    return {words[0].removeprefix("cutwater_"): float(words[1]) for words in lines}


def test_metrics_are_told(photos: Path) -> None:
    with ServeProcess(photos, options=("--metrics", 0)) as server:
        assert metrics_of(server)["answers_total"] == 0
        run(server.url(), "--policy", "all-off")
        values = metrics_of(server)
        assert values["answers_total"] >= 23
        assert values["failures_total"] == 0
        assert values["op_seconds_total"] > 0
        assert values["stored_bytes_total"] > 0
        assert {"sent_bytes_total", "ran_less_total", "clients", "orders_waiting", "held_bytes"} <= values.keys()


def test_the_cache_is_in_the_metrics(photos: Path) -> None:
    with ServeProcess(photos, options=("--threads", 1, "--metrics", 0, "--cache", "16MiB")) as server:
        pipeline = "decode | resize([24, 24]) | to_tensor"
        expected = stream_of(run(photos, "--epochs", 2, pipeline=pipeline))
        assert stream_of(run(server.url(), "--epochs", 2, "--policy", "all-off", pipeline=pipeline)) == expected
        values = metrics_of(server)
        assert values["cache_misses_total"] >= 23
        assert values["cache_hits_total"] >= 23
        assert values["cache_bytes"] > 0


def test_takes_so_many_trainers_and_tells_the_others(photos: Path) -> None:
    with ServeProcess(photos, options=("--metrics", 0, "--clients", 1)) as server:
        words = [COMMAND, "run", "--data", server.url(), "--pipeline", PIPELINE, "--epochs", 1000, "--link", "1Mb/s"]
        first = subprocess.Popen(list(map(str, words)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            assert until(lambda: metrics_of(server)["answers_total"] > 0)
            line = fails("run", "--data", server.url(), "--pipeline", PIPELINE, "--patience", "4s")
            assert server.address in line and "--clients 1" in line
        finally:
            first.kill()
            first.wait()
        assert stream_of(run(server.url())) == stream_of(run(photos))


def test_a_term_signal_ends_it_well(photos: Path, tmp_path: Path) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        with ServeProcess(photos, log=tmp_path / "log") as server:
            run(server.url())
            assert server.end(number) == 0
        assert "going down: what was ordered is sent first" in (tmp_path / "log").read_text()


def test_a_term_signal_gives_up_what_takes_too_long(photos: Path) -> None:
    """Ops that take longer than anybody waits: once the trainer is gone, the next one is not begun."""
    pipeline = "decode" + " | resize((6000, 6000)) | resize((5900, 5900))" * 500
    with ServeProcess(photos, options=("--threads", 1)) as server:
        words = [COMMAND, "run", "--data", server.url(), "--pipeline", pipeline, "--batch", 1, "--policy", "all-off"]
        trainer = subprocess.Popen(list(map(str, words)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            ticks = Path(f"/proc/{server.process.pid}/stat")
            assert until(lambda: int(ticks.read_text().split()[13]) > 100), "it has begun"
            assert server.end(signal.SIGTERM) == 0
        finally:
            trainer.kill()
            trainer.wait()


READS_HANG = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>
ssize_t pread(int fd, void* into, size_t bytes, off_t at) {
  while (access(getenv("READS_HANG_WHERE"), F_OK) == 0) pause();
  return ((ssize_t (*)(int, void*, size_t, off_t))dlsym(RTLD_NEXT, "pread"))(fd, into, bytes, at);
}
ssize_t pread64(int fd, void* into, size_t bytes, off_t at) { return pread(fd, into, bytes, at); }
ssize_t preadv2(int fd, const struct iovec* into, int count, off_t at, int flags) {
  errno = EOPNOTSUPP;  // so that all go the same way
  return -1;
}
ssize_t preadv64v2(int fd, const struct iovec* into, int count, off_t at, int flags) {
  return preadv2(fd, into, count, at, flags);
}
"""


def test_a_term_signal_ends_what_hangs(photos: Path, tmp_path: Path) -> None:
    """Storage that does not answer any more."""
    source, library, sign, log = (tmp_path / name for name in ("hang.c", "hang.so", "sign", "log"))
    source.write_text(READS_HANG)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True)
    env = {**os.environ, "LD_PRELOAD": str(library), "READS_HANG_WHERE": str(sign)}
    with ServeProcess(photos, options=("--metrics", 0), log=log, env=env) as server:
        run(server.url())
        sign.touch()
        words = [COMMAND, "run", "--data", server.url(), "--pipeline", PIPELINE, "--policy", "none"]
        trainer = subprocess.Popen(list(map(str, words)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            assert until(lambda: metrics_of(server)["orders_waiting"] > 0), "readers are all busy"
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(timeout=60) == 1
        finally:
            trainer.kill()
            trainer.wait()
    assert "does not come to its end; it is left" in log.read_text()


def test_a_killed_server_is_started_again(photos: Path) -> None:
    """The first trainer waits for it; patience is a matter of the trainer."""
    expected = stream_of(run(photos, "--epochs", 30))
    with ServeProcess(photos, options=("--metrics", 0)) as server:
        words = [COMMAND, "run", "--data", server.url(photos.name), "--pipeline", PIPELINE, "--batch", 8, "--epochs",
                 30, "--hash", "--json", "--link", "2Mb/s"]  # fmt: skip
        trainer = subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, text=True)
        assert until(lambda: metrics_of(server)["answers_total"] > 0)
        server.end(signal.SIGKILL)
        again = [COMMAND, "serve", "--listen", server.address, "--data", photos]
        second = subprocess.Popen(list(map(str, again)), stderr=subprocess.DEVNULL)
        try:
            out, _ = trainer.communicate(timeout=60)
        finally:
            second.kill()
            second.wait()
    assert trainer.returncode == 0
    assert stream_of(json.loads(out)) == expected


def test_a_public_address_needs_tls_and_a_token(photos: Path, token_file: Path, certificates: Path) -> None:
    tls = ("--tls-cert", certificates / "server.pem", "--tls-key", certificates / "server.key")
    for listen in ("0.0.0.0:0", "[::]:0"):
        for options in ((), ("--token-file", token_file), tls):
            line = fails("serve", "--data", photos, "--listen", listen, *options)
            assert listen in line and "--tls-cert, --tls-key and --token-file" in line
    with ServeProcess(photos, options=(*tls, "--token-file", token_file)) as server:
        assert server.process.poll() is None


def test_tls_is_spoken_to_those_it_vouches_for(photos: Path, token_file: Path, certificates: Path) -> None:
    tls = ("--tls-cert", certificates / "server.pem", "--tls-key", certificates / "server.key")
    expected = stream_of(run(photos))
    with ServeProcess(photos, options=(*tls, "--token-file", token_file)) as server:
        url = f"grpcs://{server.address}/{photos.name}"
        good = os.environ | {"CUTWATER_TOKEN": TOKEN, "CUTWATER_CA": str(certificates / "ca.pem")}
        for policy in ("none", "sophon", "all-off"):
            assert stream_of(run(url, "--policy", policy, env=good)) == expected, policy
        patient = ("run", "--data", url, "--pipeline", PIPELINE, "--patience", "20s")
        assert "missing or wrong" in fails(*patient, env=good | {"CUTWATER_TOKEN": TOKEN + "x"})
        assert "missing or wrong" in fails(*patient, env={**good, "CUTWATER_TOKEN": ""})
        words = (*patient[:-1], "500ms")
        for ca in (str(certificates / "other.pem"), ""):
            assert server.address in fails(*words, env=good | {"CUTWATER_CA": ca})
        assert "PEM" in fails(*words, env=good | {"CUTWATER_CA": str(certificates / "none.pem")})
        plain = ("run", "--data", url.replace("grpcs", "grpc"), *words[3:])
        assert server.address in fails(*plain, env=good), "not without TLS"


def test_a_token_is_a_secret(photos: Path, token_file: Path, tmp_path: Path) -> None:
    token_file.chmod(0o640)
    assert "chmod 600" in fails("serve", "--data", photos, "--token-file", token_file)
    token_file.chmod(0o600)
    token_file.write_text("short\n")
    assert "16 characters" in fails("serve", "--data", photos, "--token-file", token_file)
    assert "cannot be read" in fails("serve", "--data", photos, "--token-file", tmp_path / "none")
    token_file.write_text("")
    assert "is empty" in fails("serve", "--data", photos, "--token-file", token_file)


@pytest.mark.parametrize("name", ["../secret", "..", "/etc/passwd", "%2e%2e/secret", "secret", "photos/../secret"])
def test_no_path_comes_over_the_wire(name: str, tmp_path: Path) -> None:
    """A data set is one of those that were named at the start, or there is none."""
    for folder in ("photos", "secret"):
        (tmp_path / folder).mkdir()
        save(tmp_path / folder / "1.png", noise(30, 30))
    with ServeProcess(tmp_path / "photos") as server:
        line = fails("run", "--data", server.url(name), "--pipeline", "decode")
        assert f"no data set '{name}'; it has 'photos'" in line


def test_links_out_of_a_folder_are_the_business_of_its_owner(tmp_path: Path) -> None:
    """What is served is what a local run would read: the same files, none besides."""
    (tmp_path / "photos").mkdir()
    save(tmp_path / "outside.png", noise(30, 30))
    (tmp_path / "photos" / "link.png").symlink_to(tmp_path / "outside.png")
    with ServeProcess(tmp_path / "photos") as server:
        assert stream_of(run(server.url(), pipeline="decode")) == stream_of(run(tmp_path / "photos", pipeline="decode"))


@pytest.mark.parametrize(("kind", "saving"), [("png", {}), ("jpg", {"progressive": True})])
def test_a_bomb_is_not_set_off(tmp_path: Path, kind: str, saving: dict[str, bool]) -> None:
    """A small file of a huge image costs the server nothing; the trainer hears what a local run would say. An excerpt
    of a progressive JPEG takes all of its coefficients."""
    root = tmp_path / "photos"
    root.mkdir()
    PIL.Image.fromarray(np.zeros((14000, 14000), np.uint8)).save(root / f"bomb.{kind}", **saving)
    pipeline = "decode(max_pixels=1000000000) | center_crop(20) | to_tensor"
    words = ("--pipeline", pipeline, "--memory-limit", "64MiB")
    local = fails("run", "--data", root, *words)
    assert "more than memory_limit" in local
    with ServeProcess(root, options=("--threads", 1)) as server:
        for policy in ("all-off", "resize-off", "paper", "sophon"):
            url = server.url(root.name)
            remote = fails("run", "--data", url, *words, "--policy", policy, "--link", "8Mb/s")
            assert remote == local, policy
        status = Path(f"/proc/{server.process.pid}/status").read_text()
        peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
        assert peak < 200_000, "kB"


def test_slow_clients_keep_nobody_waiting(photos: Path) -> None:
    """Many who connect and say half a word, or nothing: the server's own limits end them, others are served."""
    with ServeProcess(photos) as server:
        idle = [socket.create_connection(("127.0.0.1", server.port), timeout=20) for _ in range(200)]
        for k, connection in enumerate(idle):
            connection.sendall([b"", b"PRI * HTTP/2", b"\x16\x03\x01", b"GET / HTTP/1.1\r\nHost: x\r\n"][k % 4])
        assert stream_of(run(server.url())) == stream_of(run(photos))
        for connection in idle:
            connection.close()
        assert server.end() == 0


def test_what_is_wrong_with_arguments_is_said(photos: Path, tmp_path: Path) -> None:
    def refused(*options: object) -> str:
        return fails("serve", "--data", photos, *options)

    assert "HOST:PORT" in refused("--listen", "7070")
    assert "go together" in refused("--tls-cert", __file__)
    assert "--tls-key" in refused("--tls-cert", __file__, "--tls-key", tmp_path / "none")
    assert "two data sets" in refused("--data", photos)
    assert "--memory" in refused("--memory", "much")
    assert "--clients: Value 0 not in range" in command("serve", "--data", photos, "--clients", 0).stderr
    with ServeProcess(photos) as server:
        assert server.address in refused("--listen", server.address), "the port is taken"
    line = fails("run", "--data", f"grpc://{server.address}/x", "--pipeline", PIPELINE, "--patience", "300ms")
    assert server.address in line and "is 'cutwater serve' running there?" in line
    assert "500ms, 20s" in fails("run", "--data", "grpc://a/x", "--pipeline", PIPELINE, "--patience", "20")
    assert "--patience go with" in fails("run", "--data", photos, "--pipeline", PIPELINE, "--patience", "20s")
