# SPDX-License-Identifier: Apache-2.0
"""What the benchmark says is computed and written as it claims. Nothing is timed here."""

from __future__ import annotations

import copy
import importlib
import itertools
import pathlib
import random
import tarfile
import xml.dom.minidom
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCH))

    def load(name: str) -> ModuleType:
        return importlib.import_module(name)

    return load


ROW = {
    "variant": "",
    "prepared": "",
    "median": 500.0,
    "best": 510.0,
    "worst": 490.0,
    "spread": 0.04,
    "ours_to_it": 2.5,
    "it_to_torch": 2.0,
    "cpu_us_per_image": 2000.0,
    "memory_mb": 300.0,
    "first_batch_s": 0.5,
    "versions": {"some": "1.2"},
    "pixels": {"max": 13, "mean": 0.164, "equal_to_the_bit": False},
}
EQUAL = {"max": 0, "mean": 0.0, "equal_to_the_bit": True}


@pytest.fixture
def report() -> dict[str, Any]:
    table = {
        "cutwater": {**ROW, "median": 1250.0, "pixels": EQUAL},
        "slow & exact": {**ROW, "median": 100.0, "pixels": EQUAL},
        "dali": {**ROW, "variants": {}, "variant": "plain", "prepared": "tar"},
        "ffcv-raw": {"variant": "raw", "prepared": "", "cannot_run": "not installed: RuntimeError: a | b < c"},
    }
    second = copy.deepcopy(table)
    second["cutwater"]["median"] = 2400.0
    return {
        "data": "3 files",
        "processor": "a processor",
        "python": "3.11",
        "rounds": 5,
        "epochs": 2,
        "cores": {"1": table, "2": second},
    }


def test_a_table_stands_between_the_markers(bench: Any, report: dict[str, Any], tmp_path: pathlib.Path) -> None:
    document = tmp_path / "performance.md"
    document.write_text("before\n<!-- table begin -->\nold\n<!-- table end -->\nafter\n")
    for _ in range(2):  # writing it again changes nothing
        bench("report").rewrite(document, report)
        lines = document.read_text().splitlines()
        assert lines[0] == "before" and lines[-1] == "after" and "old" not in lines
        rows = [line for line in lines if line.startswith("|")]
        assert len({line.replace("\\|", "").count("|") for line in rows}) == 1  # as many cells in each
        assert sum("cannot run: not installed" in line for line in rows) == 2
        assert sum("dali (plain)" in line and "13 / 0.16" in line for line in rows) == 2
        assert sum("| equal |" in line for line in rows) == 4


def test_a_document_without_markers_is_left_alone(bench: Any, report: dict[str, Any], tmp_path: pathlib.Path) -> None:
    document = tmp_path / "performance.md"
    document.write_text("<!-- table end --> <!-- table begin -->")
    with pytest.raises(SystemExit, match="no <!-- table begin -->"):
        bench("report").rewrite(document, report)
    assert document.read_text() == "<!-- table end --> <!-- table begin -->"


def test_the_picture_is_well_formed_and_to_scale(bench: Any, report: dict[str, Any]) -> None:
    picture = xml.dom.minidom.parseString(bench("plot").draw(report))
    bars = [rect for rect in picture.getElementsByTagName("rect") if rect.getAttribute("height") == "11"]
    widths = [float(bar.getAttribute("width")) for bar in bars]
    rates = [1250, 1200, 500, 250, 100, 50]  # per core; ours, then the peers by speed
    assert widths == pytest.approx([rate * widths[0] / 1250 for rate in rates], abs=0.1)
    assert ["other" in bar.getAttribute("class") for bar in bars] == [False, False, True, True, False, False]


def test_boxes_are_those_of_torchvision(bench: Any) -> None:
    """The same bounds and the same fallback; for the distribution, the mean share of the area."""
    transforms = pytest.importorskip("torchvision.transforms")
    torch = pytest.importorskip("torch")
    random_box = bench("job").random_box
    random.seed(1)
    for width, height in [(1, 1), (1000, 10), (10, 1000), (3, 4)]:
        top, left, h, w = random_box(width, height)
        assert 0 <= top <= height - h and 0 <= left <= width - w and h > 0 and w > 0
    image = torch.zeros(1, 10, 1000)  # too wide for any draw: the fallback is in the middle
    assert random_box(1000, 10) == transforms.RandomResizedCrop.get_params(image, [0.5, 1.0], [3 / 4, 4 / 3])
    ours = [h * w / (300 * 400) for _, _, h, w in (random_box(400, 300) for _ in range(4000))]
    image = torch.zeros(1, 300, 400)
    torch.manual_seed(1)
    theirs = [transforms.RandomResizedCrop.get_params(image, [0.08, 1.0], [3 / 4, 4 / 3]) for _ in range(4000)]
    expected = sum(h * w for _, _, h, w in theirs) / 4000 / (300 * 400)
    assert sum(ours) / 4000 == pytest.approx(expected, abs=0.02)


def test_tars_hold_each_file_once(bench: Any, tmp_path: pathlib.Path) -> None:
    for kind, count in (("cat", 3), ("dog", 4)):
        (tmp_path / "data" / kind).mkdir(parents=True)
        for i in range(count):
            (tmp_path / "data" / kind / f"{i}.jpg").write_bytes(f"{kind}{i}".encode())
    found = []
    for path in bench("job").write_tars(str(tmp_path / "data"), str(tmp_path), shards=2):
        with tarfile.open(path) as tar:
            members = {member.name: tar.extractfile(member).read().decode() for member in tar}  # type: ignore[union-attr]
        found += [(members[name], members[name[:-4] + ".cls"]) for name in members if name.endswith(".jpg")]
    assert sorted(found) == [(f"cat{i}", "0") for i in range(3)] + [(f"dog{i}", "1") for i in range(4)]


def test_a_reason_is_the_line_that_names_the_error(bench: Any) -> None:
    reason = bench("rows").reason
    assert reason("  RuntimeError: no opencv\n\nnote: not a problem with pip\n") == "RuntimeError: no opencv"
    assert reason("cutwater.errors.WrongType: no\nlast words\n") == "last words"
    assert reason("") == "no reason given"


def test_ratios_are_taken_inside_a_round(bench: Any) -> None:
    """A machine that slows down by half in the second round changes no ratio."""

    def runs(*rates: float) -> list[dict[str, Any]]:
        rest = dict.fromkeys(["cpu_us_per_image", "memory_mb", "first_batch_s", "first_epoch_images_per_s"], 1.0)
        return [{"images_per_s": rate, "versions": {}, "settings": "", **rest} for rate in rates]

    found = bench("peers").summary(runs(400, 200, 400), runs(800, 400, 800), runs(100, 50, 100))
    assert (found["ours_to_it"], found["it_to_torch"]) == (2.0, 4.0)
    assert (found["median"], found["worst"], found["best"], found["spread"]) == (400, 200, 400, 0.5)


def test_the_regret_is_that_of_the_choice_among_all_measured(bench: Any) -> None:
    presto, runs = bench("presto"), bench("presto_runs")
    none, store, memory = (
        runs.Strategy(cut, name, codec, place)
        for cut, name, codec, place in ((0, "source", "none", "none"), (3, "resize", "zstd:1", "store"),
                                        (3, "resize", "none", "memory"))
    )  # fmt: skip
    times = {
        none: {"build_s": 0.0, "first_epoch_s": 10.0, "epoch_s": 9.0},
        store: {"build_s": 12.0, "first_epoch_s": 1.0, "epoch_s": 1.0},
        memory: {"build_s": 0.0, "first_epoch_s": 12.0, "epoch_s": 0.5},
    }
    # The second round was slower for all: that must not matter.
    measured = {
        strategy: {**one, "rounds": {0: one, 1: {key: 3 * value for key, value in one.items()}}}
        for strategy, one in times.items()
    }
    chosen = {"cut": 3, "cut_name": "resize", "codec": "zstd:1", "place": "store", "total_s": 20.0}
    met: list[list[Any]] = []

    class Again:
        """The same figures once more; after one epoch the store turns out no slower than doing nothing."""

        def again(self, strategies: list[Any], rounds: int) -> dict[Any, Any]:
            met.append(strategies)
            return {strategy: measured[store if len(met) == 4 else strategy] for strategy in strategies}

    plans = {e: {"choice": chosen} for e in (1, 5, 90)}
    rows = {row["epochs"]: row for row in presto.compare(plans, measured, Again(), 3)}
    assert met == [[store, none], [store, memory], [store, memory]]
    assert [rows[e]["best"] for e in (1, 5, 90)] == ["unprepared", "memory:resize/none", "memory:resize/none"]
    assert rows[1]["regret"] == pytest.approx(13 / 10 - 1)
    assert rows[5]["regret"] == pytest.approx(17 / 14 - 1)
    assert rows[90]["regret"] == pytest.approx(102 / 56.5 - 1)
    assert rows[5]["chosen"] == "store:resize/zstd:1"
    (lucky,) = presto.compare({1: {"choice": chosen}}, measured, Again(), 3)
    assert (lucky["regret"], lucky["best"], lucky["luckiest"]) == (0, "store:resize/zstd:1", "unprepared")
    assert lucky["regret_of_luckiest"] == pytest.approx(13 / 10 - 1)


def test_png_files_of_16_bits_are_the_photographs(bench: Any, tmp_path: pathlib.Path) -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (13, 7, 3), np.uint8)
    bench("presto_data").write_png16(tmp_path / "a.png", pixels)
    assert (tmp_path / "a.png").read_bytes()[24] == 16  # its depth
    with Image.open(tmp_path / "a.png") as image:
        assert np.array_equal(np.asarray(image.convert("RGB")), pixels)


def test_the_bound_of_sharing_is_that_of_equal_jobs(bench: Any) -> None:
    bound = bench("seneca_sums").sharing_bound
    assert (bound(0.2, 1), bound(0, 4), bound(1, 3)) == pytest.approx((0.2, 0.75, 1))
    assert (bound(0.2, 3), bound(0.4, 3)) == pytest.approx((11 / 15, 0.8))


def test_a_runs_test_knows_random_orders_from_others(bench: Any) -> None:
    """Statistics and chances of all orders of eight values, by counting them; and of orders that are none."""
    sums = bench("seneca_sums")
    runs = [
        1 + sum((a > 3.5) != (b > 3.5) for a, b in itertools.pairwise(order))
        for order in itertools.permutations(range(8))
    ]
    mean, deviation = np.mean(runs), np.std(runs)
    for order in ([0, 4, 1, 5, 2, 6, 3, 7], [0, 1, 2, 3, 4, 5, 6, 7], [4, 5, 0, 6, 1, 2, 7, 3]):
        count = 1 + sum((a > 3.5) != (b > 3.5) for a, b in itertools.pairwise(order))
        assert sums.runs_test(order) == pytest.approx((count - mean) / deviation)
    rng = random.Random(5)
    tests = [sums.runs_test(rng.sample(range(500), 500)) for _ in range(400)]
    assert abs(np.mean(tests)) < 0.2 and np.std(tests) == pytest.approx(1, abs=0.15)
    assert sums.least_chance(tests) > 0.01
    in_blocks = [id for block in rng.sample(range(50), 50) for id in range(10 * block, 10 * block + 10)]
    assert sums.least_chance([*tests[:11], sums.runs_test(in_blocks)]) < 1e-6


def test_what_bounds_is_named_right_if_it_hardly_rests(bench: Any) -> None:
    right = bench("seneca_sums").is_named_right
    assert right("storage", {"cpu": 0.5, "storage": 0.6, "consumer": 0.4})
    assert right("cpu", {"cpu": 0.93, "storage": 0.99, "consumer": 0.1})
    assert not right("cpu", {"cpu": 0.8, "storage": 0.95, "consumer": 0.1})


def test_cells_are_compared_by_later_epochs(bench: Any) -> None:
    sums = bench("seneca_sums")

    def job(*seconds: float) -> dict[str, Any]:
        return {"epochs": [{"samples": 100, "seconds": s, "hits": 60, "misses": 40} for s in seconds]}

    jobs = [job(9, 1, 3), job(7, 2, 2)]
    jobs[0]["epochs"][0].update(hits=0, misses=100)
    assert sums.later_rate(jobs) == pytest.approx(100)
    assert sums.later_hit_rate(jobs) == pytest.approx(0.6)
    assert sums.error_of(80, 100) == sums.error_of(120, 100) == pytest.approx(0.2)
    assert sums.regret([100, 50, 100], [110, 55, 90]) == pytest.approx(0.1)
    assert sums.regret([100], [90]) == 0
    assert [sums.epochs_for(2, rate, 100, 4) for rate in (10, 800, 1e9)] == [3, 5, 11]
    assert sums.makespan({"first_epoch_samples_per_s": 50, "samples_per_s": 200}, 100, 4, 3) == pytest.approx(12)


def test_the_papers_partition_becomes_shares_of_samples(bench: Any) -> None:
    sums = bench("seneca_sums")
    plan = {"paper": {"encoded": 0.25, "decoded": 0.5, "augmented": 0.25}}
    sizes = {"source": 10.0, "decode": 50.0}
    assert sums.samples_of_bytes(plan, sizes, 2000, 100) == pytest.approx({"decode": 0.2, "source": 0.5})
    full = sums.samples_of_bytes(plan, sizes, 8000, 100)
    assert full == pytest.approx({"decode": 0.8, "source": 0.2})  # no sample is kept twice
    assert sums.split_text(full) in ("decode=0.8,source=0.2", "decode=0.8,source=0.199999")
    nothing = sums.samples_of_bytes({"paper": {"encoded": 0, "decoded": 0, "augmented": 1}}, sizes, 8000, 100)
    assert sums.split_text(nothing) == "decode=0,source=0"


def test_a_hit_of_redis_is_read_from_what_the_stage_prints(bench: Any) -> None:
    line = "  10000 bytes: a hit   61.5 us, redis-benchmark's GET   55.0 us, ratio 1.12 (1.05 to 1.20)"
    found = bench("seneca_cost").HIT.match(f"{line}, among 4 forms   63.0 us, ratio 1.15")
    hit = {"bytes": "10000", "us": "61.5", "their_us": "55.0", "ratio": "1.12"}
    assert found and found.groupdict() == hit | {"forms": "4", "first_us": "63.0", "first_ratio": "1.15"}


def test_the_best_static_split_is_found_by_trying_all(bench: Any) -> None:
    tenants = bench("sophon_tenants")
    steep, flat = [0.0, 1, 2, 50], [10.0, 11, 12, 13]
    assert tenants.best_split([steep, flat, flat]) == (70, (4, 1, 1))
    assert tenants.best_split([flat, flat, flat]) == (33, (4, 1, 1))


def cell_of(bench: Any, ours: tuple[float, float], best: tuple[float, float], mbit: int = 100) -> dict[str, Any]:
    """Bytes and seconds of ours and of the best other policy, beside raw ones of 100 and 10: 100 Mb/s just do."""
    cells = bench("sophon_cells")
    figures = dict.fromkeys(cells.POLICIES, (100.0, 10.0)) | {"paper": best, cells.OURS: ours, cells.TOLD: ours}
    runs = {
        p: [{"samples": 1.25e6, "bytes_per_sample": b, "epoch_s": s, "first_epoch_s": s}]
        for p, (b, s) in figures.items()
    }
    cell: dict[str, Any] = cells.judged({"data": "imagenet", "mbit": mbit, "threads": 1}, runs)
    return cell


def test_a_policy_is_judged_beside_the_best_other(bench: Any) -> None:
    cells = bench("sophon_cells")
    good, large, slow = (cell_of(bench, ours, (80, 8)) for ours in ((50, 8.5), (82, 8), (50, 9)))
    assert good["best_bytes"] == good["best_time"] == "paper"
    assert good["less_than_raw"][cells.OURS] == 2

    def held(*those: dict[str, Any]) -> list[bool]:
        return [one for one, _ in cells.verdicts({"cells": list(those), "same_streams": {"imagenet": True}})]

    assert all(held(good))
    assert not all(held(good, large))
    assert not all(held(good, slow))
    assert not all(one for one, _ in cells.verdicts({"cells": [good], "same_streams": {"imagenet": False}}))


def test_what_is_saved_is_the_least_of_where_the_link_bounds(bench: Any) -> None:
    cells = bench("sophon_cells")
    good, better = cell_of(bench, (50, 8), (80, 8)), cell_of(bench, (25, 8), (80, 8))
    elsewhere = cell_of(bench, (90, 8), (95, 8), mbit=200)  # the link rests half of the time
    idle = {**cell_of(bench, (100, 10), (100, 10)), "threads": 0}
    assert cells.link_bounds(good) and not cells.link_bounds(elsewhere)
    times, where = cells.saved([better, good, elsewhere, idle], "imagenet", cells.OURS)
    assert times == 2 and "of 2 cells" in where
    assert cells.saved([elsewhere], "imagenet", cells.OURS)[0] == 0


def test_a_link_that_changes_is_judged_beside_one_that_did_not(bench: Any) -> None:
    change = bench("sophon_change")

    def row(mbit: int, kilobytes: float, seconds: float) -> dict[str, float]:
        return {"mbit": mbit, "bytes_per_sample": 1e3 * kilobytes, "epoch_s": seconds}

    assert change.per_epoch((100, 5000, 1.0), (300, 9000, 5.0), 50) == {"bytes_per_sample": 20, "epoch_s": 1}
    fresh = {100: row(100, 50, 2), 2000: row(2000, 60, 1)}
    good = change.judged([row(100, 57, 2.2), row(2000, 40, 1.1)], fresh)
    assert not change.failed(good)
    for wrong in (row(100, 58, 2), row(2000, 60, 1.2)):
        found = change.judged([wrong], fresh)
        assert change.failed(found) and "FALLS SHORT" in change.text(found)[1]
