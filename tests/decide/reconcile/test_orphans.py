"""Instances of ours without a lease: adopted, held or released; foreign ones are never named."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agent.decide.facts import Fact, InstanceFound, IntentSettled
from agent.decide.reconcile import orphans
from agent.decide.reconcile.pass_memory import Memory
from agent.domain.fleet import Fleet
from agent.domain.market import gpu
from agent.domain.market.instance import InstanceState
from agent.domain.market.tenure import Tenure
from agent.domain.record.intent import IntentState
from agent.domain.record.lease import Bills, Lease, LeaseState
from tests.support import builders
from tests.support.listings import NOW


def created(at: Any, number: int = 7) -> Any:
    return builders.instance(number, label="ours", created_at=at)


ROW = created(builders.ago(hours=3))
LABELS = {"7": builders.label(7)}


def world(labels: Any = None, rows: Any = (ROW,), **changes: Any) -> Fleet:
    shown = LABELS if labels is None else labels
    looks = {row.instance_id: shown.get(row.instance_id) for row in rows}
    view = builders.view(instances=rows, labels=shown, looks=looks)
    return builders.fleet(**{"markets": {"vast": view}, **changes})


def looked(fleet: Fleet, memory: Memory, settled: tuple[Fact, ...] = ()) -> tuple[tuple[Fact, ...], Memory]:
    held = [lease for lease in fleet.leases if lease.is_open]
    found = orphans.find(fleet, fleet.markets["vast"], memory, held, settled)
    return found.facts, Memory(orphan_sightings=found.sightings)


def found(fleet: Fleet) -> InstanceFound:
    """Return the finding of the second look, and of every later one, until the ledger has it."""
    first, memory = looked(fleet, Memory())
    assert first == ()
    (fact,), memory = looked(fleet, memory)
    assert isinstance(fact, InstanceFound)
    assert looked(fleet, memory)[0] == (fact,)
    return fact


def test_an_empty_slot_adopts() -> None:
    fact = found(world())
    assert fact.verdict == "adopt"
    assert fact.lease is not None
    assert (fact.lease.slot, fact.lease.state, fact.lease.is_held) == (builders.slot(), LeaseState.STARTING, False)
    assert fact.lease.accrued_until == ROW.created_at
    assert fact.instance is ROW
    assert fact.sentence == "instance 7 on host h7 carries our label and slot train/0 is empty: adopted"


@pytest.mark.parametrize(
    "changes",
    [
        {"leases": (builders.lease(1),), "rows": (builders.instance(1), ROW)},
        {"leases": (builders.lease(1, state=LeaseState.MISSING),), "rows": (builders.instance(1), ROW)},
        {"leases": (builders.lease(1),), "rows": (builders.instance(1), ROW), "intents": (builders.intent(2),)},
        {"workloads": ()},
        {"workloads": (builders.workload("another"),)},
        {"labels": {"7": builders.label(7, place=builders.slot("train", 5))}},
    ],
    ids=[
        "filled",
        "missing and shown again",
        "filled, in doubt",
        "no workload",
        "unknown workload",
        "no such slot",
    ],
)
def test_a_filled_slot_or_an_unknown_workload_holds(changes: dict[str, Any]) -> None:
    fact = found(world(**changes))
    assert fact.verdict == "hold"
    assert fact.lease is not None
    assert fact.lease.is_held
    assert fact.lease.is_open
    assert fact.instance.instance_id == "7"
    name = fact.lease.lease_id
    ends, keeps = f"`gpubid release {name}` ends it", f"`gpubid adopt {name} --into WORKLOAD/SLOT` keeps it"
    assert fact.sentence.endswith(f"held and counted; {ends}, {keeps}")


def test_what_is_held_says_whether_its_slot_is_filled_or_its_workload_unknown() -> None:
    rows = (builders.instance(1), ROW)
    filled, unknown = found(world(leases=(builders.lease(1),), rows=rows)), found(world(workloads=()))
    parked = found(world(workloads=(builders.workload(slots=0),)))
    nameless = found(world(labels={"7": builders.label(7, place=builders.slot("", 0))}))
    assert "carries our label but train has no slot 0: held" in parked.sentence
    assert "label but its short name has no workload, and the ledger does not know its rent: held" in nameless.sentence
    assert filled.sentence.startswith("instance 7 on host h7 carries our label but slot train/0 is filled: held")
    assert unknown.sentence.startswith("instance 7 on host h7 carries our label but no workload is named train: held")


@pytest.mark.parametrize(
    "changes",
    [
        {"leases": (builders.lease(1, is_held=True),)},
        {"leases": (builders.lease(1, state=LeaseState.ENDED),)},
        {"intents": (builders.intent(1, state=IntentState.VOID),)},
    ],
    ids=["held", "ended", "void"],
)
def test_what_does_not_fill_a_slot_leaves_it_to_be_adopted(changes: dict[str, Any]) -> None:
    assert found(world(**changes)).verdict == "adopt"


def test_what_was_made_today_opens_today_although_our_clock_is_a_day_behind() -> None:
    """It opened after it was metered, and counted for a day once the clock was put right."""
    row = created(NOW + timedelta(days=1, seconds=-30))
    view = replace(world(rows=(row,)).markets["vast"], clock_skew_seconds=86_400.0)
    behind = world(rows=(row,), markets={"vast": view})
    for fleet, at in ((behind, row.created_at), (world(rows=(row,)), NOW)):
        lease = found(fleet).lease
        assert lease is not None
        assert (lease.opened_at, lease.accrued_until) == (at, at), "a time that no clock has reached opens nothing"


def test_of_two_for_one_slot_one_is_adopted_and_one_held() -> None:
    rows = (ROW, created(builders.ago(hours=3), 8))
    fleet = world({"7": builders.label(7), "8": builders.label(8)}, rows)
    _, memory = looked(fleet, Memory())
    facts, _ = looked(fleet, memory)
    assert [fact.verdict for fact in facts if isinstance(fact, InstanceFound)] == ["adopt", "hold"]


def test_what_is_known_hides_no_stranger_listed_after_it() -> None:
    rows = (builders.instance(1), builders.instance(9, label="theirs"), ROW)
    fleet = world(rows=rows, leases=(builders.lease(1, slot=builders.slot("other")),))
    assert found(fleet).instance is ROW


def test_what_we_released_keeps_its_slot_when_somebody_wrote_another_label_on_it() -> None:
    past = builders.lease(7, slot=builders.slot("train", 0), state=LeaseState.ENDED, end_reason="host_gone")
    foreign = {"7": builders.label(7, place=builders.slot("train", 5), fleet_id="0123456789ab")}
    fact = found(world(foreign, past_leases={"7": past}))
    assert fact.lease is not None
    assert (fact.verdict, fact.lease.slot) == ("hold", builders.slot())
    assert (fact.lease.is_held, fact.lease.is_proven, fact.lease.is_estranged) == (True, True, True)


def test_what_a_doubt_just_settled_is_no_stranger() -> None:
    lease = builders.lease(7)
    settled = (IntentSettled(builders.intent(7), IntentState.CONFIRMED, "shown", lease),)
    fleet = world()
    _, memory = looked(fleet, Memory(), settled)
    assert memory.orphan_sightings == {}


@pytest.mark.parametrize("reason", ["moved", "over_budget", ""])
def test_what_we_released_is_released_again(reason: str) -> None:
    past = builders.lease(7, state=LeaseState.ENDED, end_reason=reason)
    fact = found(world(past_leases={"7": past}))
    assert fact.lease is not None
    assert (fact.verdict, fact.instance, fact.lease.state) == ("release", ROW, LeaseState.RELEASING)
    assert (fact.lease.is_proven, fact.lease.end_reason) == (True, reason)
    assert fact.sentence.endswith("is listed again: released again until the market confirms it")
    unlabelled = found(world({}, past_leases={"7": past}))
    assert unlabelled.verdict == "hold"


@pytest.mark.parametrize("reason", sorted(orphans.TAKEN_BACK))
def test_what_was_thought_gone_goes_on_where_its_metering_stopped(reason: str) -> None:
    past = builders.lease(
        7, state=LeaseState.ENDED, end_reason=reason, accrued_until=builders.ago(minutes=20), traffic_down_gb=5.0
    )
    fact = found(world(past_leases={"7": past}))
    assert fact.verdict == "adopt"
    assert fact.lease is not None
    assert fact.lease.lease_id != past.lease_id
    assert (fact.lease.accrued_until, fact.lease.traffic_down_gb) == (builders.ago(minutes=20), 5.0)


def test_a_lease_that_ended_before_an_instance_was_made_says_nothing_of_it() -> None:
    """A reply named an id in vain, and the next rent truly made the instance of that id."""
    past = builders.lease(
        7,
        state=LeaseState.ENDED,
        end_reason="never_ours",
        agreed_rate=builders.per_hour("0.11"),
        accrued_until=builders.ago(minutes=190),
        ended_at=builders.ago(minutes=185),
        traffic_down_gb=5.0,
    )
    intent = builders.intent(7, host_id="h7")
    fact = found(world(past_leases={"7": past}, past_intents={intent.intent_id: intent}))
    assert fact.lease is not None
    assert fact.lease.lease_id != past.lease_id
    assert fact.lease.agreed == intent.price
    assert (fact.lease.accrued_until, fact.lease.traffic_down_gb) == (ROW.created_at, 0.0)


def test_a_label_newer_than_our_start_that_we_did_not_write_is_a_second_daemon() -> None:
    row = created(builders.ago(hours=1))
    other = found(world(rows=(row,)))
    assert (other.verdict, other.instance) == ("second_daemon", row)
    assert other.lease is not None
    assert other.lease.is_held
    assert other.sentence.endswith("an intent that this ledger never wrote: another daemon runs on this fleet")
    at_once = found(world(rows=(created(builders.ago(hours=2)),)))
    assert at_once.verdict == "adopt"
    ours = found(world(rows=(row,), past_intents={"0000000000000007": builders.intent(7)}))
    assert ours.verdict == "adopt"
    assert found(world(rows=(created(builders.ago(hours=3)),))).verdict == "adopt"


@pytest.mark.parametrize("again", ["h7", "h9", None])
def test_a_rent_found_late_is_held_to_what_was_asked_once_two_answers_agree(again: str | None) -> None:
    """`again` is the host that a look by its id shows, None where there was none."""
    intent = builders.intent(7, host_id="h9")
    fleet = world(past_intents={intent.intent_id: intent})
    rows = {} if again is None else {"7": msgspec.structs.replace(ROW, host_id=again)}
    fact = found(
        msgspec.structs.replace(
            fleet, markets={"vast": msgspec.structs.replace(fleet.markets["vast"], looked_rows=rows)}
        )
    )
    assert fact.lease is not None
    if again == "h7":
        assert fact.lease.has_failed
        assert fact.lease.end_reason.startswith("mismatch: it is on host h7")
    else:
        assert (fact.lease.has_failed, fact.lease.end_reason, fact.lease.host_id) == (False, "", "h9")


def test_a_rent_that_one_answer_shows_with_other_gpus_keeps_the_ordered_ones_and_is_read_back_again() -> None:
    """A wrong count that the lease took over would be what every later listing agrees with."""
    intent = builders.intent(7, gpu=builders.RTX_4090, gpus=1)
    row = msgspec.structs.replace(ROW, gpus=4, gpu=gpu.model("A40"))
    made = orphans.lease_of(world(rows=(row,)), row, builders.slot(), intent)
    assert (made.gpu, made.gpus, made.read_back_at, made.has_failed) == (builders.RTX_4090, 1, None, False)


DEAR = msgspec.structs.replace(ROW, gpu_rate=builders.per_hour("500"))


@pytest.mark.parametrize(
    ("row", "intent", "is_read_back"),
    [
        (ROW, builders.intent(7, host_id="h7"), True),
        (ROW, None, True),
        (ROW, builders.intent(7, host_id="h9"), False),
        (msgspec.structs.replace(ROW, unread=frozenset({"gpu_rate"})), builders.intent(7, host_id="h7"), False),
        (DEAR, builders.intent(7, host_id="h7", tenure=None, price=None), False),
        (DEAR, None, False),
    ],
    ids=["as asked", "no record of ours", "another host", "unreadable", "dear on demand", "dear without a record"],
)
def test_what_a_listing_finds_as_asked_is_read_back_by_it(row: Any, intent: Any, *, is_read_back: bool) -> None:
    """What differs in a later listing has changed since, and ends nothing (rule 16)."""
    fleet = world(rows=(row,))
    made = orphans.lease_of(fleet, row, builders.slot(), intent)
    assert made.read_back_at == (fleet.markets["vast"].listed_at if is_read_back else None)


def test_the_lease_of_a_row_is_what_the_row_shows_for_the_money() -> None:
    row = builders.instance(
        7,
        tenure=Tenure.ON_DEMAND,
        gpus=2,
        dlperf=77.0,
        gpu_rate=builders.per_hour("0.80"),
        disk_rate=builders.per_hour("0.05"),
        disk_gb=250.0,
        floor=builders.per_hour("0.19"),
        ends_at=builders.ago(days=-3),
        created_at=builders.ago(hours=3),
    )
    made = orphans.lease_of(world(), row, builders.slot(), None)
    assert (made.lease_id, made.market, made.host_id, made.owner_id) == ("vast-7", "vast", "h7", "o7")
    assert (made.tenure, made.gpu, made.gpus, made.dlperf) == (Tenure.ON_DEMAND, row.gpu, 2, 77.0)
    assert (made.billing_rate, made.disk_rate, made.disk_gb) == (builders.per_hour("0.85"), row.disk_rate, 250.0)
    assert (made.host_floor, made.ends_at) == (row.floor, row.ends_at)
    assert (made.opened_at, made.state_since, made.accrued_until) == (row.created_at,) * 3
    assert (made.offer_id, made.intent_id, made.end_reason, made.has_run) == ("", "", "", False)
    assert (made.traffic_down_gb, made.traffic_up_gb) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("intent", "agreed"),
    [(None, "0.99"), (builders.intent(7, tenure=Tenure.ON_DEMAND, price=None, rate=builders.per_hour("0.42")), "0.41")],
    ids=["no record of ours", "the rent of ours"],
)
def test_an_absurd_price_is_doubted_before_it_counts(intent: Any, agreed: str) -> None:
    """Without a record of ours the price of the workload bounds it: no daemon of the fleet rents for more (rule 21)."""
    row = builders.instance(
        7, tenure=Tenure.ON_DEMAND, gpu_rate=builders.per_hour("500"), disk_rate=builders.per_hour("0.01")
    )
    made = orphans.lease_of(world(), row, builders.slot(), intent)
    assert (made.gpu_rate, made.agreed) == (builders.per_hour(agreed),) * 2


def test_what_goes_on_keeps_its_traffic_its_past_and_the_rent_behind_it() -> None:
    """Traffic that was paid is not paid again; another id, for the lease that ended keeps its own."""
    told: dict[str, Any] = {"runs": 3, "guard_run": 1, "guard_terms": "{}"}
    past = builders.lease(7, end_reason="host_gone", has_run=True, traffic_down_gb=5.0, traffic_up_gb=2.0, **told)
    rent = builders.intent(7, disk_gb=20.0, guard_run=1)
    made = orphans.lease_of(world(past_leases={"7": past}), ROW, builders.slot(), rent)
    assert (made.traffic_down_gb, made.traffic_up_gb, made.has_run) == (5.0, 2.0, True)
    assert (made.runs, made.guard_terms) == (4, "{}")
    paused = builders.instance(7, state=InstanceState.PAUSED)
    assert orphans.lease_of(world(past_leases={"7": past}), paused, builders.slot(), rent).runs == 3
    assert (made.offer_id, made.intent_id, made.end_reason) == ("a7", rent.intent_id, "")
    assert made.lease_id == f"vast-7-{builders.NOW.timestamp():.0f}"


@pytest.mark.parametrize(("slot", "known"), [(0, (1, "{}")), (1, (None, None))])
def test_a_rent_found_late_has_the_terms_that_its_guard_was_told(slot: int, known: tuple[object, ...]) -> None:
    intent = builders.intent(7, guard_run=1, guard_terms="{}")
    made = orphans.lease_of(world(), ROW, builders.slot(index=slot), intent)
    assert (made.guard_run, made.guard_terms) == known


def test_the_lease_of_a_row_bills_what_the_row_shows() -> None:
    runs = orphans.lease_of(world(), ROW, builders.slot(), None)
    assert (runs.bills, runs.run_since, runs.runs) == (Bills.GPU_AND_DISK, ROW.created_at, 1)
    rests = orphans.lease_of(world(), builders.instance(7, state=InstanceState.PAUSED), builders.slot(), None)
    assert (rests.bills, rests.run_since, rests.runs) == (Bills.DISK, None, 0)


@pytest.mark.parametrize(
    ("intent", "since"),
    [
        (None, builders.NOW),
        (builders.intent(7), builders.ago(minutes=1)),
        (builders.intent(7, sent_at=None), builders.NOW),
    ],
    ids=["no intent", "sent", "not sent"],
)
def test_without_a_creation_date_metering_begins_when_it_was_sent(intent: Any, since: Any) -> None:
    made = orphans.lease_of(world(), created(None), builders.slot(), intent)
    assert made.accrued_until == since


@pytest.mark.parametrize(
    ("changes", "claimed"),
    [
        ({}, "7"),
        ({"leases": (builders.lease(7),)}, ""),
        ({"past_leases": {"7": builders.lease(7, end_reason="host_gone")}}, "7"),
        ({"past_leases": {"7": builders.lease(7, end_reason="moved")}}, ""),
        ({"labels": {"7": builders.label(7, fleet_id="0123456789ab")}}, ""),
        ({"labels": {"7": builders.label(7, place=builders.slot("train", 1))}}, ""),
    ],
    ids=str,
)
def test_an_empty_slot_is_claimed_by_what_may_yet_be_adopted(changes: dict[str, Any], claimed: str) -> None:
    assert orphans.claimant(world(**changes), builders.slot()) == claimed


def test_sightings_on_another_market_are_kept() -> None:
    fleet = world()
    found = orphans.find(fleet, fleet.markets["vast"], Memory(orphan_sightings={"runpod/9": 1}), [], ())
    assert found.sightings == {"runpod/9": 1, "vast/7": 1}
    assert found.to_look == {"7"}


labels = st.none() | st.sampled_from([builders.label(7), builders.label(7, fleet_id="0123456789ab")])
pasts = st.none() | st.sampled_from([builders.lease(7, end_reason="moved"), builders.lease(7, end_reason="host_gone")])


@given(labels, pasts, st.integers(1, 5))
def test_what_is_neither_labelled_nor_in_the_ledger_is_never_named(label: Any, past: Lease | None, looks: int) -> None:
    fleet = world({} if label is None else {"7": label}, past_leases={} if past is None else {"7": past})
    is_ours = past is not None or (label is not None and label.fleet_id == builders.FLEET_ID)
    named: list[Fact] = []
    memory = Memory()
    for _ in range(looks):
        facts, memory = looked(fleet, memory)
        named += facts
    assert len(named) == (max(looks - orphans.LOOKS + 1, 0) if is_ours else 0), "in every cycle until it is recorded"


def test_held_leases_are_known() -> None:
    held = replace(builders.lease(7), is_held=True)
    fleet = world(leases=(held,))
    assert looked(fleet, Memory())[1].orphan_sightings == {}


def test_what_an_open_rent_made_is_left_to_its_doubt_also_while_it_stays_sent() -> None:
    """A ledger that takes no writes cannot put a sent rent in doubt; a lease of it would be opened twice."""
    for state in (IntentState.SENT, IntentState.IN_DOUBT):
        fleet = world(intents=(builders.intent(7, state=state),))
        _, memory = looked(fleet, Memory())
        assert looked(fleet, memory)[0] == ()
