"""GraphQL's answers that have data and an error: what is there is used, and a part that is needed is named."""

from datetime import timedelta
from typing import Any

import pytest

from agent.clock import SteppedClock
from agent.domain import money
from agent.domain.market.interruption import MarketEventKind
from agent.domain.market.tenure import Tenure
from agent.domain.work.workload import Requirements
from agent.markets import market_errors
from agent.markets.port import OfferQuery
from tests.markets import pods
from tests.markets.wire import Answers, Says, Seen

BID: dict[str, Any] = {
    "id": pods.POD,
    "podType": "INTERRUPTABLE",
    "costPerHr": 0.80,
    "gpuCount": 2,
    "desiredStatus": "RUNNING",
    "runtime": {"uptimeInSeconds": 900},
}
MYSELF: dict[str, Any] = {"id": "user_1", "clientBalance": 12.5, "pods": [BID]}


def partly(myself: dict[str, Any] | None, *path: object) -> Answers:
    """Answer as an account with one pod at a bid, with an error about one part of GraphQL's answer."""
    error = {"message": "Something went wrong", "path": list(path), "extensions": {"code": "INTERNAL_SERVER_ERROR"}}
    said = Says({"errors": [error], "data": {"myself": myself}})
    return lambda seen: said if seen.path == "/graphql" else pods.listing(pods.pod(cost=0.80))(seen)


@pytest.mark.parametrize("field", ["runtime", "lastStatusChange", "desiredStatus", "gpuCount", "costPerHr"])
async def test_a_listing_is_used_although_a_field_of_a_pod_that_it_can_do_without_is_missing(
    clock: SteppedClock, field: str
) -> None:
    told = MYSELF | {"pods": [BID | {field: None}]}
    async with pods.runpod_saying(partly(told, "myself", "pods", 0, field), clock) as (runpod, _):
        (row,) = await runpod.instances()
    assert (row.tenure, row.gpu_rate) == (Tenure.INTERRUPTIBLE, money.per_hour("0.80"))


async def test_a_balance_that_is_missing_is_unknown(clock: SteppedClock) -> None:
    told = MYSELF | {"clientBalance": None}
    async with pods.runpod_saying(partly(told, "myself", "clientBalance"), clock) as (runpod, _):
        account = await runpod.account()
    assert (account.account_id, account.credit) == ("user_1", None)


@pytest.mark.parametrize("account_id", ["u" * 5_000, "user\x1b[2J", ""])
async def test_an_account_whose_id_is_no_name_is_unknown(clock: SteppedClock, account_id: str) -> None:
    told = Says({"data": {"myself": MYSELF | {"id": account_id}}})
    async with pods.runpod_saying(lambda seen: told if seen.path == "/graphql" else pods.account(seen), clock) as (
        runpod,
        _,
    ):
        account = await runpod.account()
    assert (account.account_id, account.credit) == ("", money.usd("12.5"))


@pytest.mark.parametrize(
    ("myself", "part"),
    [
        (None, "answered a question with an error"),
        (MYSELF | {"id": None}, "without myself.id"),
        (MYSELF | {"pods": None}, "without myself.pods"),
        (MYSELF | {"pods": [BID, None]}, "without myself.pods.1"),
        (MYSELF | {"pods": [BID | {"podType": None}]}, f"without podType of pod {pods.POD}"),
    ],
    ids=["all", "id", "pods", "one pod", "kind"],
)
async def test_a_part_that_decides_what_a_pod_is_refuses_the_listing_and_is_named(
    clock: SteppedClock, myself: dict[str, Any] | None, part: str
) -> None:
    async with pods.runpod_saying(partly(myself, "myself", "pods", 0, "podType"), clock) as (runpod, _):
        with pytest.raises(market_errors.Unavailable) as caught:
            await runpod.instances()
    assert part in str(caught.value)
    assert "Something went wrong" in str(caught.value)
    assert myself is None or "myself.pods.0.podType: Something" in str(caught.value)


def floors(*types: Any) -> Answers:
    error = {"message": "busy", "path": ["gpuTypes", 1, "lowestPrice"]}
    said = Says({"errors": [error], "data": {"gpuTypes": list(types)}})
    return lambda seen: said if seen.path == "/graphql" and "gpuTypes" in seen.json["query"] else pods.account(seen)


QUERY = OfferQuery(Requirements(), 40.0)


async def test_the_floors_that_are_there_are_used(clock: SteppedClock) -> None:
    known = {"id": "NVIDIA GeForce RTX 4090", "lowestPrice": {"minimumBidPrice": 0.35, "uninterruptablePrice": 0.66}}
    answers = floors(known, {"id": "NVIDIA A40", "lowestPrice": None}, None)
    async with pods.runpod_saying(answers, clock) as (runpod, _):
        found = await runpod.offers(QUERY)
    assert {offer.floor for offer in found if offer.gpu == "RTX 4090"} == {money.per_hour("0.35")}


async def test_no_floor_beside_an_error_does_not_show_that_none_is_sold(clock: SteppedClock) -> None:
    answers = floors({"id": "NVIDIA GeForce RTX 4090", "lowestPrice": None})
    async with pods.runpod_saying(answers, clock) as (runpod, _):
        assert await runpod.offers(QUERY)
        assert runpod.not_sold() == {}


async def test_the_maintenance_of_a_pod_whose_machine_is_missing_stays_announced(clock: SteppedClock) -> None:
    begins = clock.now() + timedelta(hours=3)
    machine: dict[str, Any] | None = {"maintenanceStart": f"{begins:%Y-%m-%dT%H:%M:%SZ}", "maintenanceEnd": None}

    def answers(seen: Seen) -> Says:
        if seen.path != "/graphql" or "maintenance" not in seen.json["query"]:
            return pods.listing(pods.pod(cost=0.80), told=[BID])(seen)
        errors = [] if machine else [{"message": "busy", "path": ["myself", "pods", 0, "machine"]}]
        return Says({"errors": errors, "data": {"myself": {"pods": [{"id": pods.POD, "machine": machine}]}}})

    async def announced() -> int:
        await runpod.instances()
        events = await runpod.events(clock.now() - timedelta(days=1))
        return sum(event.kind is MarketEventKind.MAINTENANCE for event in events)

    async with pods.runpod_saying(answers, clock) as (runpod, _):
        assert await announced() == 1
        machine = None
        clock.advance(700.0)
        assert await announced() == 1
        clock.advance(3 * 3600.0)
        assert await announced() == 0
