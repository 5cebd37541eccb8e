"""The two halves of the restart of an unhealthy service, before any strategy is asked."""

from datetime import timedelta
from typing import Any

import msgspec

from agent.decide import slots
from agent.decide.strategy import Proposal, SlotView
from agent.domain.fleet import MarketView
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import LeaseState
from agent.domain.work.decision import Reason
from tests.support import builders
from tests.support.expiring import in_force

NOW = builders.NOW


def look(**changes: Any) -> SlotView | Proposal:
    return slots.view_or_proposal(builders.fleet(**changes), builders.slot(), in_force({}))


def test_an_unhealthy_service_is_stopped_and_started_in_place_but_not_in_the_dark_nor_during_a_move() -> None:
    ill = builders.lease(unhealthy_since=NOW, restart_at=NOW, restarts=1, end_reason="unhealthy: no answer")
    listed = {"vast": MarketView("vast", is_fresh=True, listed_at=NOW)}
    stop = look(leases=(ill,), markets=listed)
    assert isinstance(stop, Proposal)
    assert stop.kind is IntentKind.PAUSE
    assert stop.reason == Reason("restart", "its service does not answer (no answer): restart 1 in place")
    assert isinstance(look(leases=(ill,), markets={"vast": MarketView("vast")}), SlotView)
    arriving = builders.lease(lease_id="other", instance_id="77", state=LeaseState.STARTING)
    assert isinstance(look(leases=(ill, arriving), markets=listed), SlotView)
    stopped = msgspec.structs.replace(ill, state=LeaseState.PAUSED, paused_by_us=True, unhealthy_since=None)
    start = look(leases=(stopped,), markets=listed)
    assert isinstance(start, Proposal)
    assert (start.kind, start.reason.code) == (IntentKind.RESUME, "restart")
    late = msgspec.structs.replace(stopped, restart_at=NOW - timedelta(minutes=16))
    assert isinstance(look(leases=(late,), markets=listed), SlotView), "an old restart is the strategy's business"
