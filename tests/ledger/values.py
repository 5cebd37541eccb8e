"""Values for the tests of the ledger: plain ones to change at will, and strategies that draw any."""

import datetime as dt
import string
from collections.abc import Callable
from enum import Enum
from typing import Any

from hypothesis import strategies as st

from agent.domain.market.gpu import GpuModel
from agent.domain.market.host import HostRecord
from agent.domain.market.interruption import Cause
from agent.domain.market.outbids import STEPS, Outbids
from agent.domain.market.price import PriceSample
from agent.domain.market.tenure import Tenure
from agent.domain.money import Usd, UsdPerHour
from agent.domain.record import budget
from agent.domain.record.cooldown import Cooldown, CooldownKind
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.domain.record.hold import DISKS, EVERYTHING, OperatorHold, Target, TargetKind, Word
from agent.domain.record.intent import OPEN, Intent, IntentKind, IntentState
from agent.domain.record.lease import Bills, Lease, LeaseState
from agent.domain.record.reported_crossing import ReportedCrossing
from agent.domain.record.tally import AT_A_PLACE, Counted, Tally
from agent.domain.slot import Slot
from agent.domain.work.decision import Option, Reason, Term
from agent.ledger.store import Ledger
from agent.ledger.tables.decisions import RecordedDecision

NOW = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC)


def lease(number: int = 1, **changes: Any) -> Lease:
    """Build a running lease."""
    values: dict[str, Any] = {
        "lease_id": f"l{number}",
        "market": "vast",
        "instance_id": f"i{number}",
        "slot": Slot("train", number),
        "tenure": Tenure.INTERRUPTIBLE,
        "state": LeaseState.RUNNING,
        "host_id": "h1",
        "owner_id": "o1",
        "offer_id": "a1",
        "gpu": GpuModel("RTX 4090"),
        "gpus": 1,
        "dlperf": 80.5,
        "gpu_rate": UsdPerHour(200_000),
        "disk_rate": UsdPerHour(5_000),
        "disk_gb": 20.0,
        "opened_at": NOW,
        "state_since": NOW,
        "bills": Bills.GPU_AND_DISK,
        "accrued_until": NOW,
        "intent_id": f"n{number}",
    }
    return Lease(**{**values, **changes})


def intent(number: int = 1, **changes: Any) -> Intent:
    """Build a recorded rent."""
    values: dict[str, Any] = {
        "intent_id": f"n{number}",
        "kind": IntentKind.RENT,
        "state": IntentState.RECORDED,
        "market": "vast",
        "slot": Slot("train", number),
        "recorded_at": NOW,
        "reason": "the slot is empty",
        "tenure": Tenure.INTERRUPTIBLE,
        "price": UsdPerHour(200_000),
        "rate": UsdPerHour(205_000),
    }
    return Intent(**{**values, **changes})


def sample(ask: int | None = 300_000, floor: int | None = 150_000, **changes: Any) -> PriceSample:
    """Build a sample of one host."""
    values: dict[str, Any] = {
        "at": NOW,
        "market": "vast",
        "host_id": "h1",
        "gpu": GpuModel("RTX 4090"),
        "gpus": 1,
        "ask": None if ask is None else UsdPerHour(ask),
        "floor": None if floor is None else UsdPerHour(floor),
    }
    return PriceSample(**{**values, **changes})


def one_of(members: type[Enum]) -> st.SearchStrategy[Any]:
    """Draw a member."""
    return st.sampled_from(list(members))


# What survives unchanged: bounded, no surrogates, no NUL. What does not is the business of test_types.
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
ids = st.text(string.ascii_letters + string.digits + "-/é漢", min_size=1, max_size=20)
times = st.datetimes(dt.datetime(1970, 1, 1), dt.datetime(2200, 1, 1), timezones=st.just(dt.UTC))  # noqa: DTZ001
micros = st.integers(0, 2**62)
rates = st.builds(UsdPerHour, micros)
amounts = st.builds(Usd, micros)
reals = st.floats(0, 1e12, allow_nan=False)
slots = st.builds(Slot, ids, st.integers(0, 10_000))
maybe: Callable[[st.SearchStrategy[Any]], st.SearchStrategy[Any]] = lambda strategy: st.none() | strategy  # noqa: E731


of_guard = st.fixed_dictionaries(
    {
        "guard_run": maybe(st.integers(1, 10_000)),
        "checkpoint_asked_at": maybe(times),
        "checkpoint_taken_at": maybe(times),
        "checkpoint_verified_at": maybe(times),
        "loading_since": maybe(times),
        "maintenance_told_at": maybe(times),
        "maintenance_begins_at": maybe(times),
        "maintenance_ends_at": maybe(times),
        "guard_terms": maybe(texts),
        "vram_mb": maybe(st.integers(0, 10**6)),
        "stop_seen_at": maybe(times),
        "failed_probes": st.integers(0, 10**6),
        "probe_failed_at": maybe(times),
        "unhealthy_since": maybe(times),
        "restarts": st.integers(0, 10**6),
        "restart_at": maybe(times),
        "keys_seen_at": maybe(times),
        "label_intent_id": texts,
        "ran_micros": st.integers(0, 10**15),
        "stalled_since": maybe(times),
        "stalled_at": maybe(times),
        "bid_limit": maybe(rates),
        "notice_at": maybe(times),
    }
)
"""Fields of a lease that are seldom set."""


@st.composite
def leases(draw: st.DrawFn) -> Lease:
    """Draw any lease that may be in the ledger."""
    state = draw(one_of(LeaseState))
    return Lease(
        lease_id=draw(ids),
        market=draw(ids),
        instance_id=draw(ids),
        slot=draw(slots),
        tenure=draw(one_of(Tenure)),
        state=state,
        host_id=draw(ids),
        owner_id=draw(texts),
        offer_id=draw(texts),
        gpu=GpuModel(draw(texts)),
        gpus=draw(st.integers(0, 64)),
        dlperf=draw(reals),
        gpu_rate=draw(rates),
        disk_rate=draw(rates),
        disk_gb=draw(reals),
        opened_at=draw(times),
        state_since=draw(times),
        bills=draw(one_of(Bills)),
        accrued_until=draw(times),
        intent_id=draw(texts),
        ask=draw(maybe(rates)),
        host_floor=draw(maybe(rates)),
        ends_at=draw(maybe(times)),
        has_run=draw(st.booleans()),
        has_failed=draw(st.booleans()),
        run_since=draw(maybe(times)),
        is_held=draw(st.booleans()),
        paused_by_us=draw(st.booleans()),
        interrupted_by=draw(maybe(one_of(Cause))),
        rival_floor=draw(maybe(rates)),
        recent_bids=tuple(draw(st.lists(rates, max_size=4))),
        bid_since=draw(maybe(times)),
        traffic_down_gb=draw(reals),
        traffic_up_gb=draw(reals),
        ended_at=draw(times) if state is LeaseState.ENDED else None,
        end_reason=draw(texts),
        spec_digest=draw(texts),
        ready_since=draw(maybe(times)),
        was_ready=draw(st.booleans()),
        runs=draw(st.integers(0, 10_000)),
        idle_since=draw(maybe(times)),
        ssh_address=draw(texts),
        ports=draw(texts),
        **draw(of_guard),
    )


@st.composite
def intents(draw: st.DrawFn) -> Intent:
    """Draw any intent that may be in the ledger."""
    state = draw(one_of(IntentState))
    return Intent(
        intent_id=draw(ids),
        kind=draw(one_of(IntentKind)),
        state=state,
        market=draw(ids),
        slot=draw(slots),
        recorded_at=draw(times),
        reason=draw(texts),
        lease_id=draw(texts),
        offer_id=draw(texts),
        host_id=draw(texts),
        instance_id=draw(texts),
        tenure=draw(maybe(one_of(Tenure))),
        price=draw(maybe(rates)),
        rate=draw(rates),
        disk_gb=draw(reals),
        guard_run=draw(maybe(st.integers(1, 10_000))),
        guard_terms=draw(maybe(texts)),
        sent_at=draw(maybe(times)),
        doubted_at=draw(maybe(times)),
        resolved_at=None if state in OPEN else draw(times),
        outcome=draw(texts),
    )


@st.composite
def events(draw: st.DrawFn) -> Event:
    """Draw any event, not numbered yet."""
    return Event(
        at=draw(times),
        kind=draw(st.sampled_from([EventKind.LEASE_OPENED, EventKind.INTENT_IN_DOUBT, EventKind("limit.struck")])),
        seen_at=draw(maybe(times)),
        workload=draw(texts),
        slot=draw(maybe(st.integers(0, 10_000))),
        lease_id=draw(texts),
        intent_id=draw(texts),
        market=draw(texts),
        host_id=draw(texts),
        cause=draw(maybe(one_of(Cause))),
        rule=draw(texts),
        evidence=draw(texts),
        bid=draw(maybe(rates)),
        floor=draw(maybe(rates)),
        rate=draw(maybe(rates)),
        amount=draw(maybe(st.builds(Usd, st.integers(-(2**62), 2**62)))),
        reason_code=draw(texts),
        reason=draw(texts),
        notice_at=draw(maybe(times)),
    )


terms = st.builds(Term, texts, st.floats(allow_nan=False), texts)
options = st.builds(Option, texts, st.floats(allow_nan=False), st.lists(terms, max_size=3).map(tuple))
reasons = st.builds(Reason, texts, texts, st.lists(options, max_size=3).map(tuple), texts)
decisions = st.builds(
    RecordedDecision, times, slots, texts, reasons, texts, texts, maybe(rates), maybe(rates), texts, texts, texts
)
counts = st.integers(0, 10**9)
steps = st.tuples(*[st.floats(0, 100) for _ in STEPS])
hosts = st.builds(
    HostRecord, ids, ids, texts, reals, counts, counts, counts, maybe(times),
    displaced=reals, outbids=st.builds(Outbids, steps, steps),
)  # fmt: skip
cooldowns = st.builds(Cooldown, st.sampled_from(CooldownKind), ids, times, texts)
scopes = st.just(budget.EVERYTHING) | st.builds(budget.of_workload, ids) | st.builds(budget.of_market, ids)
told = st.builds(
    ReportedCrossing, st.sampled_from(["budget.warned", "budget.reached"]), scopes, st.sampled_from(budget.SUMS),
    amounts, times, texts, maybe(times),
)  # fmt: skip
odd = st.text("ab/@:", max_size=20)
tallies = st.builds(
    Tally, st.sampled_from(sorted(AT_A_PLACE)), ids | odd, times, times, texts, odd, counts
) | st.builds(Tally, st.sampled_from(sorted(set(Counted) - AT_A_PLACE)), odd, times, times, texts, st.just(""), counts)
targets = st.builds(Target, st.sampled_from(sorted(set(TargetKind) - {TargetKind.FLEET})), ids)
holds = st.builds(OperatorHold, st.sampled_from(Word), targets, times, texts, maybe(times)) | st.builds(
    OperatorHold, st.just(Word.KILL), st.sampled_from([EVERYTHING, DISKS]), times, texts, maybe(times)
)
samples = st.builds(
    PriceSample, times, ids, ids, st.builds(GpuModel, texts), st.integers(1, 16), maybe(rates), maybe(rates)
)


def heard(ledger: Ledger) -> list[str]:
    """Return a list that takes every statement which SQLite begins on the ledger's own connection from now on."""
    said: list[str] = []
    link = ledger._tables._connection
    assert link is not None
    link.connection.driver_connection.set_trace_callback(said.append)  # type: ignore[union-attr]
    return said
