# SPDX-License-Identifier: Apache-2.0
"""The page of `cutwater report`, looked at with a real browser: it draws, asks for nothing, and trusts no name."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
from helpers import command, noise, save

import cutwater as cw

TEXT = "decode | resize([24, 24]) | random_horizontal_flip | to_tensor"
# As a path, this ends a script element; as markup, it would write to the console.
HOSTILE = "a<", "script><img src=x onerror=console.error(1)>&amp;%DATA%%WORDS%"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a data set whose name means harm."""
    root = tmp_path_factory.mktemp("report")
    data = root / HOSTILE[0] / HOSTILE[1]
    (data / "class").mkdir(parents=True)
    for k in range(6):
        save(data / "class" / f"{k}.jpg", noise(30 + k, 40, seed=k, block=5))
    made = command("profile", "--data", data, "--pipeline", TEXT, "--samples", 6, "-o", root / "profile")
    assert made.returncode == 0, made.stderr
    result = command(
        "report", root / "profile", "-o", root / "report.html", "--epochs", 20, "--memory", "1GB", "--json"
    )
    assert (result.returncode, result.stderr) == (0, "")
    told = json.loads(result.stdout)
    assert told["bytes"] == (root / "report.html").stat().st_size
    return root / "report.html"


@pytest.fixture(scope="module")
def browse(tmp_path_factory: pytest.TempPathFactory):
    """browse(page, *options): what chromium writes to stdout; what the page's console says ends the test."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no chromium: apt-get install chromium, or tools/bootstrap.sh test")
    home = tmp_path_factory.mktemp("browser")

    def run(page: Path, *options: str) -> str:
        log = home / "net.json"
        always = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage"]
        always += ["--window-size=1180,3000", "--virtual-time-budget=3000", "--enable-logging=stderr"]
        always += [f"--user-data-dir={home}/profile", f"--log-net-log={log}"]
        always += ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"]
        shown = subprocess.run(
            [chromium, *always, *options, page.as_uri()], capture_output=True, text=True, timeout=100, check=True
        )
        said = [line for line in shown.stderr.splitlines() if "CONSOLE" in line]
        # The browser asks for things of its own; a page's requests have an origin.
        parameters = [event.get("params", {}) for event in json.loads(log.read_text())["events"]]
        asked = {p["url"] for p in parameters if "url" in p and p.get("initiator", "not an origin") != "not an origin"}
        assert (said, asked) == ([], set())
        return shown.stdout

    return run


def test_a_page_that_asks_or_complains_is_noticed(browse, tmp_path: Path) -> None:
    for name, script in ("asks", "fetch('http://127.0.0.1:9/x').catch(() => 0)"), ("complains", "console.error('no')"):
        bad = tmp_path / f"{name}.html"
        bad.write_text(f"<!DOCTYPE html><script>{script}</script>")
        with pytest.raises(AssertionError, match=r"127\.0\.0\.1:9/x" if name == "asks" else "CONSOLE"):
            browse(bad, "--dump-dom")


def test_the_page_draws_everything(page: Path, browse) -> None:
    dom = browse(page, "--dump-dom")
    body = dom[dom.index("<body") : dom.index('<script id="data"')]
    text = html.unescape(re.sub(r"<[^>]*>", " ", body))
    plan = cw.plan(page.parent / "profile", epochs=20, cache="1GB").to_dict()
    assert "Best for 20 epochs: " in text
    assert plan["reason"][0] in text
    assert f"total of {plan['epochs']} epochs" in text
    for picture in ("pipeline", "bytes", "seconds", "plane", "epochs"):
        drawn = re.search(rf'<div id="{picture}"[^>]*>(.*?)</svg>', body, re.S)
        assert drawn and "<svg" in drawn[1] and "aria-label" in drawn[1], picture
        assert "NaN" not in drawn[1] and "undefined" not in drawn[1] and "Infinity" not in drawn[1], picture
    for words in ("frontier", "nothing stays in the page cache", "copying in memory", "Made by cutwater"):
        assert words in text
    for cut in ("source", "entropy", "decode", "resize"):
        assert cut in text


def test_names_stay_text(page: Path, browse) -> None:
    source = page.read_text()
    assert source.count("</script>") == 2
    assert "<img" not in source
    dom = browse(page, "--dump-dom")
    assert "<img" not in dom
    assert html.escape("/".join(HOSTILE), quote=False) in dom


def test_a_plan_alone_has_a_page(page: Path, browse, tmp_path: Path) -> None:
    plan = cw.plan(page.parent / "profile", epochs=20, price_core_hour=1)
    plan.save(tmp_path / "plan.json")
    result = command("report", tmp_path / "plan.json", "-o", tmp_path / "plan.html")
    assert (result.returncode, result.stderr) == (0, "")
    dom = browse(tmp_path / "plan.html", "--dump-dom")
    body = html.unescape(dom[dom.index("<body") : dom.index('<script id="data"')])
    assert plan.to_dict()["reason"][0] in body
    assert "The strategies, best first" in body and "What it uses" in body
    assert "The pipeline and its cuts" not in body and "as profiled" not in body
    assert "NaN" not in body and "undefined" not in body
    refused = command("report", tmp_path / "plan.json", "-o", tmp_path / "no.html", "--epochs", 3)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--epochs goes with a profile" in refused.stderr
    (tmp_path / "plan.json").write_text("{}")
    assert "this is no plan" in command("report", tmp_path / "plan.json", "-o", tmp_path / "no.html").stderr


def test_a_server_near_the_storage_has_a_page(page: Path, browse, tmp_path: Path) -> None:
    cw.plan(page.parent / "profile", policy="sophon", link="1Mb/s").save(tmp_path / "plan.json")
    options = ["--policy", "sophon", "--link", "1Mb/s"]
    for name, words in (("plan", [tmp_path / "plan.json"]), ("profile", [page.parent / "profile", *options])):
        result = command("report", *words, "-o", tmp_path / f"{name}.html")
        assert (result.returncode, result.stderr) == (0, "")
        dom = browse(tmp_path / f"{name}.html", "--dump-dom")
        body = html.unescape(dom[dom.index("<body") : dom.index('<script id="data"')])
        assert "What goes over the link" in body and "The strategies, best first" not in body
        for picture in ("offload-bytes", "offload-threads"):
            drawn = re.search(rf'<div id="{picture}"[^>]*>(.*?)</svg>', body, re.S)
            assert drawn and "aria-label" in drawn[1] and "resize-off" in drawn[1], picture
        assert "NaN" not in body and "undefined" not in body and "Infinity" not in body


def colors(path: Path) -> np.ndarray:
    return np.asarray(PIL.Image.open(path).convert("RGB"))


def test_it_can_be_seen_by_day_and_by_night(page: Path, browse, tmp_path: Path) -> None:
    seen = {}
    for scheme, number in (("light", 1), ("dark", 0)):
        picture = tmp_path / f"{scheme}.png"
        browse(page, f"--screenshot={picture}", f"--blink-settings=preferredColorScheme={number}")
        seen[scheme] = colors(picture)
        assert len(np.unique(seen[scheme].reshape(-1, 3), axis=0)) > 100  # not blank
        for band in np.array_split(seen[scheme][:1800], 6):  # nor in any part
            assert band.std() > 5
    assert seen["light"].mean() > 200
    assert seen["dark"].mean() < 70


def test_it_prints(page: Path, browse, tmp_path: Path) -> None:
    browse(page, f"--print-to-pdf={tmp_path / 'report.pdf'}", "--no-pdf-header-footer")
    pdf = (tmp_path / "report.pdf").read_bytes()
    assert pdf.startswith(b"%PDF-")
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 12


def test_without_scripts_there_are_words(page: Path) -> None:
    fallback = re.search(r"<noscript>(.*?)</noscript>", page.read_text(), re.S)
    assert fallback and "Best for 20 epochs: " in html.unescape(fallback[1])


def test_wrong_usage_is_named(page: Path, tmp_path: Path) -> None:
    assert command("report", page.parent / "profile").returncode == 2
    result = command("report", page.parent / "profile", "-o", tmp_path / "no" / "report.html")
    assert result.returncode == 1
    assert "cannot write" in result.stderr
    assert command("report", tmp_path, "-o", tmp_path / "report.html").returncode == 2
