"""The endings of a hard cap: as few as bring it back under, the least important first, each with its reason."""

from typing import Any

import pytest
from msgspec.structs import replace

from agent.decide.limits import cap_endings, limits
from agent.decide.limits.limits import Limits
from agent.domain.fleet import Fleet, Spend
from agent.domain.market.tenure import Tenure
from agent.domain.record import budget, hold
from agent.domain.record.budget import Budget, Thresholds
from agent.domain.record.hold import OperatorHold, Target, Word
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import Bills, Lease, LeaseState
from agent.domain.slot import Slot
from agent.domain.work.decision import Pause, Release
from tests.support import builders

TRAIN = budget.of_workload("train")
NO_DISK = builders.per_hour(0)
PAUSED: dict[str, Any] = {"state": LeaseState.PAUSED, "paused_by_us": True}


def held(number: int, rate: str, workload: str = "train", **changes: Any) -> Lease:
    return builders.lease(
        number, slot=Slot(workload, number), gpu_rate=builders.per_hour(rate), disk_rate=NO_DISK, **changes
    )


def fleet(*leases: Lease, **changes: Any) -> Fleet:
    works = (builders.workload("train", priority=1, slots=9), builders.workload("serve", priority=5, slots=9))
    return builders.fleet(leases=leases, workloads=works, **changes)


def ended(seen: Fleet, caps: Limits) -> list[Pause | Release]:
    return list(cap_endings.endings(seen, limits.committed_by_fleet(seen), caps))


def names(seen: Fleet, caps: Limits) -> list[str]:
    return [f"{type(order).__name__} {order.lease.instance_id}" for order in ended(seen, caps)]


def per_hour(rate: str) -> Limits:
    return Limits(per_hour=builders.per_hour(rate))


THREE = (held(1, "0.50", "serve"), held(2, "0.20"), held(3, "0.30"))


@pytest.mark.parametrize(
    ("word", "target", "kept"),
    [
        (Word.PAUSE, hold.of_workload("train"), True),
        (Word.KILL, hold.DISKS, True),
        (Word.HELD, hold.of_slot(Slot("train", 1)), True),
        (Word.KILL, hold.EVERYTHING, False),
        (Word.PAUSE, hold.of_workload("serve"), False),
    ],
    ids=str,
)
def test_a_spent_budget_leaves_the_disk_that_a_person_keeps(word: Word, target: Target, kept: bool) -> None:
    paused = held(1, "0.20", bills=Bills.DISK, **PAUSED)
    over = fleet(
        paused,
        spend=Spend(builders.usd(6), builders.usd(6)),
        holds=(OperatorHold(word, target, builders.NOW, "a person"),),
    )
    assert names(over, Limits(per_day=builders.usd(5))) == ([] if kept else ["Release 1"])


def test_a_lease_that_is_being_released_ends_no_other_for_the_rate() -> None:
    leaving = held(1, "0.50", "serve", state=LeaseState.RELEASING, bills=Bills.GPU_AND_DISK)
    assert names(fleet(leaving, held(2, "0.20"), held(3, "0.30")), per_hour("0.50")) == []
    assert names(fleet(leaving, held(2, "0.20"), held(3, "0.30")), per_hour("0.49")) == ["Pause 3"]


@pytest.mark.parametrize(
    ("cap", "paused"),
    [
        ("1.00", []),
        ("0.99", ["Pause 3"]),
        ("0.70", ["Pause 3"]),
        ("0.69", ["Pause 3", "Pause 2"]),
        ("0.50", ["Pause 3", "Pause 2"]),
        ("0.49", ["Pause 3", "Pause 2", "Pause 1"]),
    ],
)
def test_a_rate_pauses_as_few_as_needed_least_important_and_dearest_first(cap: str, paused: list[str]) -> None:
    assert names(fleet(*THREE), per_hour(cap)) == paused


def test_what_no_workload_asks_for_or_waits_for_a_person_goes_before_all_others() -> None:
    stranger, waits = held(4, "0.05", "unknown"), held(5, "0.06", "serve", is_held=True)
    seen = fleet(*THREE, stranger, waits)
    assert names(seen, per_hour("1.10")) == ["Pause 5"]
    assert names(seen, per_hour("1.00")) == ["Pause 5", "Pause 4"]


@pytest.mark.parametrize("tenure", list(Tenure))
def test_a_spent_budget_takes_back_starts_that_are_queued_or_in_doubt(tenure: Tenure) -> None:
    queued = held(4, "0.40", tenure=tenure, state=LeaseState.PAUSED)
    doubted = held(5, "0.40", tenure=tenure, **PAUSED)
    start = builders.intent(kind=IntentKind.RESUME, lease_id=doubted.lease_id)
    caps = Limits(total=builders.usd("1"))
    seen = fleet(queued, doubted, spend=Spend(total=builders.usd("1")), intents=(start,))
    assert names(seen, caps) == ["Pause 4", "Pause 5"]


def test_what_is_down_already_is_no_saving_and_what_may_start_counts() -> None:
    down, queued = held(4, "0.90", **PAUSED), held(5, "0.40", state=LeaseState.PAUSED)
    seen = fleet(held(1, "0.50", "serve"), down, queued)
    assert names(seen, per_hour("0.90")) == []
    assert names(seen, per_hour("0.89")) == ["Pause 5"]


def test_what_has_ended_or_is_being_released_is_not_paused_and_what_is_missing_is_not_either() -> None:
    """A pause of an instance that is not listed would be refused for ever; it goes on counting all the same."""
    leaving = held(4, "0.90", state=LeaseState.RELEASING, bills=Bills.NOTHING)
    gone, missing = held(5, "0.90", state=LeaseState.ENDED), held(6, "0.90", state=LeaseState.MISSING)
    missing = replace(missing, bills=Bills.GPU_AND_DISK)
    assert names(fleet(leaving, gone, missing, held(1, "0.10")), per_hour("0.05")) == ["Pause 1"]
    assert [order.lease.instance_id for order in spent(leaving, gone, missing, held(1, "0.10"))] == ["1"]


def test_a_container_that_ended_and_what_bills_its_gpu_while_paused_are_paused() -> None:
    ended_, billing = held(4, "0.20", state=LeaseState.EXITED), held(5, "0.30", tenure=Tenure.ON_DEMAND, **PAUSED)
    billing = replace(billing, bills=Bills.GPU_AND_DISK)
    assert names(fleet(ended_, billing), per_hour("0.00")) == ["Pause 5", "Pause 4"]


def test_a_pause_by_rate_says_whose_rate_and_which_limit() -> None:
    [of_all] = ended(fleet(*THREE), per_hour("0.99"))
    assert (of_all.reason.code, of_all.reason.limit) == ("over_rate", "per_hour")
    assert of_all.reason.sentence == (
        "the fleet may cost $1.0000/h, above the cap of $0.9900/h; the lowest priority is paused first"
    )
    own = Limits(budgets={TRAIN: Budget(Thresholds(per_hour=builders.per_hour("0.20")))})
    [of_train] = ended(fleet(*THREE), own)
    assert (of_train.lease.instance_id, of_train.reason.limit) == ("3", "workload_per_hour")
    assert of_train.reason.sentence.startswith("the workload train may cost $0.5000/h, above the cap of $0.2000/h")


def spent(*leases: Lease) -> list[Pause | Release]:
    day = builders.usd(1)
    return ended(fleet(*leases, spend=Spend(day)), Limits(per_day=day))


def test_a_spent_budget_pauses_all_and_releases_only_disks_that_hold_nothing() -> None:
    waits = held(5, "0.10", is_held=True, **PAUSED)
    stopped = held(6, "0.10", state=LeaseState.PAUSED, tenure=Tenure.ON_DEMAND)
    unknown = held(7, "0.10", "unknown", **PAUSED)
    found = spent(THREE[0], THREE[1], held(4, "0.10", **PAUSED), waits, stopped, unknown)
    named = [(type(order), order.lease.instance_id) for order in found]
    assert named == [(Pause, "2"), (Pause, "6"), (Pause, "1"), (Release, "4")], "nobody knows that 6 stays stopped"
    assert {(order.reason.code, order.reason.limit) for order in found} == {("over_budget", "per_day")}
    over = "today's committed spend $1.0000 has reached the cap of $1.0000"
    assert found[0].reason.sentence == over
    assert found[-1].reason.sentence == f"{over}; its disk goes on billing and has no only copy"


# --- limits that nobody pays ------------------------------------------------------------------------------------------
def bought(number: int, price: str, limit: str, workload: str = "train") -> Lease:
    """Build a winner of an auction: what it pays, and what it counts at."""
    return held(number, price, workload, bid_limit=builders.per_hour(limit))


def settled(cap: str, *leases: Lease) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the pauses and the lower limits under a cap; each limit may be lowered to a cent over the price."""
    seen, caps = fleet(*leases), per_hour(cap)
    lowest = {each.lease_id: each.gpu_rate + builders.per_hour("0.01") for each in leases if each.bid_limit is not None}
    standing = limits.committed_by_fleet(seen)
    pauses = [order.lease.instance_id for order in cap_endings.endings(seen, standing, caps, lowest)]
    cuts = cap_endings.lowerings(seen, standing, caps, lowest)
    assert all(cut.bid < cut.lease.bid for cut in cuts)
    return pauses, [(cut.lease.instance_id, str(cut.bid)) for cut in cuts]


@pytest.mark.parametrize(
    ("cap", "pauses", "cuts"),
    [
        ("1.50", [], []),
        ("1.20", [], [("2", "$0.5000/h")]),
        ("0.91", [], [("2", "$0.2100/h")]),
        ("0.60", [], [("2", "$0.2100/h"), ("1", "$0.3900/h")]),
        ("0.52", [], [("2", "$0.2100/h"), ("1", "$0.3100/h")]),
        ("0.51", ["2"], [("1", "$0.5100/h")]),
        ("0.31", ["2"], [("1", "$0.3100/h")]),
        ("0.30", ["2", "1"], []),
    ],
)
def test_limits_are_lowered_first_and_as_few_leases_as_needed_are_paused(
    cap: str, pauses: list[str], cuts: list[tuple[str, str]]
) -> None:
    """The least important gives first: down to a cent over its price, before the limit of another is touched."""
    assert settled(cap, bought(1, "0.30", "0.70", "serve"), bought(2, "0.20", "0.80")) == (pauses, cuts)


def test_a_lower_limit_beside_a_lease_whose_price_is_its_bid_spares_that_too() -> None:
    assert settled("0.80", held(1, "0.50"), bought(2, "0.20", "0.60", "serve")) == ([], [("2", "$0.3000/h")])
    assert settled("0.70", held(1, "0.50"), bought(2, "0.20", "0.60", "serve")) == (["1"], [])


def test_a_limit_is_lowered_once_for_the_caps_of_all_scopes_and_never_beside_a_pause() -> None:
    lease = bought(1, "0.20", "0.80")
    own = Limits(per_hour=builders.per_hour("0.40"), budgets={TRAIN: Budget(Thresholds(builders.per_hour("0.60")))})
    seen, lowest = fleet(lease), {lease.lease_id: builders.per_hour("0.21")}
    standing = limits.committed_by_fleet(seen)
    [cut] = cap_endings.lowerings(seen, standing, own, lowest)
    assert (cut.bid, cut.reason.code, cut.reason.limit) == (builders.per_hour("0.40"), "cap_limit", "per_hour")
    under = Limits(per_hour=builders.per_hour("0.10"), budgets=own.budgets)
    assert cap_endings.lowerings(seen, standing, under, lowest) == ()
    [pause] = cap_endings.endings(seen, standing, under, lowest)
    assert pause.lease == lease
