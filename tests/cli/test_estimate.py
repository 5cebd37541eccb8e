"""`gpubid estimate`: the published scenarios as an operator types them, dates beside prices, and bad input."""

import asyncio
import csv
import io
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agent.baselines import baseline_loading
from agent.cli import main
from agent.clock import SteppedClock
from agent.domain.record.guard_figures import GuardFigures
from agent.ledger.store import Ledger
from tests.support import builders
from tests.support.configs import GOOD

JOB = """\
gpu = ["A100"]
gpus = 16
hours = 500
price = 2.75
reruns = [2, 3]
[checkpoint]
takes = "2m"
"""
TENURES = ("on demand", "bid", "reserved")


@pytest.fixture(autouse=True)
def somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str, code: int = 0) -> str:
    ran = CliRunner().invoke(main.app, ["estimate", *arguments], env={"COLUMNS": "200"})
    assert ran.exit_code == code, ran.output
    return ran.output


def options(*arguments: str) -> list[dict[str, Any]]:
    return [one for model in json.loads(run(*arguments, "--json"))["models"] for one in model["options"]]


def test_eight_a100_for_a_day_without_a_configuration() -> None:
    found = options("--gpu", "A100", "--gpus", "8", "--hours", "24", "--price", "0.80")
    # 24 h x 32.80 = 787.20; 24 h x 8 x 0.80 = 153.60 and the minute of restoring before it.
    assert 787.2 in [one["dollars"] for one in found if one["name"] == "aws"]
    (given,) = [one for one in found if one["name"] == "market, ondemand"]
    assert given["dollars_least"] == pytest.approx(153.60 + 6.40 / 60)


def test_a_job_file_with_reruns(somewhere: Path) -> None:
    (somewhere / "job.toml").write_text(JOB)
    (given,) = [one for one in options("--job", "job.toml") if one["name"] == "market, ondemand"]
    assert given["dollars_least"] == pytest.approx(22_000 * (1 + 2 / 94.2 + 1 / 30_000), rel=2e-3)  # 2 min of each 94
    assert given["with_reruns_least_dollars"] == pytest.approx(2 * given["dollars"])
    assert given["with_reruns_most_dollars"] == pytest.approx(3 * given["dollars"])
    assert given["with_reruns_dollars"] is None
    (other,) = [one for one in options("--job", "job.toml", "--gpus", "1") if one["name"] == "market, ondemand"]
    assert other["dollars_per_hour"] == 2.75


def test_odds_stand_for_reruns() -> None:
    (given,) = options("--gpu", "H200", "--hours", "1", "--price", "1", "--odds", "0.5")
    assert given["with_reruns_dollars"] == pytest.approx(2 * given["dollars"])
    assert given["with_reruns_most_dollars"] == pytest.approx(4 * given["dollars"])


def test_no_price_from_elsewhere_is_shown_without_its_date_and_source() -> None:
    shown = run("--gpu", "A100", "--hours", "10")
    rows = [line for line in shown.splitlines() if any(f"({word})" in line for word in TENURES)]
    assert len(rows) == len(baseline_loading.load().find("A100"))
    assert all("2025" in row or "2026-11" in row for row in rows)
    assert "published comparison of cloud GPU prices, April 2025" in shown
    assert "2025 comparison table, not checked" in shown
    assert "not estimated: market, ondemand: no on-demand price is known" in shown
    assert shown.count("not estimated: market, deadline, hedged, patient: no floor is known") == 1, (
        "one reason, one line"
    )


def test_a_reservation_of_unknown_term_is_named_and_never_counts_as_on_demand() -> None:
    shown = run("--gpu", "H100 SXM", "--hours", "10")
    (row,) = [line for line in shown.splitlines() if line.startswith("coreweave (reserved)")]
    assert "over $22.30" in row
    assert "reserved for a term that is not known" in shown


def test_dollars_per_unit_of_work_or_how_they_become_known() -> None:
    arguments = ("--gpu", "L4", "--hours", "3", "--unit", "step")
    assert [one["dollars_per_unit"] for one in options(*arguments, "--units", "1500")] == [0.002]
    shown = run(*arguments, "--units", "1500")
    assert "$/step" in shown
    assert "0.002" in shown
    assert [one["dollars_per_unit"] for one in options(*arguments)] == [None]
    assert "dollars per step are not known: give --units, their number in 3 h of work" in run(*arguments)
    assert "$/" not in run(*arguments[:4]).replace("$/h", "")


def test_a_deadline_of_the_century_is_far_away(somewhere: Path) -> None:
    lines = ('kind = "batch"', 'gpu = ["L4"]', 'deadline = { hours = 4, by = "2099-01-31T18:00Z" }')
    (somewhere / "agent.toml").write_text(GOOD + "".join(f"{line}\n" for line in lines))
    assert [one["late"] for one in options("train") if one["name"] == "aws"] == [0.0]


def test_the_units_of_a_workload_are_those_of_its_deadlines_hours(somewhere: Path) -> None:
    day = datetime.now(UTC).date() + timedelta(days=9)
    lines = (
        'kind = "batch"', 'command = "a"', 'unit = "step"', 'gpu = ["L4"]', "[workloads.train.guard]", 'paths = ["/w"]',
        'bucket = "s3://abc/train"', 'region = "eu-1"', 'credential = "train_bucket"', "[workloads.train.deadline]",
        "hours = 4", f'by = "{day}T18:00Z"', 'progress = "guard"', "progress_total = 2000",
    )  # fmt: skip
    (somewhere / "agent.toml").write_text(GOOD + "".join(f"{line}\n" for line in lines))
    assert [one["dollars_per_unit"] for one in options("train") if one["name"] == "aws"] == [0.002]
    assert [one["dollars_per_unit"] for one in options("train", "--hours", "9") if one["name"] == "aws"] == [None]


def test_limit_expected_price_and_margin_are_shown_apart_where_the_price_paid_is_not_the_bid(somewhere: Path) -> None:
    (somewhere / "agent.toml").write_text(GOOD.replace("[markets.vast]", "[markets.mithril]"))
    given = ("--gpu", "A100 SXM4", "--hours", "10", "--checkpoint-takes", "30s", "--floor")
    (somewhere / "job.toml").write_text("max_price = 2.0\nvalue_per_hour = 1.5\n")
    job = ("--job", "job.toml", *given)
    patient = next(one for one in options(*job, "0.8") if one["name"] == "mithril, patient")
    figures = [patient[f"{name}dollars_per_hour"] for name in ("", "limit_", "margin_")]
    assert figures == [0.8, 1.5, pytest.approx(0.7)]
    said = " ".join(run(*job, "0.8").split())
    assert "mithril, patient (limit)" in said
    assert "limit $1.5000/h, expected price $0.8000/h, margin $0.7000/h" in said
    assert "mithril sends its bill later: no credit ends the spending there, only budgets do" in said
    assert "not estimated: mithril, ondemand: mithril sells nothing on demand" in said
    over = " ".join(run(*job, "1.6").split())
    assert "every known price to win is above the limit of $1.5000/h: a bid waits, at no known price" in over
    unbounded = next(one for one in options(*given, "0.8") if one["name"] == "mithril, patient")
    assert unbounded["limit_dollars_per_hour"] is None
    assert "no limit is known: give max_price or value_per_hour" in unbounded["unknown"]


def test_the_frontier_shows_what_a_dollar_more_buys_and_where_the_value_is(somewhere: Path) -> None:
    given = ("--gpu", "L4", "--hours", "10", "--checkpoint-takes", "30s", "--floor", "0.2", "--price", "0.4")
    said = " ".join(run(*given).split())
    assert "a dollar more buys" in said
    assert "set value_per_hour or value of the workload to choose another row" in said
    (somewhere / "job.toml").write_text('value = "20 x on_demand"\n')
    asked = run("--job", "job.toml", *given, "--json")
    steps = json.loads(asked)["models"][0]["frontier"]
    assert [step["way"].split(", ")[1] for step in steps] == ["deadline (bid)", "ondemand (on demand)"]
    assert [step["is_set"] for step in steps] == [False, True]
    assert steps[0]["least_value_dollars_per_hour"] < steps[1]["least_value_dollars_per_hour"] < 20 * 0.4


def test_a_network_volume_costs_for_as_long_as_the_job_lasts(somewhere: Path) -> None:
    lines = (
        'gpu = ["L4"]',
        'network_volume = "nv1"',
        "network_volume_per_month = 72",
        'checkpoint = { at = "remote" }',
    )
    (somewhere / "agent.toml").write_text(GOOD.replace("vast", "runpod") + "".join(f"{line}\n" for line in lines))
    given = ("train", "--hours", "10", "--price", "0.8")
    (on_demand,) = [one for one in options(*given) if one["name"] == "runpod, ondemand"]
    assert on_demand["storage_dollars"] == pytest.approx(0.1 * on_demand["hours"])
    assert any("the network volume's $0.1000/h" in note for note in on_demand["cited"])
    assert "storage is not counted, its price is not known" in on_demand["unknown"]
    (somewhere / "free.toml").write_text("network_volume_per_month = 0\n")
    (free,) = [one for one in options(*given, "--job", "free.toml") if one["name"] == "runpod, ondemand"]
    assert on_demand["dollars"] - free["dollars"] == pytest.approx(on_demand["storage_dollars"])


def test_csv_holds_the_same_figures() -> None:
    arguments = ("--gpu", "L4", "--hours", "3")
    rows = list(csv.DictReader(io.StringIO(run(*arguments, "--csv"))))
    assert [(row["name"], float(row["dollars"])) for row in rows] == [("aws", 3.0)]
    assert rows[0]["cited"].startswith("2025-04: ")


def test_a_workload_says_what_it_is(somewhere: Path) -> None:
    (somewhere / "agent.toml").write_text(GOOD)
    import tomllib

    name, table = next(iter(tomllib.loads(GOOD)["workloads"].items()))
    found = options(name, "--gpu", "RTX 4090", "--hours", "5", "--floor", "0.2", "--price", "0.4", "--hazard", "0.3")
    by_name = {one["name"]: one for one in found}
    assert by_name["vast, patient"]["tenure"] == "interruptible"
    assert by_name["vast, patient"]["interruptions"] > by_name["vast, ondemand"]["interruptions"]
    assert table["strategy"] in {"patient", "ondemand"}
    assert "there is no workload 'nobody'" in run("nobody", "--hours", "5", code=2)


def test_a_workload_with_a_deadline_says_how_long_and_until_when(somewhere: Path) -> None:
    deadline = 'kind = "batch"\n[workloads.train.deadline]\nhours = 48\nby = 2000-01-01T00:00:00Z\n'
    (somewhere / "agent.toml").write_text(GOOD + deadline)
    found = options("train", "--gpu", "RTX 4090", "--price", "0.4")
    assert {one["late"] for one in found if one["tenure"] == "on_demand"} == {1.0}
    (given,) = [one for one in found if one["name"] == "vast, ondemand"]
    assert given["dollars_least"] == pytest.approx(48 * 0.4, rel=1e-2)


def test_work_that_may_not_begin_yet_is_late_where_the_time_from_then_on_is_too_short(somewhere: Path) -> None:
    deadline = 'deadline = { hours = 6, by = "2098-12-31T18:00Z" }'
    lines = ('kind = "batch"', "not_before = 2098-12-31T16:00:00Z", deadline)
    (somewhere / "agent.toml").write_text(GOOD + "".join(f"{line}\n" for line in lines))
    found = options("train", "--gpu", "RTX 4090", "--price", "0.4")
    assert {one["late"] for one in found if one["tenure"] == "on_demand"} == {1.0}


def test_only_markets_that_the_workload_may_use_are_estimated(somewhere: Path) -> None:
    other = "[markets.runpod]\nsimulated = 'calm'\n"
    (somewhere / "agent.toml").write_text(GOOD.replace("[limits]", f"{other}[limits]") + 'markets = ["vast"]\n')
    found = options("train", "--gpu", "RTX 4090", "--hours", "5", "--price", "0.4", "--floor", "0.2")
    assert {one["name"] for one in found if "vast" in one["name"]}
    assert not [one["name"] for one in found if one["name"].startswith("runpod, ")]


TOLD = ((1, "o1", 100.0), (2, "o2", 140.0), (3, "o3", 110.0), (4, "o3", 130.0))
"""Leases, each on a host of its own, with the owner and the seconds that a checkpoint took."""


async def told_ledger(path: Path, leases: int) -> None:
    """Write a ledger with the measurements of the guards of the first leases of `TOLD`."""
    ledger = await Ledger.open(path, clock=SteppedClock(builders.NOW))
    async with ledger.transaction() as tx:
        for number, owner, took in TOLD[:leases]:
            lease = builders.lease(number, guard_run=1, owner_id=owner)
            tx.open_lease(lease)
            figures = GuardFigures(lease.lease_id, lease.slot, "vast", lease.host_id, 1, 1, builders.NOW)
            tx.keep_guard_figures(replace(figures, took_seconds=took, checkpoint_bytes=3_000_000_000))
    await ledger.close()


GUARDED = (
    '[ledger]\npath = "led.sqlite"\n'
    + GOOD
    + 'command = "./run"\n[workloads.train.checkpoint]\ntakes = "5s"\nsize_gb = 1.0\ninterval = "15m"\n'
    + '[workloads.train.guard]\npaths = ["/w"]\nbucket = "s3://abc"\nregion = "eu-1"\ncredential = "b"\n'
)


def test_what_hosts_of_two_owners_told_sets_no_estimate(somewhere: Path) -> None:
    """The claim of one host was the estimate."""
    (somewhere / "agent.toml").write_text(GUARDED)
    asyncio.run(told_ledger(somewhere / "led.sqlite", 2))
    job = ("train", "--gpu", "RTX 4090", "--hours", "5", "--floor", "0.2", "--price", "0.4", "--hazard", "0.3")
    assert json.loads(run(*job, "--json"))["measured"] == []
    assert "measured" not in run(*job)


def test_what_guards_measured_replaces_the_figures_of_the_file_and_is_marked(somewhere: Path) -> None:
    (somewhere / "agent.toml").write_text(GUARDED)
    asyncio.run(told_ledger(somewhere / "led.sqlite", len(TOLD)))
    job = ("train", "--gpu", "RTX 4090", "--hours", "5", "--floor", "0.2", "--price", "0.4", "--hazard", "0.3")
    found = json.loads(run(*job, "--json"))
    assert found["measured"] == [
        {"name": "checkpoint_bytes", "figure": 3e9, "leases": 4, "hosts": 4, "voices": 3},
        {"name": "took_seconds", "figure": 120.0, "leases": 4, "hosts": 4, "voices": 3},
    ]
    said = run(*job)
    assert "time to make one 120.0 s (measured; median over 3 owners of 4 hosts with 4 leases)" in said
    assert "size 3.00 GB (measured; median over 3 owners of 4 hosts with 4 leases)" in said
    (row,) = [row for row in csv.DictReader(io.StringIO(run(*job, "--csv"))) if row["name"] == "vast, ondemand"]
    assert row["measured"].count("(measured; median over 3 owners of 4 hosts with 4 leases)") == 2
    typed = json.loads(run(*job, "--checkpoint-takes", "5s", "--checkpoint-gb", "1", "--json"))
    assert typed["measured"] == []
    dollars = [
        next(one["dollars"] for one in shown["models"][0]["options"] if one["name"] == "vast, patient")
        for shown in (found, typed)
    ]
    assert dollars[0] > dollars[1] * 1.05, "two minutes of each quarter of an hour are paid for and not useful"


def test_csv_has_the_interval_by_the_age_of_a_lease(somewhere: Path) -> None:
    (somewhere / "agent.toml").write_text(GOOD + '[workloads.train.checkpoint]\ntakes = "30s"\n')
    given = ("train", "--gpu", "L4", "--hours", "3", "--floor", "0.2", "--hazard", "0.3", "--csv")
    rows = [row for row in csv.DictReader(io.StringIO(run(*given))) if row["tenure"] == "interruptible"]
    steps = [step.partition(": ") for row in rows for step in row["by_age"].split("; ")]
    assert len(steps) > 1
    assert all(float(age) >= 0 and float(interval) > 0 for age, _, interval in steps)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--gpu", "L4"), "gpubid: --hours: is missing; write for example --hours 24.0\n"),
        (("--gpu", "RTX 4O90", "--hours", "5"), 'knows no card "RTX 4O90"; did you mean RTX 4090?'),
        (("--hours", "5"), 'gpubid: --gpu: is missing; write for example --gpu "RTX 4090"\n'),
        (("--gpu", "", "--hours", "5"), "gpubid: --gpu: "),
        (("--gpu", "L4", "--hours", "0"), "gpubid: --hours: must be more than 0"),
        (("--gpu", "L4", "--hours", "1", "--dataset-gb", "-1"), "gpubid: --dataset-gb: must be at least 0"),
        (("--gpu", "L4", "--hours", "1", "--reruns", "lots"), "--reruns: 'lots' is not a factor"),
        (("--gpu", "L4", "--hours", "1", "--reruns", "3-2"), "--reruns: must be one factor"),
        (("--gpu", "L4", "--hours", "1", "--reruns", "2", "--odds", "0.5"), "odds does not go with reruns"),
        (("--gpu", "L4", "--hours", "1", "--odds", "1e-300"), "gpubid: --odds: must be at least 0.0025"),
        (
            ("--gpu", "L4", "--hours", "1", "--unit", "x", "--units", "1e-320"),
            "gpubid: --units: must be at least 0.001",
        ),
        (("--gpu", "L4", "--hours", "1", "--price", "cheap"), "--price: 'cheap' is not an amount"),
        (("--gpu", "L4", "--hours", "1", "--checkpoint-every", "often"), "--checkpoint-every: must be a duration"),
        (("--gpu", "L4", "--hours", "1", "--checkpoint-at", "moon"), "--checkpoint-at: must be"),
        (("--gpu", "L4", "--hours", "1", "--job", "none.toml"), "none.toml: there is no such file"),
        (("--gpu", "L4", "--hours", "1", "--baselines", "none.toml"), "none.toml: there is no such file"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_input_is_named_and_ends_with_2(arguments: tuple[str, ...], said: str) -> None:
    assert said in run(*arguments, code=2)


def test_a_workload_that_has_all_but_the_hours_is_offered(somewhere: Path) -> None:
    way = "a workload of the configuration has all but the hours: `gpubid estimate train --hours 24`"
    (somewhere / "agent.toml").write_text(GOOD)
    assert way not in run(code=2), "this one names no model"
    (somewhere / "agent.toml").write_text(GOOD + 'gpu = ["RTX 4090"]\n')
    assert way in run(code=2)
    assert way not in run("train", code=2)
    assert "24 h of work on 1x RTX 4090" in run("train", "--hours", "24")


def test_a_mistake_in_a_job_file_is_named_with_its_line(somewhere: Path) -> None:
    (somewhere / "job.toml").write_text(JOB.replace("gpus = 16", "gpu_count = 16"))
    assert "job.toml:2: gpu_count: is not a key here; " in run("--job", "job.toml", code=2)


def test_a_price_of_a_model_is_the_one_its_prices_are_compared_with(somewhere: Path) -> None:
    own = 'gpu = ["A100", "H100 SXM"]\n[workloads.train.max_price_by_gpu]\n"A100" = 0.50\n'
    (somewhere / "agent.toml").write_text(GOOD + own)
    said = run("train", "--hours", "2", "--price", "0.47", "--json")
    told = {
        model["gpu"]: any("above max_price" in each for one in model["options"] for each in one.get("unknown", ()))
        for model in json.loads(said)["models"]
    }
    assert told == {"A100": False, "H100 SXM": True}


def test_windows_and_budgets_are_shown_together(somewhere: Path) -> None:
    times = 'windows = [{ cron = "0 20 * * 1-5", for = "12h", zone = "Europe/Berlin" }]\nmax_running = "20h"\n'
    (somewhere / "agent.toml").write_text(GOOD + times)
    said = ("train", "--gpu", "RTX 4090", "--hours", "10", "--price", "0.40", "--floor", "0.20")
    shown = json.loads(run(*said, "--json"))["times"]
    assert (shown["windows_hours_a_week"], shown["max_running_hours"]) == (60.0, 20.0)
    assert [row["of"] for row in shown["budgets"]] == ["all workloads"]
    (end,) = [row for row in shown["ends"] if row["name"] == "vast, ondemand"]
    assert (end["stopped_by"], end["ends_at"] is not None) == (None, True)
    text = run(*said)
    assert "windows: 60 of the next 168 h; outside of them it is paused\n" in text
    assert "max_running: 20 h\n" in text
    assert "budget of all workloads: per_hour $1.00, per_day $12.00, per_month $250.00\n" in text
    assert "vast, ondemand (on demand): done on " in text


def test_a_budget_that_stops_an_arrays_starts_is_said_by_estimate_and_by_check(somewhere: Path) -> None:
    array = 'kind = "batch"\nslots = 20\nat_once = 3\ntask_hours = 10\nbudget = { max_total = 10 }\n'
    (somewhere / "agent.toml").write_text(GOOD + array)
    sentence = (
        "until 5 tasks are done, at most 2 of 3 slots are live: without gpu each task sets $4.5000 of the budget's "
        "$10.0000 (max_total) aside, which is task_hours at max_price; lower task_hours or max_price, or name the "
        "cards in gpu"
    )
    assert sentence in run("train", "--gpu", "RTX 4090", "--hours", "10", "--price", "0.40").replace("\n", " ")
    checked = CliRunner().invoke(main.app, ["check", "--json"])
    assert any(f"workloads.train.task_hours: {sentence}" in each for each in json.loads(checked.output)["warnings"])


def test_what_stops_a_job_before_its_end_is_said(somewhere: Path) -> None:
    (somewhere / "agent.toml").write_text(GOOD + 'max_running = "5h"\n')
    text = run("train", "--gpu", "RTX 4090", "--hours", "10", "--price", "0.40")
    assert "vast, ondemand (on demand): stopped by max_running after 5.0 h\n" in text


def test_a_workload_that_accepts_any_gpu_is_asked_for_a_model(somewhere: Path) -> None:
    (somewhere / "agent.toml").write_text(GOOD)
    said = run("train", "--hours", "5", code=2)
    assert 'train accepts any GPU, and an estimate is for one model; name it, for example --gpu "RTX 4090"' in said
