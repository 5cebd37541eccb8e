"""A lease that becomes dearer without our doing."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from agent.decide.facts import Alert, LeaseChanged
from agent.decide.reconcile import market_alerts, reconcile
from agent.decide.reconcile.pass_memory import Memory
from agent.domain.fleet import Fleet
from agent.domain.market.instance import Instance, InstanceState
from agent.domain.market.interruption import MarketEventKind
from agent.domain.market.tenure import Tenure
from agent.domain.record.cooldown import Cooldown, CooldownKind
from agent.domain.record.lease import Bills, LeaseState
from agent.domain.record.tally import Counted, Tally
from tests.support import builders


def world(charged: str, tenure: Tenure = Tenure.ON_DEMAND, instance_id: str = "1") -> Fleet:
    held = builders.lease(tenure=tenure, gpus=2, gpu_rate=builders.per_hour("0.40"), ends_at=builders.NOW)
    row = builders.instance(tenure=tenure, gpu_rate=builders.per_hour(charged))
    asked = builders.event(MarketEventKind.PRICE_RISE, instance_id=instance_id, new_rate=builders.per_hour("0.30"))
    view = builders.view(instances=(row,), rises=(asked,))
    return builders.fleet(workloads=(builders.workload(),), markets={"vast": view}, leases=(held,))


def alerts(fleet: Fleet) -> list[Alert]:
    return [fact for fact in reconcile.reconcile(fleet, Memory()).facts if isinstance(fact, Alert)]


def test_a_pending_rise_is_told_with_what_all_gpus_would_cost() -> None:
    (alert,) = alerts(world("0.40"))
    assert alert.code == "price_rise"
    assert "asks for a new price of $0.6000/h" in alert.sentence
    assert f"the lease ends on {builders.NOW:%Y-%m-%d %H:%M} UTC" in alert.sentence


def test_a_market_that_rented_what_was_not_ordered_is_told_with_the_commands_that_show_and_end_it() -> None:
    until = builders.NOW + timedelta(minutes=4)
    rest = Cooldown(CooldownKind.MARKET, "vast", until, "1 rent that was not as ordered within 2 min")
    (alert,) = alerts(builders.fleet(cooldowns=(rest,)))
    assert (alert.kind, alert.key) == ("alert.not_as_rented", "market:vast")
    assert f"nothing is rented on vast until {until:%H:%M} UTC" in alert.sentence
    assert "`gpubid ledger events --kind lease.mismatched`" in alert.sentence
    assert "`gpubid unlock market:vast`" in alert.sentence
    over = Cooldown(CooldownKind.MARKET, "vast", builders.NOW, "over")
    other = Cooldown(CooldownKind.HOST, "vast/7", until, "a rent that was not as ordered")
    assert alerts(builders.fleet(cooldowns=(over, other))) == []


def test_a_rise_of_somebody_elses_instance_is_none_of_ours() -> None:
    assert alerts(world("0.40", instance_id="77")) == []


def test_an_on_demand_lease_that_costs_more_is_an_event_and_a_bid_is_our_own_doing() -> None:
    def kinds(fleet: Fleet) -> list[str]:
        facts = reconcile.reconcile(fleet, Memory()).facts
        return [fact.kind or "" for fact in facts if isinstance(fact, LeaseChanged)]

    assert kinds(world("0.45")) == ["lease.repriced"]
    assert kinds(world("0.35")) == [""]
    assert kinds(world("0.45", Tenure.INTERRUPTIBLE)) == [""]


@pytest.mark.parametrize(
    ("lease", "order", "said", "ends"),
    [
        ({}, "lower", "to lower the bid of vast-1", False),
        ({}, "raise", "to raise the bid of vast-1", False),
        ({"state": LeaseState.PAUSED}, "lower", "to lower the bid of vast-1", False),
        ({"state": LeaseState.PAUSED}, "raise", "to raise the bid of vast-1", True),
        ({"state": LeaseState.PAUSED}, "resume", "to resume vast-1", True),
        ({}, "pause", "to pause vast-1", True),
    ],
)
def test_a_lease_that_works_is_not_to_be_given_up_for_an_order_that_is_refused(
    lease: dict[str, Any], order: str, said: str, *, ends: bool
) -> None:
    held = builders.lease(**lease)
    (alert,) = market_alerts.refused(builders.fleet(leases=(held,), tallies=(_refused(order),)))
    assert said in alert.sentence
    assert ("`gpubid release vast-1`" in alert.sentence) is ends
    assert ("it goes on at $0.2200/h" in alert.sentence) is not ends


def _refused(order: str) -> Tally:
    since, until = builders.ago(minutes=30), builders.NOW + timedelta(minutes=30)
    return Tally(Counted.UNTAKEN, "vast-1", since, until, "invalid_args", order, 3)


@pytest.mark.parametrize("state", [LeaseState.RUNNING, LeaseState.PAUSED])
def test_an_order_that_was_refused_before_its_lease_changed_is_told_no_more(state: LeaseState) -> None:
    """A start that was refused three times is no fault of a lease that runs by now."""
    held = builders.lease(state=state, state_since=builders.ago(minutes=1))
    assert list(market_alerts.refused(builders.fleet(leases=(held,), tallies=(_refused("resume"),)))) == []


@pytest.mark.parametrize(
    ("row", "bills", "listed_at", "words"),
    [
        (builders.instance(state=InstanceState.RUNNING), Bills.NOTHING, builders.NOW, "it bills $0.2240/h"),
        (builders.instance(state=InstanceState.PAUSED), Bills.NOTHING, builders.NOW, "it bills $0.0040/h"),
        (builders.instance(state=InstanceState.OFFLINE), Bills.NOTHING, builders.NOW, ""),
        (builders.instance(state=InstanceState.RUNNING), Bills.NOTHING, builders.ago(minutes=10), ""),
        (None, Bills.NOTHING, builders.NOW, ""),
        (None, Bills.DISK, builders.NOW, "it bills $0.0040/h"),
    ],
    ids=["runs", "stopped", "its host is silent", "listed before", "not listed", "not confirmed"],
)
def test_a_release_that_the_listing_contradicts_for_long_is_told(
    row: Instance | None, bills: Bills, listed_at: datetime, words: str
) -> None:
    """After a confirmed release the ledger counts nothing; an instance that is still listed bills all the same."""
    held = builders.lease(state=LeaseState.RELEASING, bills=bills, state_since=builders.ago(minutes=15))
    view = builders.view(instances=() if row is None else (row,), listed_at=listed_at)
    told = [each.sentence for each in market_alerts.refused(builders.fleet(markets={"vast": view}, leases=(held,)))]
    assert [words in each for each in told] == ([True] if words else [])


@pytest.mark.parametrize(
    ("state", "minutes", "lease", "is_told"),
    [
        (InstanceState.UNKNOWN, 16, {}, True),
        (InstanceState.UNKNOWN, 14, {}, False),
        (InstanceState.RUNNING, 16, {}, False),
        (InstanceState.UNKNOWN, 16, {"bills": Bills.DISK, "state": LeaseState.PAUSED}, False),
    ],
)
def test_a_state_that_stays_unknown_is_left_to_a_person(
    state: InstanceState, minutes: float, lease: dict[str, Any], *, is_told: bool
) -> None:
    """It counts as billing, and its slot waits."""
    held = builders.lease(accrued_until=builders.ago(minutes=minutes), **lease)
    view = builders.view(instances=(builders.instance(state=state),))
    fleet = builders.fleet(workloads=(builders.workload(),), markets={"vast": view}, leases=(held,))
    told = list(market_alerts.of_unknown_state(fleet))
    assert [alert.key for alert in told] == [held.lease_id] * is_told
    assert all("`gpubid release vast-1` gives it up" in alert.sentence for alert in told)
    stale = builders.fleet(markets={"vast": builders.view(instances=view.instances, is_fresh=False)}, leases=(held,))
    assert list(market_alerts.of_unknown_state(stale)) == []


@pytest.mark.parametrize(
    ("unread", "minutes", "bills", "is_told"),
    [
        ({"gpu_rate"}, 16, Bills.GPU_AND_DISK, True),
        ({"gpu_rate"}, 14, Bills.GPU_AND_DISK, False),
        (set(), 16, Bills.GPU_AND_DISK, False),
        ({"gpu_rate"}, 16, Bills.DISK, False),
    ],
)
def test_a_price_that_stays_unread_is_told(unread: set[str], minutes: float, bills: Bills, *, is_told: bool) -> None:
    held = builders.lease(agreed_until=builders.ago(minutes=minutes), bills=bills)
    view = builders.view(instances=(builders.instance(unread=frozenset(unread)),))
    told = list(market_alerts.of_unread_price(builders.fleet(markets={"vast": view}, leases=(held,))))
    assert [alert.key for alert in told] == [f"{held.lease_id}@unread"] * is_told


@pytest.mark.parametrize("message", ["the machine of run g1 is called terminated: look at the console", ""])
def test_an_end_without_a_proof_is_told_with_the_command_that_ends_it(message: str) -> None:
    """The market did carry out the release, so no other alert says that it did not."""
    held = builders.lease(
        state=LeaseState.RELEASING,
        bills=Bills.GPU_AND_DISK,
        state_since=builders.ago(hours=2),
        host_id="pool/aws/east/l4",
    )
    row = builders.instance(state=InstanceState.OFFLINE, is_called_over=True, may_bill_gpu=True, message=message)
    fleet = builders.fleet(markets={"vast": builders.view(instances=(row,))}, leases=(held,))
    (alert,) = alerts(fleet)
    assert (alert.kind, alert.key) == ("alert.state_unknown", "vast-1@unproven")
    assert (message or "vast lists instance 1 as over, without a proof") in alert.sentence
    assert "(pool/aws/east/l4). train/0 counts on at $0.2240/h" in alert.sentence
    assert "`gpubid release vast-1 --gone`" in alert.sentence
