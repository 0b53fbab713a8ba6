# SPDX-License-Identifier: Apache-2.0
"""Plans of real profiles, from Python and from the command. The model itself is tested in src/plan."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from helpers import command

import cutwater as cw

TEXT = "decode | resize([24, 24]) | random_horizontal_flip | to_tensor"
KEYS = {
    *("cut", "cut_name", "codec", "place", "cache", "build_s", "first_epoch_s", "epoch_s", "total_s"),
    *("samples_per_s", "disk_bytes", "memory_bytes", "bound_by", "break_even_epochs"),
}


@pytest.fixture(scope="module")
def profile(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plan") / "profile"
    cw.profile(cw.folder(photos).apply(TEXT), samples=8).save(path)
    return path


def plan_json(profile: Path, *more: object) -> dict[str, Any]:
    result = command("plan", "--profile", profile, "--json", *more)
    assert (result.returncode, result.stderr) == (0, "")
    return json.loads(result.stdout)


def test_json_has_what_it_promises(profile: Path) -> None:
    plan = plan_json(profile, "--epochs", 5)
    promised = {"policy", "samples_per_s", "bound_by", "total_s", "choice", "alternatives", "resources"}
    assert promised <= plan.keys()
    assert (plan["policy"], plan["epochs"], plan["samples"]) == ("auto", 5, 23)
    for row in [plan["choice"], *plan["alternatives"]]:
        assert row.keys() >= KEYS | {"feasible", "why_not"}
        assert row["total_s"] == pytest.approx(row["build_s"] + row["first_epoch_s"] + 4 * row["epoch_s"])
    assert set(plan["resources"]) == {"cpu", "storage", "memory", "disk", "consumer"}
    assert all(use.keys() == {"use", "price"} for use in plan["resources"].values())
    # One row for each cut up to the frontier, in each place.
    rows = {(row["cut_name"], row["place"], row["cache"]) for row in plan["alternatives"] + [plan["choice"]]}
    for cut in ("source", "entropy", "decode", "resize"):
        assert {(cut, "store", "page"), (cut, "store", "none"), (cut, "memory", "application")} <= rows


def test_python_and_the_command_agree(profile: Path, tmp_path: Path) -> None:
    from_python = cw.plan(profile, epochs=7, disk="1GB", cache="2GB", num_workers=3, consumer=1000, page_cache="warm")
    options = ["--epochs", 7, "--disk", "1GB", "--cache", "2GB", "--threads", 3, "--consumer", 1000]
    written = tmp_path / "plan.json"
    from_command = plan_json(profile, *options, "--page-cache", "warm", "-o", written)
    assert from_python.to_dict() == from_command == json.loads(written.read_text())
    assert from_python.choice == from_command["choice"]
    assert cw.Plan.load(written).to_json() == from_python.to_json()
    assert from_python.explain() in command("plan", "--profile", profile, *options, "--page-cache", "warm").stdout
    again = tmp_path / "again.json"
    from_python.save(again)
    assert again.read_bytes() == written.read_bytes()


def test_policies_and_prices(profile: Path) -> None:
    none = cw.plan(cw.Profile.load(profile), policy="none", epochs=1000)
    assert (none.choice["place"], none.to_dict()["alternatives"]) == ("none", [])
    many = cw.plan(profile, epochs=100_000)
    assert many.choice["place"] != "none"
    assert repr(many).startswith("<cutwater.Plan: ")
    dear = plan_json(profile, "--epochs", 100_000, "--price-disk", 1e12, "--price-core-hour", 1, "--months", 3)
    assert dear["choice"]["place"] != "store"
    assert dear["choice"]["money"] > 0
    assert dear["budget"]["prices"] == {"disk_gb_month": 1e12, "core_hour": 1, "months": 3}
    likewise = cw.plan(profile, epochs=100_000, price_disk=1e12, price_core_hour=1, months=3).to_dict()
    assert likewise["budget"]["prices"] == dear["budget"]["prices"]
    assert cw.plan(profile, price_core_hour=2).to_dict()["budget"]["prices"]["months"] == 1
    with pytest.raises(cw.InvalidArgument, match="months goes with price_disk or price_core_hour"):
        cw.plan(profile, months=2)


def test_a_budget_may_be_nothing(profile: Path) -> None:
    for plan in (
        plan_json(profile, "--epochs", 100_000, "--disk", 0, "--memory", "0"),
        cw.plan(profile, epochs=100_000, disk=0, cache="0MB").to_dict(),
    ):
        assert (plan["budget"]["disk_bytes"], plan["budget"]["memory_bytes"]) == (0, 0)
        assert plan["choice"]["place"] == "none"


def test_the_table_is_short_unless_asked(profile: Path) -> None:
    shown = command("plan", "--profile", profile).stdout
    assert shown.startswith("Best for 10 epochs: ")
    assert " more\n" in shown
    assert "What would change the choice:" in shown
    everything = command("plan", "--profile", profile, "--all").stdout
    assert len(everything.splitlines()) > len(shown.splitlines())
    assert " more\n" not in everything


def test_the_best_are_run_for_real(profile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    plan = plan_json(profile, "--epochs", 4, "--measure", 4, "--page-cache", "warm")
    measured = plan["measured"]
    assert len(measured) == 4
    rows = [tuple(row[key] for key in ("cut", "codec", "place")) for row in measured]
    assert rows[0] == tuple(plan["choice"][key] for key in ("cut", "codec", "place"))
    assert len(set(rows)) == 4
    for row in measured:
        assert row["total_s"] == pytest.approx(row["build_s"] + row["first_epoch_s"] + 3 * row["epoch_s"])
        assert (row["build_s"] > 0) == (row["place"] == "store")
    assert list(tmp_path.iterdir()) == []  # nothing stays
    told = command("plan", "--profile", profile, "--measure", 2).stdout
    assert "Measured, in seconds:" in told
    assert "est of them" in told
    for row in plan_json(profile, "--measure", 2, "--price-core-hour", 3600, "--threads", 2)["measured"]:
        assert row["money"] == pytest.approx(2 * row["total_s"])
        assert row["predicted_money"] == pytest.approx(2 * row["predicted_total_s"])


def test_other_data_are_not_measured(profile: Path, photos: Path, tmp_path: Path) -> None:
    shutil.copytree(photos, tmp_path / "same")
    assert plan_json(profile, "--measure", 1, "--data", tmp_path / "same")["measured"]
    shutil.copytree(photos, tmp_path / "less")
    next((tmp_path / "less").rglob("*.jpg")).unlink()
    result = command("plan", "--profile", profile, "--measure", 1, "--data", tmp_path / "less", "--json")
    assert (result.returncode, result.stdout) == (1, "")
    assert "less" in result.stderr and "not what was profiled" in result.stderr


def test_a_pipeline_that_draws_late_or_not_at_all(photos: Path) -> None:
    ds = cw.folder(photos).apply("decode | random_crop(8) | to_tensor")
    assert "draws in its first op" not in cw.plan(cw.profile(ds, samples=2)).explain()
    nothing = cw.plan(cw.profile(cw.memory([bytes(8)] * 3), samples=2))
    assert {row["cut"] for row in nothing.to_dict()["alternatives"]} == {0}
    assert "draws in its first op" not in nothing.explain()  # there is none


def test_jobs_that_share_a_cache(profile: Path, tmp_path: Path) -> None:
    rates: dict[str, Any] = {"storage_rate": "50MB/s", "cache_rate": 1e10, "link_rate": "80Gb/s", "window": 2}
    made = cw.plan(
        profile, policy="seneca", jobs=3, cache="200KB", num_workers=2, same_seed=True, processes=True, **rates
    )
    options = ["--policy", "seneca", "--jobs", 3, "--cache", "200KB", "--threads", 2, "--same-seed", "--window", 2]
    options += ["--processes", "--storage-rate", "50MB/s", "--cache-rate", "10GB/s", "--link-rate", "80Gb/s"]
    # What the command fills in has no part in this policy.
    from_command = plan_json(profile, *options, "--disk", 0)
    from_command["budget"]["disk_bytes"] = None
    assert made.to_dict() == from_command
    cache = from_command["cache"]
    assert cache["samples_per_s"] == pytest.approx(3 * cache["per_job"])
    assert 0 < cache["hit_rate"] <= 1
    assert sum(form["bytes"] for form in cache["forms"]) <= 200_000 * 1.001
    assert cache["paper"]["by_our_model"] > 0
    assert set(from_command["resources"]) == {"cpu", "storage", "cache", "link", "consumer", "memory"}
    assert f"--split {cache['split']}" in made.explain()
    # The split that is given is predicted, and no better than the one that was chosen.
    given = cw.plan(profile, policy="seneca", jobs=3, cache="200KB", num_workers=2, split="source=0.4,decode=0.3")
    free = cw.plan(profile, policy="seneca", jobs=3, cache="200KB", num_workers=2)
    assert given.to_dict()["cache"]["split"] == "source=0.4,decode=0.3"
    assert given.to_dict()["samples_per_s"] <= free.to_dict()["samples_per_s"] * 1.005
    made.save(tmp_path / "plan.json")
    assert cw.Plan.load(tmp_path / "plan.json").to_json() == made.to_json()
    assert command("report", tmp_path / "plan.json", "-o", tmp_path / "report.html").returncode == 0


def test_a_loader_takes_the_split_of_a_plan(profile: Path, photos: Path) -> None:
    ds = cw.folder(photos).apply(TEXT)
    split = "source=0.4,decode=0.3"
    made = cw.plan(profile, policy="seneca", jobs=3, cache="200KB", split=split)
    assert made.cache_split == split
    with cw.DataLoader(ds, batch_size=4, cache="8MiB", cache_split=made) as feed:
        assert sum(len(batch.ids) for batch in feed) == len(ds)
        assert set(feed.stats()["cache"]["by_form"]) == {"source", "decode"}
    with pytest.raises(cw.InvalidArgument, match="splits no cache; make it with policy='seneca'"):
        cw.DataLoader(ds, batch_size=4, cache="8MiB", cache_split=cw.plan(profile))


def test_a_machine_in_figures() -> None:
    figures = ["--samples", 20_000, "--sample-bytes", "100KB", "--decode-rate", 1000, "--augment-rate", 4000]
    result = command("sim", *figures, "--cache", "2GB", "--jobs", 3, "--split", "decoded=1", "--json")
    assert (result.returncode, result.stderr) == (0, "")
    sim = json.loads(result.stdout)
    assert (sim["issued_twice"], sim["never_issued"], sim["jobs"], sim["samples"]) == (0, 0, 3, 20_000)
    last = sim["epochs"][-1]
    assert last["hit_rate"] == pytest.approx(last["predicted_hit_rate"], abs=0.02)
    assert last["samples_per_s"] == pytest.approx(last["predicted_samples_per_s"], rel=0.05)
    assert sim["plan"]["policy"] == "seneca"
    told = command("sim", *figures, "--cache", "2GB", "--jobs", 2, "--scale", 0.1)
    assert "2000 samples, 2 jobs; issued twice 0, never issued 0" in told.stdout
    for wrong, says in ((["--speeds", "1,2"], "2 speeds for 1 jobs"), (["--scale", 2], "scale must be above 0")):
        refused = command("sim", *figures, *wrong)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert says in refused.stderr


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--disk", "much"], "--disk must be a size like 8GiB or 500MB, got 'much'"),
        (["--epochs", 0], "--epochs"),
        (["--epochs", 1_000_001], "--epochs"),
        (["--disk", "-1"], "--disk must be a size"),
        (["--policy", "best"], "--policy"),
        (["--data", "train"], "--data goes with --measure"),
        (["--measure", 1, "--data", "/nowhere/data"], "/nowhere/data"),
        (["--months", 2], "--months goes with --price-disk or --price-core-hour"),
        (["--jobs", 2], "go with policy seneca, got auto"),
        (["--policy", "seneca", "--jobs", 0], "--jobs"),
        (["--policy", "seneca", "--split", "nothing=1"], "split: there is no stable form 'nothing'"),
        (
            ["--policy", "seneca", "--storage-rate", "fast"],
            "--storage-rate must be a rate like 500Mb/s (bits) or 200MB/s (bytes)",
        ),
        (["--policy", "seneca", "--measure", 1], "--measure goes with the policies auto, none and presto"),
        (["-o", "/nowhere/plan.json"], "cannot write '/nowhere/plan.json': No such file or directory"),
    ],
)
def test_wrong_usage_is_named(profile: Path, options: list[object], says: str) -> None:
    result = command("plan", "--profile", profile, *options)
    assert result.returncode in (1, 2)
    assert says in result.stderr
    assert result.stdout == "" or "--measure" in options


def test_what_is_no_profile_or_plan(tmp_path: Path) -> None:
    result = command("plan", "--profile", tmp_path / "gone")
    assert result.returncode == 2
    assert "gone" in result.stderr
    with pytest.raises(cw.WrongType, match=r"profile must be a cutwater\.Profile or the folder of one, got int"):
        cw.plan(3)  # type: ignore[arg-type]
    with pytest.raises(cw.InvalidArgument, match=r"policy must be one of auto, none, .*, got 'best'"):
        cw.plan(cw.profile(cw.memory([b"x"]), samples=1), policy="best")  # type: ignore[arg-type]
    (tmp_path / "plan.json").write_text("{}")
    with pytest.raises(cw.InvalidArgument, match="this is no plan"):
        cw.Plan.load(tmp_path / "plan.json")


def test_a_server_near_the_storage(profile: Path, tmp_path: Path) -> None:
    made = cw.plan(profile, policy="sophon", link="2Mb/s", storage_threads=2, storage_speed=0.5, num_workers=2)
    options = ["--policy", "sophon", "--link", "2Mb/s", "--storage-threads", 2, "--storage-speed", 0.5, "--threads", 2]
    from_command = plan_json(profile, *options)
    for limit in ("disk_bytes", "memory_bytes"):  # what the command fills in has no part in this policy
        from_command["budget"][limit] = None
    assert made.to_dict() == from_command
    assert from_command["bound_by"] == "network"
    rows = {row["offload"]["policy"]: row for row in [from_command["choice"], *from_command["alternatives"]]}
    assert rows.keys() == {"sophon", "no-off", "all-off", "resize-off", "paper"}
    for row in rows.values():
        offload = row["offload"]
        assert row["epoch_s"] == max(offload[key] for key in ("t_g", "t_cc", "t_cs", "t_net"))
        assert sum(share["samples_share"] for share in offload["shares"]) == pytest.approx(1)
        assert sum(share["bytes"] for share in offload["shares"]) == pytest.approx(offload["bytes"])
        assert from_command["choice"]["epoch_s"] <= row["epoch_s"] * (1 + 1e-9)
    assert rows["sophon"]["offload"]["bytes"] < rows["paper"]["offload"]["bytes"] <= rows["no-off"]["offload"]["bytes"]
    assert set(from_command["resources"]) == {"network", "storage_cpu", "cpu", "consumer"}
    assert [row["storage_threads"] for row in from_command["offload"]["by_threads"]] == list(range(9))
    told = command("plan", "--profile", profile, *options).stdout
    assert "less than raw" in told and "T_Net" in told and "with twice the link" in told
    assert "sophon" in repr(made)
    made.save(tmp_path / "plan.json")
    assert cw.Plan.load(tmp_path / "plan.json").to_json() == made.to_json()


def test_what_does_not_go_with_a_server_near_the_storage(profile: Path) -> None:
    for words, why in (
        (["--policy", "sophon", "--jobs", 2], "go with policy seneca, got sophon"),
        (["--policy", "sophon", "--measure", 1], "--measure goes with the policies auto, none and presto"),
        (["--policy", "sophon", "--price-core-hour", 1], "prices go with"),
        (["--storage-threads", 1], "go with the policies sophon"),
        (["--policy", "sophon", "--link", "fast"], "--link"),
    ):
        result = command("plan", "--profile", profile, *words)
        assert (result.returncode, result.stdout) == (2, ""), words
        assert why in result.stderr
    with pytest.raises(cw.InvalidArgument, match="link and link_rate are the same"):
        cw.plan(profile, policy="sophon", link=1, link_rate=1)
    assert (
        cw.plan(profile, policy="sophon", link=1, storage_threads=0).choice["offload"]["shares"][0]["option"] == "raw"
    )
