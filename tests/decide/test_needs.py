"""Search rows are rationed: only a choice to make asks for them."""

import datetime as dt
from typing import Any

import pytest

from agent.decide import needs, plan
from agent.decide.limits import limits
from agent.decide.limits.limits import Limits
from agent.decide.strategy import Params, Strategy, Tuned
from agent.domain.fleet import Fleet, Spend
from agent.domain.market import gpu
from agent.domain.market.tenure import Tenure
from agent.domain.money import ZERO
from agent.domain.record import budget
from agent.domain.record.cooldown import Cooldown, CooldownKind
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import LeaseState
from agent.domain.work.deadline import Deadline
from agent.domain.work.decision import Reason, Rent
from agent.domain.work.workload import Workload
from strategies.deadline import Deadline as DeadlineStrategy
from strategies.deadline import DeadlineParams
from strategies.hedged import Hedged
from strategies.hedged_rules.params import HedgedParams
from tests.support import builders

LIVE = [LeaseState.STARTING, LeaseState.RUNNING, LeaseState.EXITED, LeaseState.MISSING]


def needed(**changes: Any) -> list[str]:
    return [need.workload.name for need in needs.needs(builders.fleet(**changes))]


def test_an_empty_slot_needs_offers() -> None:
    assert needed() == ["train"]


def test_a_workload_without_slots_needs_none() -> None:
    assert needed(workloads=(builders.workload(slots=0),)) == []


@pytest.mark.parametrize("state", LIVE, ids=lambda state: state.value)
def test_a_slot_that_is_served_needs_none(state: LeaseState) -> None:
    assert needed(leases=(builders.lease(state=state),)) == []


@pytest.mark.parametrize("state", sorted(needs.DOWN, key=str), ids=lambda state: state.value)
def test_a_slot_that_is_down_needs_offers(state: LeaseState) -> None:
    assert needed(leases=(builders.lease(state=state),)) == ["train"]


def test_a_slot_in_doubt_waits() -> None:
    assert needed(intents=(builders.intent(),)) == []
    assert needed(intents=(builders.intent(kind=IntentKind.PAUSE),)) == ["train"]


def test_one_needy_slot_among_served_ones_is_enough() -> None:
    work = builders.workload(slots=2)
    assert needed(workloads=(work,), leases=(builders.lease(),)) == ["train"]


def test_the_hosts_of_paused_leases_are_asked_for_by_name() -> None:
    work = builders.workload(slots=2)
    leases = (
        builders.lease(1, state=LeaseState.PAUSED),
        builders.lease(2, state=LeaseState.OFFLINE, slot=builders.slot("train", 1)),
    )
    need = needs.needs(builders.fleet(workloads=(work,), leases=leases))[0]
    assert need.held_hosts == (("vast", "h1"),)


def test_a_need_is_new_when_what_is_down_changes() -> None:
    before = builders.lease(1, state=LeaseState.PAUSED)
    later = builders.lease(1, state=LeaseState.PAUSED, state_since=builders.NOW)
    keys = {needs.needs(builders.fleet(leases=leases))[0].key for leases in ((), (before,), (later,), (before,))}
    assert len(keys) == 3


FULL = Spend(today=builders.usd(9), month=builders.usd(9), total=builders.usd(9))
SCOPES = (budget.of_market("vast"), budget.of_workload("train"))
MONTH = budget.Budget(hard=budget.Thresholds(per_month=builders.usd(9)))
BARS: list[tuple[Limits, dict[str, Any], frozenset[str], Spend]] = [
    (Limits(), {}, frozenset({"vast"}), Spend()),
    (Limits(), {"no_spend_because": "spend = false"}, frozenset(), Spend()),
    (Limits(), {"clock_skew_seconds": 61.0}, frozenset(), Spend()),
    (Limits(), {"credit": ZERO}, frozenset(), Spend()),
    (Limits(min_credit=builders.usd(60)), {}, frozenset(), Spend()),
    (Limits(instances=0), {}, frozenset(), Spend()),
    (Limits(per_day=builders.usd(9)), {}, frozenset(), FULL),
    (Limits(total=builders.usd(9)), {}, frozenset(), FULL),
    *(
        (
            Limits(budgets={scope: budget.Budget(hard=budget.Thresholds(per_month=builders.usd(9)))}),
            {},
            frozenset(),
            FULL,
        )
        for scope in SCOPES
    ),
]


@pytest.mark.parametrize(("caps", "seen", "faulty", "spend"), BARS)
def test_a_need_is_new_at_a_market_when_what_forbids_every_rent_there_is_over(
    caps: Limits, seen: dict[str, Any], faulty: frozenset[str], spend: Spend
) -> None:
    """What forbids them strikes a rent, too; the other market is not asked anew unless it is forbidden as well."""
    views = {"vast": builders.view(**seen), "runpod": builders.view(market="runpod")}
    barred = builders.fleet(markets=views, spend=spend, spend_of=dict.fromkeys(SCOPES, spend))
    free = builders.fleet(markets={**views, "vast": builders.view()})
    bars, frees = needs.needs(barred, caps, faulty)[0], needs.needs(free)[0]
    assert bars.key == frees.key
    assert (set(bars.bars_at("vast")), frees.bars_at("vast")) == ({needs.LIMITS}, ())
    assert _is_struck(barred, caps, faulty, "vast")
    is_other_struck = _is_struck(barred, caps, faulty, "runpod")
    assert (bars.bars_at("runpod") != frees.bars_at("runpod")) is is_other_struck


@pytest.mark.parametrize(
    ("kind", "key", "is_mine"),
    [
        (CooldownKind.MARKET, "vast", True),
        (CooldownKind.REJECTED, "vast", True),
        (CooldownKind.STORM, "vast/RTX 4090", True),
        (CooldownKind.STARTS, "vast/RTX 4090", True),
        (CooldownKind.COOL_OFF, "train/0", True),
        (CooldownKind.COOL_OFF, "serve/0", False),
        (CooldownKind.STORM, "vast/H100 SXM", False),
        (CooldownKind.REJECTED, "runpod", False),
        (CooldownKind.HOST, "vast/h1", False),
    ],
)
def test_a_need_is_new_when_a_market_a_model_or_the_slot_rests_no_longer(
    kind: CooldownKind, key: str, is_mine: bool
) -> None:
    rest = Cooldown(kind, key, builders.NOW + dt.timedelta(minutes=1), "a reason")
    before, after = (
        needs.needs(builders.fleet(now=at, cooldowns=(rest,)))[0]
        for at in (builders.NOW, builders.NOW + dt.timedelta(minutes=2))
    )
    assert before.key == after.key
    assert (before.bars_at("vast") != after.bars_at("vast")) is is_mine
    assert after.bars_at("vast") == ()


def _is_struck(fleet: Fleet, caps: Limits, faulty: frozenset[str], market: str) -> bool:
    offer = builders.offer(market=market)
    why = Reason("code", "sentence")
    rent = Rent(builders.slot(), offer, Tenure.INTERRUPTIBLE, builders.per_hour("0.2"), builders.per_hour("0.2"), why)
    return limits.strike(rent, fleet, limits.committed_by_fleet(fleet), caps, faulty) is not None


def test_a_deadline_that_may_soon_force_on_demand_capacity_is_told() -> None:
    """Its search goes before those of others (`agent/observe/search_queue.py`)."""
    pressed, relaxed = (
        builders.workload(name, deadline=Deadline(10.0, builders.NOW + dt.timedelta(hours=hours)))
        for name, hours in (("late", 10.5), ("early", 60.0))
    )
    found = needs.needs(builders.fleet(workloads=(relaxed, pressed)))
    assert [(need.workload.name, need.is_pressed) for need in found] == [("early", False), ("late", True)]


def _with_deadline(left: float, gpu_models: tuple[str, ...] = ("RTX 4090",), **changes: Any) -> Workload:
    wants = builders.requirements(gpu_models=tuple(map(gpu.model, gpu_models)))
    by = Deadline(10.0, builders.NOW + dt.timedelta(hours=left), reference_gpu=gpu.model(gpu_models[0]))
    return builders.workload(strategy="deadline", deadline=by, requirements=wants, **changes)


def _is_searched(work: Workload, strategy: Tuned, **changes: Any) -> bool:
    leases = (builders.lease(state=LeaseState.RUNNING),)
    fleet = builders.fleet(workloads=(work,), leases=leases, **changes)
    return any(need.is_pressed for need in needs.needs(fleet, tuned={"deadline": strategy}))


KEPT_FREE: list[tuple[Strategy[Any], Params, dict[str, Any]]] = [
    (DeadlineStrategy(), DeadlineParams(start_delay=dt.timedelta(hours=2)), {}),
    (DeadlineStrategy(), DeadlineParams(reserve=dt.timedelta(hours=2)), {}),
    (Hedged(), HedgedParams(start_delay=dt.timedelta(hours=2)), {}),
    (DeadlineStrategy(), DeadlineParams(), {"image_gb": 200.0}),
    (DeadlineStrategy(), DeadlineParams(), {"dataset_gb": 200.0}),
]


@pytest.mark.parametrize(("strategy", "params", "changes"), KEPT_FREE)
def test_prices_are_searched_before_the_strategy_needs_them_for_its_last_call(
    strategy: Strategy[Any], params: Params, changes: dict[str, Any]
) -> None:
    """The strategy itself says when: with an on-demand offer in view it rents that."""
    tuned = builders.tuned(strategy, params, "deadline")
    offer, lease = builders.offer(2, floor=None, inet_down_mbps=150.0), builders.lease(state=LeaseState.RUNNING)
    switches = []
    for spare in (4.0, 3.0, 2.5, 2.2, 2.0, 1.5, 1.0, 0.5):
        work = _with_deadline(10.0 + spare, **changes)
        views = {"vast": builders.view(offers=(offer,))}
        fleet = builders.fleet(workloads=(work,), leases=(lease,), markets=views)
        (decision,) = plan.plan(fleet, {"deadline": tuned}, Limits()).decisions
        if isinstance(decision, Rent) and decision.tenure is Tenure.ON_DEMAND:
            switches.append(spare)
            assert _is_searched(work, tuned), spare
    assert switches[0] > 1.0
    assert not _is_searched(_with_deadline(18.0, **changes), tuned)


def test_the_last_call_on_each_accepted_model_counts_and_the_time_between_them_does_not() -> None:
    """Of a lease on the faster model nothing is said about the on-demand offer that will be for sale."""
    tuned = builders.tuned(DeadlineStrategy(), DeadlineParams(), "deadline")
    speeds = {(gpu.model("RTX 4090"), 1): 60.0, (gpu.model("RTX 3090"), 1): 30.0}
    models = ("RTX 4090", "RTX 3090")
    found = [
        left
        for left in (24.0, 21.0, 20.4, 15.0, 11.0, 9.0)
        if _is_searched(_with_deadline(left, models), tuned, typical=speeds)
    ]
    assert found == [21.0, 20.4, 11.0, 9.0]
