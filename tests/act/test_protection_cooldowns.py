"""Repeated failures are counted from the ledger's own events, and start cooldowns."""

from datetime import timedelta

from agent.act import protection_cooldowns
from agent.decide.facts import Alert, IntentSettled, LeaseChanged
from agent.domain.fleet import Fleet
from agent.domain.market.interruption import Cause
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.domain.record.intent import IntentState
from agent.domain.record.lease import LeaseState
from tests.act.conftest import Desk
from tests.support import builders

RUNS = builders.lease()


def test_only_trouble_is_a_reason_to_count() -> None:
    lost = LeaseChanged(RUNS, RUNS, EventKind.LEASE_INTERRUPTED)
    assert protection_cooldowns.is_due([lost], [])
    assert protection_cooldowns.is_due([], [builders.intent(state=IntentState.REJECTED)])
    assert not protection_cooldowns.is_due(
        [LeaseChanged(RUNS, RUNS, EventKind.LEASE_RUNNING), Alert(EventKind("alert.a"), "a", "a")], [builders.intent()]
    )


async def test_wrong_rents_in_a_row_rest_the_market_longer_until_a_rent_runs(desk: Desk) -> None:
    lasts = list[float]()
    for kind in [EventKind.LEASE_MISMATCHED, EventKind.LEASE_MISMATCHED, EventKind.LEASE_RUNNING] * 2:
        async with desk.ledger.transaction() as tx:
            tx.append_event(Event(at=desk.clock.now(), kind=kind, market="vast", host_id="h1"))
        known = desk.ledger.recollection(desk.clock.now())
        fleet = builders.fleet(now=desk.clock.now(), cooldowns=known.cooldowns)
        for trip in await protection_cooldowns.review(desk.ledger, fleet):
            assert trip.cooldown.place == ("market", "vast")
            lasts.append((trip.cooldown.until - desk.clock.now()).total_seconds() / 60)
        desk.clock.advance(3600)
    assert lasts == [2, 4, 2, 4]


def test_a_rent_that_is_found_by_its_label_and_not_as_ordered_is_a_reason_to_count() -> None:
    found = builders.lease(has_failed=True, end_reason="mismatch: it has 4 GPUs instead of 1")
    settled = IntentSettled(builders.intent(), IntentState.CONFIRMED, "the listing shows its label", found)
    assert protection_cooldowns.is_due([settled], [])
    as_ordered = IntentSettled(builders.intent(), IntentState.CONFIRMED, "the listing shows its label", RUNS)
    assert not protection_cooldowns.is_due([as_ordered], [])


async def storm(desk: Desk, losses: int) -> Fleet:
    """Record that a lease was lost to the market again and again, a minute apart; return the ledger's memory after."""
    ended = builders.lease(state=LeaseState.PAUSED)
    async with desk.ledger.transaction() as tx:
        tx.open_lease(ended)
        for number in range(losses):
            tx.append_event(
                Event(
                    at=desk.clock.now() - timedelta(minutes=1 + number),
                    kind=EventKind.LEASE_INTERRUPTED,
                    market="vast",
                    lease_id=ended.lease_id,
                    host_id="h1",
                    cause=Cause.OUTBID,
                )
            )
    known = desk.ledger.recollection(desk.clock.now())
    return builders.fleet(now=desk.clock.now(), leases=known.leases, cooldowns=known.cooldowns)


async def test_a_storm_lets_the_model_rest_once_and_says_so(desk: Desk) -> None:
    fleet = await storm(desk, 12)
    (trip,) = await protection_cooldowns.review(desk.ledger, fleet)
    assert trip.cooldown.place == ("storm", "vast/RTX 4090")
    assert desk.expiring() == {"storm:vast/RTX 4090": trip.sentence}
    assert (await desk.kinds()).count(protection_cooldowns.TRIPPED) == 1
    assert await protection_cooldowns.review(desk.ledger, fleet) == ()


async def test_a_few_losses_are_no_storm(desk: Desk) -> None:
    assert await protection_cooldowns.review(desk.ledger, await storm(desk, 2)) == ()
    assert desk.expiring() == {}
