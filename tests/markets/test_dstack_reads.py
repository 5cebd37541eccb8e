"""Reading dstack: offers, whole listings, runs that are not ours, figures that are missing, words of no meaning."""

import datetime as dt
from datetime import timedelta
from typing import Any

import pytest

from agent.decide.pricing import offer_terms
from agent.domain import money
from agent.domain.market.instance import InstanceState
from agent.domain.market.tenure import Tenure
from agent.domain.work.workload import MaxPrice
from agent.markets import market_errors, tolerant_rows
from agent.markets.dstack import market as dstack
from agent.markets.dstack import names, rows, search, states
from agent.markets.dstack.endings import Endings
from agent.simulator.vast.http import call_gate
from tests.markets.bench_dstack import ServerBench, dstack_bench

NAME = "g0123456789ab-0-0123456789abcdef"
SEEN_AT = dt.datetime(2026, 11, 28, tzinfo=dt.UTC)


def row(**changes: Any) -> dict[str, Any]:
    gpu = {"name": "A100", "memory_mib": 81_920, "vendor": "nvidia"}
    resources = {"gpus": [gpu, dict(gpu)], "spot": False, "disk": {"size_mib": 102_400}}
    plain = {"backend": "aws", "region": "us-east-1", "price": 3.44, "availability": "available"}
    return plain | {"instance": {"name": "p4d", "resources": resources}} | changes


def offers(*found: dict[str, Any], asked_gb: float = 40.0) -> list[Any]:
    read = [tolerant_rows.row(one, rows.Offer, "The plan") for one in found]
    return search.offers(read, frozenset({"aws", "lambda"}), SEEN_AT, asked_gb, {"aws": 90_000})


@pytest.mark.parametrize(("told", "read"), [(40.0, 40.0), (None, 0.0), (-40.0, None), (1e300, None)])
def test_a_disk_of_no_size_that_a_disk_has_is_unread(told: float | None, read: float | None) -> None:
    """A disk of -40 GB was written to the ledger, which refused it: the daemon ended."""
    assert rows.Asked(rows.AskedDisk(rows.Range(told))).disk_gb == read


@pytest.mark.parametrize("status", ["terminated", "failed", "done"])
@pytest.mark.parametrize("job", ["running", "pulling", "provisioning", "submitted"])
def test_a_run_that_is_called_over_while_its_job_goes_on_is_no_end(status: str, job: str) -> None:
    run = rows.Run("1", rows.RunSpec(NAME), status, latest_job_submission=rows.Submission(status=job))
    standing = states.standing(run, (), Endings())
    assert (standing.state, standing.may_bill, standing.is_over) == (InstanceState.UNKNOWN, True, False)


def test_an_offer_is_a_pool_with_its_price_and_without_a_bus() -> None:
    (offer,) = offers(row())
    assert (offer.offer_id, offer.host_id) == ("aws/us-east-1/p4d", "pool/aws/us-east-1/p4d")
    assert (offer.gpu, offer.gpus, offer.vram_mb, offer.disk_gb) == ("A100", 2, 81_920, 8_000.0)
    assert (offer.ask, offer.floor, offer.keeps_disk) == (money.per_hour("3.44"), None, False)
    assert offer.dlperf == pytest.approx(2 * 76.4), "of the slower bus"
    assert names.pool(offer.host_id) == names.Pool("aws", "us-east-1", "p4d")
    assert offer.egress_micros_per_gb == 90_000


def test_a_disk_of_just_the_asked_size_may_be_larger_and_another_one_is_as_told() -> None:
    here = {"backend": "lambda"}
    (grows,), (stays,) = offers(row(**here), asked_gb=99.5), offers(row(**here), asked_gb=1.0)
    assert (grows.disk_gb, stays.disk_gb) == (8_000.0, 100.0)


def test_a_cloud_that_makes_no_small_disk_is_not_said_to_have_no_larger_one() -> None:
    """The hourly sample asks for 1 GB, and AWS tells 100."""
    (grows,) = offers(row(), asked_gb=1.0)
    assert grows.disk_gb == 8_000.0


def test_no_machine_costs_more_than_its_order_allowed() -> None:
    most = money.per_hour("0.69")
    assert search.paid_price(0.69, most) == most
    assert search.paid_price(0.50, most) == money.per_hour("0.5")
    assert search.paid_price(0.897, most) is None, "one wrong field does not reach a cap"
    assert search.paid_price(0.897, None) == money.per_hour("0.897")


def test_a_spot_machine_has_a_price_that_is_taken_and_a_pool_of_its_own() -> None:
    resources = row()["instance"]["resources"] | {"spot": True}
    plain, spot = offers(row(), row(price=1.5, instance={"name": "p4d", "resources": resources}))[::-1]
    assert (spot.ask, spot.floor, spot.is_price_taken) == (None, money.per_hour("1.5"), True)
    assert spot.host_id == f"{plain.host_id}/spot"
    assert names.pool(spot.host_id) == names.Pool("aws", "us-east-1", "p4d", is_spot=True)
    bids = offer_terms.Bids(MaxPrice(money.per_hour(9)), 0.0, headroom=1.0, ceiling=1.0)
    assert [(way.tenure, way.bid) for way in bids(spot)] == [(Tenure.INTERRUPTIBLE, money.per_hour("1.5"))]


@pytest.mark.parametrize(
    "changes",
    [
        {"backend": "vastai"},
        {"availability": "busy"},
        {"availability": "idle"},
        {"availability": "no_quota"},
        {"price": float("nan")},
        {"price": 0},
        {"price": -1.0},
        {"region": ""},
        {"region": "a/b"},
        {"instance": {"name": "p4d", "resources": {"gpus": [], "spot": False}}},
        {"instance": {"name": "t", "resources": {"gpus": [{"name": "v5", "vendor": "google"}], "spot": False}}},
    ],
    ids=str,
)
def test_a_row_that_cannot_be_rented_as_it_is_meant_is_dropped(changes: dict[str, Any]) -> None:
    assert offers(row(**changes)) == []


def test_a_pool_that_is_listed_twice_counts_at_its_lower_price() -> None:
    assert [one.ask for one in offers(row(price=4.0), row(price=3.0))] == [money.per_hour(3)]


@pytest.mark.parametrize(
    ("told", "ours"),
    [("RTX4090", "RTX 4090"), ("A6000", "RTX A6000"), ("H100NVL", "H100 NVL"), ("L40S", "L40S"), ("A10G", "A10G")],
)
def test_models_have_the_names_of_other_markets(told: str, ours: str) -> None:
    assert names.model(told) == ours


def run(status: str, job: str = "", reason: str | None = None, *, has_machine: bool = True) -> rows.Run:
    got = rows.Provisioned(backend="aws", region="us-east-1", price=1.0) if has_machine else None
    submission = rows.Submission(status=job, termination_reason=reason, job_provisioning_data=got)
    return rows.Run("r", rows.RunSpec(NAME), status=status, latest_job_submission=submission)


@pytest.mark.parametrize(
    ("shown", "state", "bills"),
    [
        (run("submitted", "submitted", has_machine=False), InstanceState.PENDING, False),
        (run("provisioning", "provisioning"), InstanceState.LOADING, True),
        (run("running", "pulling"), InstanceState.LOADING, True),
        (run("running", "running"), InstanceState.RUNNING, True),
        (run("dreaming", "running"), InstanceState.UNKNOWN, True),
        (run("running", "dreaming"), InstanceState.UNKNOWN, True),
        (run("terminating", "terminating", "aborted_by_user"), InstanceState.UNKNOWN, True),
        (run("failed", "failed", "interrupted_by_no_capacity"), InstanceState.OFFLINE, True),
        (run("failed", "failed", "creating_container_error"), InstanceState.FAILED, True),
        (run("terminated", "terminated", "a_new_reason"), InstanceState.OFFLINE, True),
        (run("done", "done", "done_by_runner"), InstanceState.EXITED, True),
        (run("failed", "failed", "failed_to_start_due_to_no_capacity", has_machine=False), InstanceState.FAILED, False),
    ],
    ids=lambda part: str(part.status) if isinstance(part, rows.Run) else str(part),
)
def test_a_run_is_told_in_our_words(shown: rows.Run, state: InstanceState, bills: bool) -> None:
    where = states.standing(shown, (), Endings())
    assert (where.state, where.may_bill) == (state, bills)


@pytest.mark.parametrize(
    ("reason", "is_of_an_outsider"),
    [
        ("terminated_by_user", True),
        ("aborted_by_user", True),
        ("terminated_by_server", True),
        ("a_new_reason", True),
        (None, True),
        ("interrupted_by_no_capacity", False),
        ("instance_unreachable", False),
        ("done_by_runner", False),
        ("executor_error", False),
    ],
)
def test_an_end_that_neither_host_nor_container_explains_came_from_outside(
    reason: str | None, is_of_an_outsider: bool
) -> None:
    where = states.standing(run("terminated", "terminated", reason), (), Endings())
    assert bool(where.stopped_from_outside) is is_of_an_outsider


async def test_a_listing_of_several_pages_is_whole() -> None:
    async with dstack_bench() as bench:
        spec = {"configuration": {"type": "task", "image": "ubuntu", "fleets": ["gpubid"]}}
        made = {bench.world.submit(spec, f"of-another-{number}").uuid for number in range(130)}
        assert {one.instance_id for one in await bench.market.instances()} == made


async def test_runs_of_others_are_listed_while_they_are_active_and_are_not_ours() -> None:
    async with dstack_bench() as bench:
        spec = {"configuration": {"type": "task", "image": "ubuntu", "fleets": ["gpubid"]}}
        bench.world.submit(spec, "a-person")
        mine = await bench.rent(await bench.offer())
        labels = {one.instance_id: one.label for one in await bench.market.instances()}
        assert sorted(labels.values()) == ["a-person", labels[mine]]
        bench.world.stop("a-person")
        for _ in range(8):
            await bench.simulated.advance(30)
            await bench.market.instances()
        assert [one.instance_id for one in await bench.market.instances()] == [mine]


async def test_a_machine_of_the_fleet_without_a_run_is_shown_and_is_not_ours() -> None:
    async with dstack_bench() as bench:
        run_id = await bench.rent(await bench.offer())
        await bench.running(run_id)
        (alone,) = bench.world.machines.values()
        alone.run_name, alone.job_uuid = "", ""
        bench.world.runs.clear()
        (shown,) = await bench.market.instances()
        assert (shown.label, shown.state, shown.bills_gpu) == ("", InstanceState.UNKNOWN, True)
        assert shown.gpu_rate > money.FREE


async def test_a_machine_that_was_there_before_the_order_is_another_host() -> None:
    async with dstack_bench() as bench:
        run_id = await bench.rent(await bench.offer())
        running = await bench.running(run_id)
        assert names.pool(running.host_id) is not None
        (machine,) = bench.world.machines.values()
        machine.created -= 3600
        (shown,) = await bench.market.instances()
        assert shown.host_id == f"pool/used-before/{machine.name}"


async def test_a_pull_that_hangs_is_loading_and_a_failed_one_is_told() -> None:
    async with dstack_bench() as bench:
        await bench.simulated.weather("stuck_loading", seconds=3600)
        run_id = await bench.rent(await bench.offer())
        await bench.simulated.advance(1200)
        loading = await bench.market.instance(run_id)
        assert (loading.state, loading.bills_gpu) == (InstanceState.LOADING, True)
        await bench.simulated.control("DELETE", "/weather")
        await bench.simulated.weather("pull_failure")
        failed = await bench.until(await bench.rent(await bench.offer()), InstanceState.FAILED)
        assert failed.is_image_refused
        assert "unexpected EOF" in failed.message


async def test_the_account_is_the_project_and_has_no_credit() -> None:
    async with dstack_bench() as bench:
        account = await bench.market.account()
        assert (account.account_id, account.credit) == (bench.world.project_id, None)
        assert account.market_time == bench.clock.now()
        now = bench.clock.now()
        assert (await bench.market.charges(now - timedelta(days=1), now), await bench.market.events(now)) == ((), ())


async def test_what_a_container_printed_is_read_in_order() -> None:
    async with dstack_bench() as bench:
        offer = await bench.offer()
        run_id = await bench.rent(offer)
        assert await bench.market.logs(run_id, 10) == ()
        await bench.running(run_id)
        await bench.simulated.advance(60)
        assert await bench.market.logs(run_id, 10) == ("ready",)
        assert await bench.market.logs(run_id, 0) == ()


async def test_an_unknown_project_names_the_key_to_set() -> None:
    async with dstack_bench() as bench:
        assert isinstance(bench, ServerBench)
        bench.market._client._name = "other"  # type: ignore[attr-defined]
        bench.market._client._project = "other"  # type: ignore[attr-defined]
        with pytest.raises(market_errors.Unavailable, match=r"\[markets.dstack\] project"):
            await bench.market.instances()


async def test_a_project_in_another_case_is_refused_and_shows_no_empty_listing() -> None:
    """The real server takes a path's project in any case, and lists nothing of one that it has in another case."""
    async with dstack_bench() as bench:
        assert isinstance(bench, ServerBench)
        await bench.rent(await bench.offer())
        url, terrain = bench.simulated.simulator.url("dstack"), dstack.Terrain(project="Main")
        market = dstack.connect(url, lambda: call_gate.DEFAULT_KEY, bench.clock, lambda: 0.5, terrain=terrain)
        assert list(rows.runs(await market._client.runs({}))) == []
        for asked in (market.instances, market.account, market.backends):
            with pytest.raises(market_errors.Unavailable, match="is called main, not Main"):
                await asked()
        await market.close()


async def test_offers_of_one_question_are_asked_for_once_a_minute() -> None:
    async with dstack_bench() as bench:
        for _ in range(3):
            await bench.offers(tenures=frozenset({Tenure.ON_DEMAND}))
        assert await bench.calls("POST", "/runs/get_plan") == 1
        await bench.simulated.advance(61)
        await bench.offers()
        assert await bench.calls("POST", "/runs/get_plan") == 2
        spot = await bench.offers(tenures=frozenset({Tenure.INTERRUPTIBLE}))
        assert {one.is_price_taken for one in spot} == {True}
        assert await bench.calls("POST", "/runs/get_plan") == 2
