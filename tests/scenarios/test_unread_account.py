"""The market lists our instances and does not show the account: what runs is seen, and for a while kept alive."""

import dataclasses
from typing import Any

import pytest

from agent.decide.limits.limits import Limits
from agent.domain import money
from agent.domain.record.lease import LeaseState
from agent.observe.poller import ACCOUNT_EVERY, ACCOUNT_KEPT
from tests.support.scene import MINUTE
from tests.support.world import Rehearsed, play

ROUTE = "GET /users/current"
FAULTS: list[dict[str, Any]] = [
    {"fault": "server_error_before"},
    {"fault": "malformed"},
    {"fault": "throttle_retry_after", "retry_after": 7200},
]
HOURS = 7200
each_fault = pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: str(fault["fault"]))


def outbid(world: Rehearsed) -> None:
    contract = world.contract()
    assert contract.bid is not None
    world.rival(contract.slice.machine_id, bid=contract.bid * 1.2)


@each_fault
def test_an_outbid_lease_runs_again_while_the_last_answer_is_believed(fault: dict[str, Any]) -> None:
    async def story(world: Rehearsed) -> None:
        await world.until_running()
        world.weather(route=ROUTE, seconds=HOURS, **fault)
        await world.cycle(minutes=8)
        outbid(world)
        await world.cycle(minutes=5)
        assert len(await world.events("lease.interrupted")) == 1
        assert [contract.holds_gpu for contract in world.live()] == [True]

    play(story, seed=1, poll=MINUTE)


@each_fault
def test_a_loss_after_that_is_seen_and_nothing_is_paid_until_the_account_is_read(fault: dict[str, Any]) -> None:
    async def story(world: Rehearsed) -> None:
        await world.until_running()
        world.weather(route=ROUTE, seconds=HOURS, **fault)
        await world.cycle(minutes=(ACCOUNT_KEPT + ACCOUNT_EVERY) / 60 + 2)
        outbid(world)
        orders = len(world.orders)
        await world.cycle(minutes=30)
        assert world.lease().state is LeaseState.PAUSED
        assert [order for order in world.orders[orders:] if order.kind.is_paying] == []
        world.still()
        await world.until_running(minutes=15)

    play(story, seed=1, poll=MINUTE)


def test_one_odd_answer_before_the_silence_is_believed_no_longer() -> None:
    """A sudden fall of the credit is read again with each listing; without an answer it was paid for ever."""

    async def story(world: Rehearsed) -> None:
        await world.until_running()
        (poller,) = world.app.pollers
        world.weather("no_credit", credit=30.0, seconds=HOURS)
        await world.until(lambda: poller.view.credit_before_fall is not None)
        world.weather(route=ROUTE, seconds=HOURS, fault="server_error_before")
        await world.cycle(minutes=ACCOUNT_KEPT / 60 - 2)
        assert poller.view.no_spend_because == ""
        await world.cycle(minutes=5)
        assert "has not shown the account" in poller.view.no_spend_because

    play(story, seed=1, poll=MINUTE)


def test_one_wrong_credit_right_after_a_restart_ends_nothing() -> None:
    async def story(world: Rehearsed) -> None:
        await world.until_running()
        await world.cycle(minutes=5)
        before = {lease.lease_id for lease in world.leases()}
        world.config = dataclasses.replace(world.config, limits=Limits(min_credit=money.usd(1)))
        world.weather("no_credit", credit=0.01, seconds=180)
        await world.restart()
        await world.cycle(minutes=10)
        assert {lease.lease_id for lease in world.leases()} == before
        assert [contract.holds_gpu for contract in world.live()] == [True]
        assert await world.events("lease.paused") == []

    play(story, seed=1, poll=MINUTE)
