"""Moves that a strategy may not make with a lease whose market is not listed."""

from collections.abc import Sequence
from typing import ClassVar

import pytest

from agent.decide import plan, slot_releases
from agent.decide.limits.limits import Limits
from agent.decide.strategy import Params, Proposal, View
from agent.domain.market.instance import InstanceState
from agent.domain.market.interruption import Cause
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import LeaseState
from agent.domain.work.decision import Hold, Pause, Reason, Release
from tests.support import builders

WHY = Reason("because", "because")


class _Asks:
    """Proposes the same whatever it sees."""

    params: ClassVar[type[Params]] = Params

    def __init__(self, proposal: Proposal) -> None:
        self._proposal = proposal

    def propose(self, view: View, params: Params) -> Sequence[Proposal]:
        del view, params
        return [self._proposal]


@pytest.mark.parametrize("kind", [IntentKind.PAUSE, IntentKind.RELEASE])
@pytest.mark.parametrize(("is_fresh", "paused_by_us"), [(True, False), (False, False), (False, True)])
def test_a_lost_lease_is_neither_stopped_nor_given_up_while_its_market_is_not_listed(
    kind: IntentKind, *, is_fresh: bool, paused_by_us: bool
) -> None:
    """The market may have given it back: a service that ran again was stopped for a move to another market."""
    lost = builders.lease(state=LeaseState.PAUSED, interrupted_by=Cause.DISPLACED, paused_by_us=paused_by_us)
    cancelled = {"patient": builders.tuned(_Asks(Proposal(builders.slot(), kind, WHY, lease=lost)), Params())}
    markets = {"vast": builders.view(offers=(builders.offer(),), is_fresh=is_fresh)}
    (decided,) = plan.plan(builders.fleet(markets=markets, leases=(lost,)), cancelled, Limits()).decisions
    if is_fresh or paused_by_us:
        assert isinstance(decided, Pause if kind is IntentKind.PAUSE else Release)
    else:
        assert isinstance(decided, Hold)
        assert decided.reason.limit == "unseen"


@pytest.mark.parametrize("kind", [IntentKind.PAUSE, IntentKind.RELEASE])
@pytest.mark.parametrize(("is_fresh", "paused_by_us"), [(True, False), (False, False), (False, True)])
def test_what_was_starting_is_neither_stopped_nor_given_up_while_its_market_is_not_listed(
    kind: IntentKind, *, is_fresh: bool, paused_by_us: bool
) -> None:
    """Its load may be over: with no time left to wait, a deadline's move was released although it ran."""
    since = builders.ago(minutes=5)
    loading = builders.lease(state=LeaseState.STARTING, state_since=since, paused_by_us=paused_by_us)
    given_up = {"patient": builders.tuned(_Asks(Proposal(builders.slot(), kind, WHY, lease=loading)), Params())}
    markets = {"vast": builders.view(offers=(builders.offer(),), is_fresh=is_fresh)}
    (decided,) = plan.plan(builders.fleet(markets=markets, leases=(loading,)), given_up, Limits()).decisions
    if is_fresh:
        assert isinstance(decided, Pause if kind is IntentKind.PAUSE else Release)
    else:
        assert isinstance(decided, Hold)
        assert decided.reason.limit == "unseen"


@pytest.mark.parametrize("kind", [IntentKind.PAUSE, IntentKind.RELEASE])
@pytest.mark.parametrize("state", [LeaseState.PAUSED, LeaseState.OFFLINE, LeaseState.STARTING])
def test_what_is_listed_as_running_is_kept_although_that_could_not_be_recorded(
    kind: IntentKind, state: LeaseState
) -> None:
    lost = builders.lease(state=state, interrupted_by=Cause.DISPLACED, state_since=builders.ago(minutes=5))
    given_up = {"patient": builders.tuned(_Asks(Proposal(builders.slot(), kind, WHY, lease=lost)), Params())}
    markets = {"vast": builders.view(offers=(builders.offer(),), instances=(builders.instance(),))}
    (decided,) = plan.plan(builders.fleet(markets=markets, leases=(lost,)), given_up, Limits()).decisions
    assert isinstance(decided, Hold)
    assert decided.reason.limit == "unseen"


@pytest.mark.parametrize("listed", [InstanceState.PAUSED, InstanceState.RUNNING])
def test_a_lost_move_that_is_listed_as_running_is_not_given_up(listed: InstanceState) -> None:
    """The disk of the ledger was full for two hours, in which both new leases of two moves started again."""
    old = builders.lease(1, state=LeaseState.PAUSED, paused_by_us=True)
    new = builders.lease(2, state=LeaseState.PAUSED, has_run=False, opened_at=builders.ago(hours=1))
    markets = {"vast": builders.view(instances=(builders.instance(2, state=listed),))}
    ended = {each.lease.lease_id for each in slot_releases.releases(builders.fleet(markets=markets, leases=(old, new)))}
    assert ended == (set() if listed is InstanceState.RUNNING else {"vast-2"})
