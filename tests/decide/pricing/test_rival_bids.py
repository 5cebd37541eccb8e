"""The law of rivals' bids: what was assumed until outbids are seen, and by what was seen, whatever we bid ourselves."""

import random
from dataclasses import replace
from itertools import accumulate

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide import plan
from agent.decide.facts import LeaseChanged
from agent.decide.limits.limits import Limits
from agent.decide.moves import recovery
from agent.decide.pricing import rival_bids
from agent.decide.reconcile.losses import outbid_evidence
from agent.decide.strategy import Down, SlotView
from agent.domain.market.host import HALF_LIFE, HostRecord, decayed
from agent.domain.market.interruption import Cause, Evidence
from agent.domain.market.outbids import STEPS, Outbids
from agent.domain.market.tenure import Tenure
from agent.domain.record.event_kind import EventKind
from agent.domain.record.lease import LeaseState
from agent.domain.work.decision import Rent
from strategies.patient import Patient, PatientParams
from tests.support import builders

LOSS = LeaseChanged(
    builders.lease(),
    builders.lease(),
    EventKind.LEASE_INTERRUPTED,
    cause=Cause.OUTBID,
    evidence=Evidence("floor", "", builders.per_hour("0.36")),
)
"""Of a lease that bids $0.22 over a floor of $0.20, to a rival at 0.8 over it."""

places = st.integers(0, len(STEPS) - 1)
outbids = st.tuples(places, places).map(lambda pair: (min(pair), max(pair)))
headrooms = st.floats(0, 5)


def seen(*pairs: tuple[int, int], displaced: float = 0.0) -> HostRecord:
    """Build the record of outbids, each by the step of our bid and the step that the winner's was above."""
    told = [Outbids.one(STEPS[ours], STEPS[rival] + 0.01) for ours, rival in pairs]
    return HostRecord(
        "vast", "h1", outbids=list(accumulate(told, Outbids.plus, initial=Outbids()))[-1], displaced=displaced
    )


@given(headrooms)
def test_nothing_seen_is_the_law_assumed(headroom: float) -> None:
    above = rival_bids.ASSUMED.outbidding(headroom)
    assert rival_bids.learned(HostRecord("vast", "h1")) == rival_bids.ASSUMED
    assert rival_bids.ASSUMED.displaced == rival_bids.DISPLACED_SHARE
    assert rival_bids.ASSUMED.losing_share(headroom) == pytest.approx(0.25 + 0.75 * above)


def test_the_law_assumed_is_that_of_the_recorded_jumps() -> None:
    """Log-normal about 2.76 times the floor: half of all rivals are above that, of those above the floor a bit more."""
    assert rival_bids.ASSUMED.outbidding(1.76) == pytest.approx(0.5 / 0.98631, rel=1e-4)
    assert rival_bids.ASSUMED.losing_share(0.0) == 1.0


@given(st.lists(outbids, max_size=12), st.floats(0, 20), headrooms, headrooms)
def test_more_headroom_is_lost_no_more_often(
    pairs: list[tuple[int, int]], displaced: float, one: float, other: float
) -> None:
    law = rival_bids.learned(seen(*pairs, displaced=displaced))
    low, high = sorted((one, other))
    assert 0.0 < law.displaced < 1.0
    assert law.displaced < law.losing_share(high) <= law.losing_share(low) + 1e-12
    assert law.losing_share(0.0) == pytest.approx(1.0)


@given(st.lists(outbids, max_size=12), outbids, st.integers(1, 6), st.floats(0, 20), headrooms)
def test_the_dearer_the_rivals_seen_the_less_a_headroom_saves(
    pairs: list[tuple[int, int]], one: tuple[int, int], more: int, displaced: float, headroom: float
) -> None:
    dearer = (one[0], min(one[1] + more, len(STEPS) - 1))
    cheap = rival_bids.learned(seen(*pairs, one, displaced=displaced))
    dear = rival_bids.learned(seen(*pairs, dearer, displaced=displaced))
    assert dear.losing_share(headroom) >= cheap.losing_share(headroom) - 1e-12


def test_cheap_rivals_make_headroom_worth_more_and_dear_ones_less() -> None:
    timid, bold = rival_bids.learned(seen(*[(0, 0)] * 16)), rival_bids.learned(seen(*[(0, 6)] * 16))
    assert timid.outbidding(0.05) == pytest.approx(rival_bids.ASSUMED.outbidding(0.05) / 2)
    assert bold.outbidding(2.0) == pytest.approx((rival_bids.ASSUMED.outbidding(2.0) + 1) / 2)


def test_what_our_own_bid_hid_is_not_taken_for_dearness() -> None:
    """Rivals below our bids never took anything: counted plainly, those who did would make all rivals look dear."""
    drawn, found = random.Random(5), Outbids()
    plain, displaced = Outbids(), 0.0
    for ours in [0.0] * 2000 + [0.5] * 4000:
        if drawn.random() < 0.4:
            displaced += 1
            continue
        bid = 1.4 * drawn.lognormvariate(0.0, 0.4) - 1
        if bid > ours:
            found, plain = found.plus(Outbids.one(ours, bid)), plain.plus(Outbids.one(0.0, bid))
    law = rival_bids.learned(HostRecord("vast", "h1", outbids=found, displaced=displaced))
    drawn_bids = [1.4 * drawn.lognormvariate(0.0, 0.4) - 1 for _ in range(40_000)]
    above = [sum(bid > step for bid in drawn_bids) for step in STEPS]
    true = [count / above[0] for count in above]
    assert law.above == pytest.approx(true, abs=0.03)
    # Those below the floor take nothing: of the losses there .4 are to on demand, .6 x P(above the floor) to rivals.
    assert law.displaced == pytest.approx(0.4 / (0.4 + 0.6 * above[0] / len(drawn_bids)), abs=0.03)
    naive = rival_bids.learned(HostRecord("vast", "h1", outbids=plain, displaced=displaced))
    assert naive.above[4] > true[4] + 0.15


def test_outbids_of_bids_far_over_the_floor_say_nothing_of_bids_near_it() -> None:
    law = rival_bids.learned(seen(*[(4, 5)] * 50))
    assert law.above[:5] == pytest.approx(rival_bids.ASSUMED.above[:5])
    assert law.above[6] < rival_bids.ASSUMED.above[6] / 2


def test_losses_to_on_demand_are_what_no_bid_saves() -> None:
    law = rival_bids.learned(seen((0, 3), displaced=15.0))
    assert law.displaced == pytest.approx((16 * 0.25 + 15) / (16 + 15 + 1))
    assert law.losing_share(100.0) > law.displaced
    often = rival_bids.learned(seen((4, 5), displaced=15.0))
    # An outbid half above the floor weighs more than one at the floor.
    assert often.displaced < law.displaced


def test_what_was_seen_fades_as_every_count_does() -> None:
    record = msgspec.structs.replace(seen(*[(0, 0)] * 8, displaced=4.0), updated_at=builders.NOW)
    later = decayed(record, builders.NOW + HALF_LIFE)
    assert sum(later.outbids.ours) == sum(later.outbids.rivals) == pytest.approx(4)
    assert rival_bids.learned(record).above[1] < rival_bids.learned(later).above[1] < rival_bids.ASSUMED.above[1]


@pytest.mark.parametrize(
    ("ours", "rival", "counted"),
    [(0.0, 0.8, (0, 4)), (0.1001, 0.2, (2, 2)), (0.08, 0.081, (2, 2)), (0.0, 0.05, (0, 0)), (7.0, 9.0, (6, 6))],
)
def test_an_outbid_counts_at_the_step_nearest_to_our_bid_and_below_the_rivals(
    ours: float, rival: float, counted: tuple[int, int]
) -> None:
    one = Outbids.one(ours, rival)
    assert (one.ours.index(1.0), one.rivals.index(1.0)) == counted
    assert sum(one.ours) == sum(one.rivals) == 1.0


def test_a_told_price_is_counted_over_the_hosts_floor() -> None:
    assert outbid_evidence.winning_bid(LOSS) == Outbids.one(0.1, 0.8)
    inbox = replace(LOSS, evidence=Evidence("inbox", "", builders.per_hour("0.205")))
    assert outbid_evidence.winning_bid(inbox) == Outbids.one(0.1, 0.1)


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "lease.start_lost"},
        {"cause": Cause.UNKNOWN},
        {"evidence": Evidence("market_record", "")},
        {"evidence": None},
        {"before": builders.lease(host_floor=None)},
        {"before": builders.lease(host_floor=builders.per_hour("0"))},
        {"before": builders.lease(tenure=Tenure.ON_DEMAND)},
    ],
    ids=["no loss", "unknown", "no price", "no evidence", "no floor", "floor of nothing", "on demand"],
)
def test_what_tells_no_bid_over_a_floor_is_not_counted(changes: dict[str, object]) -> None:
    assert outbid_evidence.winning_bid(replace(LOSS, **changes)) == Outbids()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("cause", "tenure", "is_displaced"),
    [
        (Cause.DISPLACED, Tenure.INTERRUPTIBLE, True),
        (Cause.DISPLACED, Tenure.ON_DEMAND, False),
        (Cause.OUTBID, Tenure.INTERRUPTIBLE, False),
    ],
)
def test_only_a_bid_is_displaced(cause: Cause, tenure: Tenure, is_displaced: bool) -> None:
    assert (
        outbid_evidence.is_displaced(replace(LOSS, cause=cause, before=builders.lease(tenure=tenure))) is is_displaced
    )


@pytest.mark.parametrize(("rival", "headroom"), [(0, 0.05), (6, 0.0)])
def test_a_bid_goes_by_the_rivals_seen_anywhere(rival: int, headroom: float) -> None:
    """Seen on another host: those who bid a hair over the floor are worth outbidding, the bold are not."""
    lost = msgspec.structs.replace(
        seen(*[(0, rival)] * 60), host_id="h9", market_losses=60.0, bid_seconds=100 * 3600.0, updated_at=builders.NOW
    )
    tuned = {"patient": builders.tuned(Patient(), PatientParams(headroom=0.5, on_demand_if_cheaper=False))}
    offer = builders.offer()
    fleet = builders.fleet(markets={"vast": builders.view(offers=(offer,))}, hosts={"h9": lost})
    (made,) = plan.plan(fleet, tuned, Limits()).decisions
    assert isinstance(made, Rent)
    assert made.bid == offer.floor.scaled(1 + headroom) if offer.floor else None


@pytest.mark.parametrize(("rival", "is_dearer"), [(0, False), (6, True)])
def test_a_raise_is_worth_less_where_rivals_are_dear(rival: int, is_dearer: bool) -> None:
    held = builders.lease(
        state=LeaseState.PAUSED,
        interrupted_by=Cause.OUTBID,
        state_since=builders.ago(minutes=5),
        rival_floor=builders.per_hour("0.24"),
    )
    slot = SlotView(held.slot, held, None, Down(held.state_since))

    def raised(law: rival_bids.Rivals) -> float:
        most, worth = builders.per_hour("0.36"), builders.per_hour("1.00")
        numbers = recovery.RecoveryParams(most, 0.05, 0.05, may_move=True, may_raise=True, worth=worth, rivals=law)
        made = recovery.recover(slot, builders.workload(), [], 0.3, numbers, builders.NOW)
        return min(option.dollars for option in made.reason.options if option.name == "raise")

    assert (raised(rival_bids.learned(seen(*[(0, rival)] * 16))) > raised(rival_bids.ASSUMED)) is is_dearer
