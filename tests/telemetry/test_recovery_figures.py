"""Recovery phase by phase: each counted from the loss, each once, naming the intent that brought the slot back."""

import dataclasses
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.openmetrics import exposition

from agent.decide.pricing import offer_refusal
from agent.domain import money
from agent.domain.market.interruption import Cause, Loss
from agent.domain.record.intent import Intent, IntentKind, IntentState
from agent.domain.record.lease import Bills, LeaseState
from agent.domain.work.decision import Hold, Reason, Rebid
from agent.pass_metrics import Figures
from agent.telemetry import metric_updates, recovery_metrics
from agent.telemetry.recovery_metrics import ReachedPhase
from tests.support import builders
from tests.support.world import rehearsed
from tests.telemetry.test_metric_updates import LEASE, NOW, SLOT, WORK, fleet

SOON = timedelta(seconds=10)
LOST = msgspec.structs.replace(LEASE, state=LeaseState.PAUSED, bills=Bills.DISK, run_since=None, state_since=NOW)
RAISED = Rebid(LOST, money.per_hour("0.40"), Reason("raise_bid", "why"))
SENT = Intent("i9", IntentKind.REBID, IntentState.CONFIRMED, "vast", SLOT, NOW + 2 * SOON, "raise_bid")
SENT = dataclasses.replace(SENT, sent_at=NOW + 2 * SOON, lease_id="l1")
BACK = msgspec.structs.replace(LEASE, state=LeaseState.RUNNING, run_since=NOW + 5 * SOON)


def test_a_loss_is_followed_until_its_slot_is_useful_again() -> None:
    seen = recovery_metrics.Recoveries()
    at_first = seen.see(fleet(now=NOW + SOON, leases=(LOST,)), [LOST], [Hold(SLOT, Reason("wait", "why"))], [])
    acting = seen.see(fleet(now=NOW + 2 * SOON, leases=(LOST,)), [], [RAISED], [SENT])
    again = seen.see(fleet(now=NOW + 3 * SOON, leases=(LOST,)), [], [RAISED], [])
    back = seen.see(fleet(now=NOW + 6 * SOON, leases=(BACK,)), [], [], [])
    after = seen.see(fleet(now=NOW + 7 * SOON, leases=(BACK,)), [], [], [])
    assert at_first == [ReachedPhase("detected", 10.0)]
    assert acting == [
        ReachedPhase("decided", 20.0, "i9"),
        ReachedPhase("sent", 20.0, "i9"),
    ]
    assert again == []
    assert back == [
        ReachedPhase("running", 50.0, "i9"),
        ReachedPhase("useful", 50.0, "i9"),
    ]
    assert after == []


def test_a_slot_the_market_gives_back_was_neither_decided_nor_sent() -> None:
    seen = recovery_metrics.Recoveries()
    seen.see(fleet(now=NOW + SOON, leases=(LOST,)), [LOST], [], [])
    back = seen.see(fleet(now=NOW + 6 * SOON, leases=(BACK,)), [], [], [])
    assert [each.phase for each in back] == ["running", "useful"]
    assert {each.intent_id for each in back} == {""}


def test_a_lease_that_still_shows_its_old_run_is_not_back() -> None:
    stale = msgspec.structs.replace(LEASE, run_since=NOW - SOON)
    seen = recovery_metrics.Recoveries()
    assert [each.phase for each in seen.see(fleet(leases=(stale,)), [LOST], [], [])] == ["detected"]


def test_a_workload_that_left_is_forgotten() -> None:
    seen = recovery_metrics.Recoveries()
    seen.see(fleet(leases=(LOST,)), [LOST], [], [])
    seen.see(fleet(leases=(LOST,), workloads=()), [], [], [])
    assert seen.see(fleet(now=NOW + 6 * SOON, leases=(BACK,)), [], [], []) == []


def test_the_exemplar_names_the_intent() -> None:
    registry = CollectorRegistry()
    figures = metric_updates.Metrics(registry, ["vast"], ["train"])
    figures.see_recovery([ReachedPhase("running", 42.0, "i9"), ReachedPhase("useful", 43.0)])
    page = exposition.generate_latest(registry).decode()  # type: ignore[no-untyped-call]
    assert '# {intent_id="i9"} 42.0' in page
    assert registry.get_sample_value("gpubid_recovery_seconds_count", {"phase": "useful"}) == 1
    assert registry.get_sample_value("gpubid_recovery_seconds_count", {"phase": "sent"}) == 0


@pytest.mark.parametrize(("losses", "flapping"), [(2, 0), (3, 1)])
def test_a_host_flaps_that_interrupts_three_times_within_a_day(losses: int, flapping: int) -> None:
    registry = CollectorRegistry()
    figures = metric_updates.Metrics(registry, ["vast"], ["train"])
    seen = [Loss(NOW, SLOT, "vast", "h1", Cause.OUTBID)] * losses + [Loss(NOW, SLOT, "vast", "h2", None)]
    figures.see_flapping(seen, NOW + timedelta(hours=23))
    assert registry.get_sample_value("gpubid_hosts_flapping", {"market": "vast"}) == flapping
    figures.see_flapping(seen, NOW + timedelta(hours=24))
    assert registry.get_sample_value("gpubid_hosts_flapping", {"market": "vast"}) == 0


def test_the_cheapest_fitting_offers_are_shown_and_kept() -> None:
    registry = CollectorRegistry()
    figures = metric_updates.Metrics(registry, ["vast"], ["train"])
    fits = builders.offer(ask=builders.per_hour("0.50"), floor=builders.per_hour("0.20"))
    rows = [fits, builders.offer(2, ask=builders.per_hour("0.40"), floor=builders.per_hour("0.10"), gpus=8)]
    figures.see_prices("vast", "train", *offer_refusal.cheapest(rows, WORK, NOW), is_answered=True)
    figures.see_prices("vast", "train", None, None, is_answered=False)
    at = {"market": "vast", "workload": "train"}
    assert registry.get_sample_value("gpubid_market_floor_dollars_per_hour", at) == pytest.approx(0.2)
    assert registry.get_sample_value("gpubid_market_ask_dollars_per_hour", at) == pytest.approx(0.5)


def test_a_price_is_removed_once_a_search_shows_no_offer_that_fits() -> None:
    registry = CollectorRegistry()
    figures = metric_updates.Metrics(registry, ["vast"], ["train"])
    figures.see_prices("vast", "train", builders.per_hour("0.20"), builders.per_hour("0.50"), is_answered=True)
    figures.see_prices("vast", "train", None, builders.per_hour("0.60"), is_answered=True)
    at = {"market": "vast", "workload": "train"}
    assert registry.get_sample_value("gpubid_market_floor_dollars_per_hour", at) is None
    assert registry.get_sample_value("gpubid_market_ask_dollars_per_hour", at) == pytest.approx(0.6)
    figures.see_prices("vast", "train", None, None, is_answered=True)
    assert registry.get_sample_value("gpubid_market_ask_dollars_per_hour", at) is None
    figures.see_useful("train", 3600)
    worth = registry.get_sample_value("gpubid_on_demand_worth_dollars_total", {"workload": "train"})
    assert worth == pytest.approx(0.6), "the price seen last"


async def test_a_pass_removes_a_price_only_where_a_search_was_answered(tmp_path: Path) -> None:
    async with rehearsed(tmp_path) as world:
        registry = CollectorRegistry()
        figures = Figures(metric_updates.Metrics(registry, ["vast"], ["train"]))
        done = await world.cycle()
        at = {"market": "vast", "workload": "train"}
        for answered, is_shown in (((), True), (("train",), False)):
            figures.see(world.app, done)
            assert registry.get_sample_value("gpubid_market_floor_dollars_per_hour", at)
            view = msgspec.structs.replace(done.fleet.markets["vast"], offers=(), answered=answered)
            fleet = msgspec.structs.replace(done.fleet, markets={"vast": view})
            figures.see(world.app, dataclasses.replace(done, fleet=fleet))
            assert (registry.get_sample_value("gpubid_market_floor_dollars_per_hour", at) is not None) is is_shown
