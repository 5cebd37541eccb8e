"""RunPod's answers as our nouns: offers, pods, account, bill, log."""

import json
import math
from datetime import UTC, datetime
from typing import Any

import pytest

from agent.clock import SteppedClock
from agent.domain import money
from agent.domain.market.instance import InstanceState
from agent.domain.market.tenure import Tenure
from agent.markets import market_errors
from agent.markets.port import Capability
from agent.markets.runpod import listing, names
from tests.markets import pods
from tests.markets.scene import KEY, asked
from tests.markets.wire import Says, Seen


async def test_each_data_centre_that_has_some_is_an_offer_for_the_whole_pod(clock: SteppedClock) -> None:
    async with pods.runpod_saying(pods.account, clock) as (runpod, wire):
        found = await runpod.offers(asked(gpus=2, gpu_models=("RTX 4090",), disk_gb=40.0, regions=()))
    assert [offer.offer_id for offer in found] == [
        "pool/SECURE/NVIDIA_GeForce_RTX_4090/EU-RO-1#2",
        "pool/SECURE/NVIDIA_GeForce_RTX_4090/US-KS-2#2",
    ]
    first = found[0]
    assert (first.ask, first.gpus, first.gpu) == (money.per_hour("1.32"), 2, "RTX 4090")
    assert first.floor == money.per_hour("0.70")
    assert (first.is_verified, first.region, first.vram_mb) == (True, "EU-RO-1, RO", 24 * 1024)
    # $0.20 for a gigabyte and month of 720 hours: container disk and volume together.
    assert first.disk_rate(40.0) == money.per_hour("0.011111")
    floors, catalogue = wire.seen
    assert floors.json["variables"] == {"input": {"gpuCount": 2, "secureCloud": True}}
    assert catalogue.query == {"include": "AVAILABILITY", "product": "POD", "count": "2", "cloud": "SECURE"}
    assert catalogue.headers["authorization"] == f"Bearer {KEY}"


async def test_the_community_is_asked_where_unverified_will_do(clock: SteppedClock) -> None:
    async with pods.runpod_saying(pods.account, clock) as (runpod, wire):
        found = await runpod.offers(asked(verified_only=False, gpu_models=("RTX 4090",)))
        narrowed = await runpod.offers(asked(regions=("RO",), gpu_models=("RTX 4090",)))
    assert [seen.query["cloud"] for seen in wire.seen if seen.query] == ["SECURE", "COMMUNITY", "SECURE"]
    assert [(offer.ask, offer.is_verified) for offer in found][:2] == [(money.per_hour("0.36"), False)] * 2
    assert [offer.region for offer in narrowed] == ["EU-RO-1, RO"]


async def test_what_is_out_of_stock_or_not_in_a_cloud_is_no_offer(clock: SteppedClock) -> None:
    async with pods.runpod_saying(pods.account, clock) as (runpod, _):
        found = await runpod.offers(asked(verified_only=False))
    models = {(offer.gpu, offer.is_verified) for offer in found}
    assert models == {("RTX 4090", True), ("RTX 4090", False), ("H100 SXM", True)}
    assert [offer.host_id for offer in found if offer.gpu == "H100 SXM"] == ["pool/SECURE/NVIDIA_H100_80GB_HBM3"]


def test_a_pool_is_read_back_from_its_id() -> None:
    pool = names.Pool("COMMUNITY", "NVIDIA RTX A4000", "CA-MTL-1")
    assert names.pool(pool.host_id) == pool
    assert names.pool(names.Pool("SECURE", "Tesla V100-SXM2-16GB").host_id) == names.Pool(
        "SECURE", "Tesla V100-SXM2-16GB"
    )
    for other in ("5101", "pool/", "pool/SECURE", "pool/a/b/c/d"):
        assert names.pool(other) is None


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("NVIDIA A100-SXM4-80GB", "A100 SXM4"),
        ("A100 SXM", "A100 SXM4"),
        ("NVIDIA A100 80GB PCIe", "A100 PCIE"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("H200 SXM", "H200"),
        ("NVIDIA GeForce RTX 4080 SUPER", "RTX 4080S"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX 6000 ADA"),
        ("Tesla V100-SXM2-16GB", "V100"),
    ],
)
def test_a_model_has_the_name_it_has_elsewhere(name: str, model: str) -> None:
    assert names.model(name) == model


@pytest.mark.parametrize(
    ("data_center", "region"),
    [("US-KS-2", "US-KS-2, US"), ("EUR-IS-1", "EUR-IS-1, IS"), ("CA-MTL-1", "CA-MTL-1, CA"), ("", "")],
)
def test_a_data_centre_tells_its_country(data_center: str, region: str) -> None:
    assert names.region(data_center) == region


async def test_a_pod_is_an_instance_with_its_money(clock: SteppedClock) -> None:
    async with pods.runpod_saying(pods.account, clock) as (runpod, wire):
        ours, stopped, cpu = await runpod.instances()
    assert (ours.instance_id, ours.host_id, ours.tenure) == (pods.POD, pods.HOST, Tenure.ON_DEMAND)
    assert (ours.state, ours.gpus, ours.gpu_rate) == (InstanceState.RUNNING, 2, money.per_hour("1.32"))
    assert ours.label == "gpubid:0123456789ab:train:0:0123456789abcdef"
    assert (ours.disk_gb, ours.disk_rate) == (40.0, money.per_hour("0.011111"))
    assert (ours.address, ours.ports) == ("203.0.113.9:40022", "8000/tcp=203.0.113.9:41234")
    assert (ours.gpu_util, ours.created_at) == (80.0, datetime(2026, 11, 5, 20, tzinfo=UTC))
    # A stopped pod shows no cost: the catalogue has its future cost, and the volume alone is paid for, at 0.20.
    assert (stopped.state, stopped.gpu_rate) == (InstanceState.PAUSED, money.per_hour("2.94"))
    assert stopped.billing_rate == stopped.disk_rate == money.per_hour("0.008333")
    assert stopped.host_id == "pool/SECURE/NVIDIA_H100_80GB_HBM3"
    assert (cpu.gpus, cpu.gpu_rate) == (0, money.per_hour("0.06"))
    assert [seen.path for seen in wire.seen] == ["/v2/pods", "/v2/catalog/gpus", "/graphql"]


@pytest.mark.parametrize(
    ("status", "runtime", "state"),
    [
        ("PROVISIONING", {}, InstanceState.PENDING),
        ("STARTING", None, InstanceState.LOADING),
        ("RUNNING", None, InstanceState.LOADING),
        ("RUNNING", {}, InstanceState.LOADING),
        ("RUNNING", {"uptime": 0}, InstanceState.RUNNING),
        ("ERROR", None, InstanceState.FAILED),
        ("DREAMING", None, InstanceState.UNKNOWN),
    ],
)
async def test_the_status_table(clock: SteppedClock, status: str, runtime: Any, state: InstanceState) -> None:
    row = pods.pod(status=status, runtime=runtime)
    async with pods.runpod_saying(pods.listing(row), clock) as (runpod, _):
        (found,) = await runpod.instances()
    assert found.state is state
    # Whatever the word, a pod whose cost is shown counts as charged.
    assert found.bills_gpu


@pytest.mark.parametrize(
    ("status", "is_charged"),
    [("PROVISIONING", True), ("STARTING", True), ("RUNNING", True), ("DREAMING", True), ("EXITED", False)],
)
async def test_a_pod_without_a_cost_counts_at_the_listed_price_unless_it_is_stopped(
    clock: SteppedClock, status: str, is_charged: bool
) -> None:
    def answer(seen: Seen) -> Says:
        return pods.listing(pods.pod(status=status, cost=0))(seen) if seen.path == "/v2/pods" else pods.account(seen)

    async with pods.runpod_saying(answer, clock) as (runpod, _):
        (found,) = await runpod.instances()
    assert found.gpu_rate == money.per_hour("1.32")
    assert found.billing_rate == found.disk_rate + (found.gpu_rate if is_charged else money.FREE)


@pytest.mark.parametrize("cost", [1.32, 0.0])
async def test_a_pod_that_falls_silent_runs_on_for_a_while_and_is_offline_then(
    clock: SteppedClock, cost: float
) -> None:
    async with pods.runpod_saying(pods.listing(pods.pod()), clock) as (runpod, wire):
        states, rates = [], []
        for _step in range(4):
            (row,) = await runpod.instances()
            states.append(row.state)
            rates.append(row.billing_rate)
            clock.advance(100.0)
            wire.answers = pods.listing(pods.pod(runtime=None, cost=cost))
    assert states == [InstanceState.RUNNING, InstanceState.RUNNING, InstanceState.OFFLINE, InstanceState.OFFLINE]
    # A report that is late, or never comes, says nothing about money; a cost that the market shows as none does.
    assert all(rate > row.gpu_rate for rate in rates[:2])
    assert [rate > row.gpu_rate for rate in rates[2:]] == [cost > 0] * 2
    assert cost > 0 or rates[2:] == [money.FREE] * 2


@pytest.mark.parametrize(
    "body",
    [
        {"pods": None},
        {},
        [],
        {"pods": [{"name": "a"}]},
        {"pods": [pods.pod(id="")]},
        {"pods": [pods.pod(id=7)]},
        {"pods": [pods.pod(), pods.pod(cost=9.0)]},
        {"pods": [pods.pod()], "nextCursor": 5},
        {"pods": [], "nextCursor": "more"},
        {"pods": [pods.pod()], "nextCursor": "more"},
        b"<html>hello</html>",
    ],
    ids=range(11),
)
async def test_a_listing_that_cannot_be_whole_is_refused(clock: SteppedClock, body: Any) -> None:
    async with pods.runpod_saying(pods.account, clock) as (runpod, wire):
        wire.answers = lambda seen: Says(body) if seen.path == "/v2/pods" else pods.account(seen)
        with pytest.raises(market_errors.Malformed):
            await runpod.instances()


def paged(*pages: list[dict[str, Any]]) -> Any:
    def answers(seen: Seen) -> Says:
        if seen.path != "/v2/pods":
            return pods.account(seen)
        at = int(seen.query.get("cursor", "0"))
        more = {"nextCursor": str(at + 1)} if at + 1 < len(pages) else {"nextCursor": None}
        return Says({"pods": pages[at], **more})

    return answers


async def test_every_page_of_a_listing_is_read(clock: SteppedClock) -> None:
    rows = [pods.pod(id=f"pod{number}") for number in range(5)]
    async with pods.runpod_saying(paged(rows[:2], rows[2:4], rows[4:]), clock) as (runpod, wire):
        assert [one.instance_id for one in await runpod.instances()] == [row["id"] for row in rows]
    asked = [seen.query.get("cursor") for seen in wire.seen if seen.path == "/v2/pods"]
    assert asked == [None, "1", "2"]


async def test_a_page_that_fails_is_a_failed_listing(clock: SteppedClock) -> None:
    def answers(seen: Seen) -> Says:
        return pods.problem(400, "no such cursor") if seen.query else paged([pods.pod()], [])(seen)

    async with pods.runpod_saying(answers, clock) as (runpod, _):
        with pytest.raises(market_errors.MarketError):
            await runpod.instances()


async def test_a_pod_that_comes_twice_the_same_is_one(clock: SteppedClock) -> None:
    async with pods.runpod_saying(paged([pods.pod(), pods.pod()], [pods.pod()]), clock) as (runpod, _):
        assert [one.instance_id for one in await runpod.instances()] == [pods.POD]


async def test_pages_without_end_are_given_up(clock: SteppedClock) -> None:
    rows = [[pods.pod(id=f"pod{number}")] for number in range(200)]
    async with pods.runpod_saying(paged(*rows), clock) as (runpod, wire):
        with pytest.raises(market_errors.Malformed, match="pages"):
            await runpod.instances()
    assert len(wire.seen) == listing.MOST_PAGES


@pytest.mark.parametrize(
    ("changes", "unread"),
    [
        ({"cost": "much"}, {"gpu_rate"}),
        ({"cost": -1}, {"gpu_rate"}),
        ({"cost": None}, {"gpu_rate"}),
        ({"cost": math.nan}, {"gpu_rate"}),
        ({"cost": math.inf}, {"gpu_rate"}),
        ({"cost": {"each": 1}}, {"gpu_rate"}),
        ({"disk": "big"}, {"disk_gb", "disk_rate"}),
        ({"disk": math.nan}, {"disk_gb", "disk_rate"}),
        ({"mounts": 7}, {"disk_rate"}),
        ({"gpu": {"id": "NVIDIA GeForce RTX 4090", "count": -1}}, {"gpus"}),
        ({"gpu": "a big one"}, {"gpus", "host_id"}),
        ({"cloud": 7}, {"gpus", "host_id"}),
        ({"status": 7, "name": [], "ssh": "x", "runtime": 5, "createdAt": 9, "dataCenterId": []}, set()),
    ],
    ids=lambda given: str(given) if isinstance(given, dict) else "",
)
async def test_a_pod_stays_although_a_figure_of_it_cannot_be_read(
    clock: SteppedClock, changes: dict[str, Any], unread: set[str]
) -> None:
    body = json.dumps({"pods": [pods.pod(**changes)]}).encode()
    one = json.dumps(pods.pod(**changes)).encode()

    def answers(seen: Seen) -> Says:
        told = {"/v2/pods": body, f"/v2/pods/{pods.POD}": one}.get(seen.path)
        return pods.account(seen) if told is None else Says(told)

    async with pods.runpod_saying(answers, clock) as (runpod, _):
        (listed,) = await runpod.instances()
        assert listed.instance_id == pods.POD
        assert listed.unread == unread
        assert await runpod.instance(pods.POD) == listed
        assert "status" not in changes or listed.state is InstanceState.UNKNOWN
        assert "cost" not in changes or (listed.gpu_rate == money.FREE and listed.bills_gpu)


@pytest.mark.parametrize(
    ("cost", "status", "is_charged"),
    [
        ("a lot", "EXITED", False),
        (math.nan, "EXITED", False),
        (None, "EXITED", False),
        (0.34, "EXITED", True),
        ("a lot", "RUNNING", True),
        (None, "DREAMING", True),
        (0, "EXITED", False),
    ],
)
async def test_an_exited_pod_with_no_readable_cost_bills_its_volume_alone(
    clock: SteppedClock, *, cost: Any, status: str, is_charged: bool
) -> None:
    body = json.dumps({"pods": [pods.pod(status=status, cost=cost)]}).encode()

    def answers(seen: Seen) -> Says:
        return Says(body) if seen.path == "/v2/pods" else pods.account(seen)

    async with pods.runpod_saying(answers, clock) as (runpod, _):
        (found,) = await runpod.instances()
    assert found.bills_gpu is is_charged


async def test_a_price_that_is_no_json_drops_its_row_of_the_catalogue_alone(clock: SteppedClock) -> None:
    rows = pods.payload("catalogue")["gpus"]
    rows[0]["price"]["secure"] = math.nan
    body = json.dumps({"gpus": rows}).encode()

    def answers(seen: Seen) -> Says:
        return Says(body) if seen.path.startswith("/v2/catalog") else pods.account(seen)

    async with pods.runpod_saying(answers, clock) as (runpod, _):
        found = await runpod.offers(asked())
    assert {offer.gpu for offer in found} == {"H100 SXM"}


@pytest.mark.parametrize("said", [math.nan, "much", -1e99, []], ids=str)
async def test_credit_and_costs_that_cannot_be_read_leave_the_account_known(clock: SteppedClock, said: Any) -> None:
    rows = [{"id": pods.POD, "podType": "INTERRUPTABLE", "costPerHr": said, "desiredStatus": "RUNNING"}]
    told = {"data": {"myself": {"id": "user_1", "clientBalance": said, "pods": rows}}}

    def answers(seen: Seen) -> Says:
        return Says(json.dumps(told).encode()) if seen.path == "/graphql" else pods.account(seen)

    async with pods.runpod_saying(answers, clock) as (runpod, _):
        assert (await runpod.account()).account_id == "user_1"
        assert (await runpod.account()).credit is None
        assert (await runpod.instances())[0].tenure is Tenure.INTERRUPTIBLE


async def test_the_account_comes_from_graphql_and_credit_is_unknown_once_that_is_gone(clock: SteppedClock) -> None:
    gone = Says({"error": "gone"}, 410)
    schema = Says({"errors": [{"message": "x", "extensions": {"code": "GRAPHQL_VALIDATION_FAILED"}}]}, 400)
    async with pods.runpod_saying(pods.account, clock) as (runpod, wire):
        told = await runpod.account()
        assert (told.account_id, told.credit) == ("user_1", money.usd("12.5"))
        assert told.market_time == datetime(2026, 11, 5, 22, tzinfo=UTC)
        assert Capability.CREDIT in runpod.capabilities()
        for refusal in (gone, schema):
            wire.answers = pods.without_graphql(refusal)
            untold = await runpod.account()
            assert (untold.account_id, untold.credit) == ("user_1", None)
            assert Capability.CREDIT not in runpod.capabilities()
            # It is asked again seldom: the listing proves the key meanwhile.
            asked_before = sum(seen.path == "/graphql" for seen in wire.seen)
            await runpod.account()
            assert sum(seen.path == "/graphql" for seen in wire.seen) == asked_before
            clock.advance(7 * 3600.0)


@pytest.mark.parametrize(
    ("says", "error"),
    [
        (pods.problem(401, "missing bearer token"), market_errors.Unauthorized),
        (Says({"data": {"myself": None}, "errors": [{"message": "Unauthorized"}]}), market_errors.Unauthorized),
        (Says({"data": {"myself": None}}), market_errors.Unauthorized),
        (Says({"errors": [{"message": "Something went wrong."}], "data": None}), market_errors.Unavailable),
        (Says(b"<html>", 502), market_errors.Unavailable),
        (Says(b"", 429, {"Retry-After": "7"}), market_errors.Throttled),
        (Says(b"<html>", 403), market_errors.Unavailable),
        (Says(b"", 403), market_errors.Unavailable),
        (pods.problem(403, "forbidden"), market_errors.Unauthorized),
    ],
    ids=range(9),
)
async def test_an_account_that_cannot_be_read(clock: SteppedClock, says: Says, error: type[Exception]) -> None:
    async with pods.runpod_saying(says, clock) as (runpod, _):
        with pytest.raises(error):
            await runpod.account()


async def test_the_bill_by_pod_and_day(clock: SteppedClock) -> None:
    async with pods.runpod_saying(pods.account, clock) as (runpod, wire):
        lines = await runpod.charges(datetime(2026, 11, 4, tzinfo=UTC), datetime(2026, 11, 5, 12, tzinfo=UTC))
    assert [(line.instance_id, line.amount, line.day.day) for line in lines] == [
        (pods.POD, money.usd("3.25"), 4),
        ("p8d2w5z0c4ef", money.usd("0.2"), 5),
    ]
    assert wire.seen[0].query == {
        "startTime": "2026-11-04T00:00:00Z",
        "endTime": "2026-11-05T12:00:00Z",
        "bucketSize": "day",
    }


async def test_the_last_lines_of_a_stream_that_goes_on(clock: SteppedClock) -> None:
    said = [{"source": "container", "line": f"epoch {number}\x1b[2J"} for number in range(3)]
    said.insert(1, {"source": "system", "line": "create container"})
    stream = b"".join(b"id: 1\ndata: " + json.dumps(one).encode() + b"\n\n" for one in said)
    # More is announced than ever comes: the stream is left open.
    async with pods.runpod_saying(Says(stream, headers={"Content-Type": "text/event-stream"}), clock) as (runpod, wire):
        assert await runpod.logs(pods.POD, 2) == ("epoch 1 [2J", "epoch 2 [2J")
    assert wire.seen[0].query == {"source": "container", "tail": "2"}


async def test_a_pod_that_is_gone_is_told_by_a_problem_document_alone(clock: SteppedClock) -> None:
    async with pods.runpod_saying(pods.account, clock) as (runpod, wire):
        assert (await runpod.instance(pods.POD)).instance_id == pods.POD
        with pytest.raises(market_errors.NotFound):
            await runpod.instance("nobody")
        wire.answers = lambda _: Says(pods.pod(status="TERMINATED", cost=0.0))
        with pytest.raises(market_errors.NotFound):
            await runpod.instance(pods.POD)
        wire.answers = lambda _: Says(b"<html>404</html>", 404)
        with pytest.raises(market_errors.Unavailable):
            await runpod.instance("nobody")
