"""A machine that fails after it ran, and bills on: nobody uses it, so it is paused and not waited for."""

from datetime import timedelta
from typing import Any

import pytest

from agent.decide import plan
from agent.decide.limits.limits import Limits
from agent.decide.moves import cooldowns_after_writes
from agent.decide.pricing import cooldowns
from agent.domain.market.instance import InstanceState
from agent.domain.record.cooldown import CooldownKind
from agent.domain.record.lease import Bills, LeaseState
from agent.domain.work.decision import Decision, Pause, Reason
from strategies.patient import Patient, PatientParams
from tests.support import builders

TUNED = {"patient": builders.tuned(Patient(), PatientParams())}


def decided(state: InstanceState = InstanceState.FAILED, **changes: Any) -> Decision:
    since = builders.NOW - timedelta(minutes=2)
    down = {"state": LeaseState.PAUSED, "state_since": since, "bills": Bills.GPU_AND_DISK, "has_run": True}
    lease = builders.lease(bid_limit=builders.per_hour("3"), **{**down, **changes})
    view = builders.view(instances=(builders.instance(state=state),), offers=(builders.offer(2),))
    return plan.plan(builders.fleet(leases=(lease,), markets={"vast": view}), TUNED, Limits()).decisions[0]


def test_it_is_paused() -> None:
    """It was waited for at $2.98 an hour, since its bid seemed to win the next auction."""
    found = decided()
    assert (type(found), found.reason.code) == (Pause, "machine_failed")


@pytest.mark.parametrize(
    "changes",
    [
        {"state_since": builders.NOW - timedelta(seconds=30)},
        {"bills": Bills.DISK},
        {"paused_by_us": True, "bills": Bills.DISK},
        {"state": LeaseState.STARTING, "has_run": False},
    ],
    ids=["just shown", "its GPU does not bill", "we paused it", "its first start"],
)
def test_what_is_not_proven_to_fail_and_bill_is_left_to_its_own_rules(changes: dict[str, Any]) -> None:
    assert decided(**changes).reason.code != "machine_failed"
    assert decided(InstanceState.PAUSED).reason.code != "machine_failed"


def test_after_its_pause_it_rests_as_one_whose_host_is_full() -> None:
    """It would win the next auction at once, and pay for minutes of the next machine that fails, without end."""
    pause = decided()
    assert isinstance(pause, Pause)
    (rest,) = cooldowns_after_writes.after_pause(pause, builders.NOW)
    assert (rest.kind, rest.key, rest.until - builders.NOW) == (CooldownKind.FULL, "vast-1", cooldowns.HOST_FULL)
    assert cooldowns_after_writes.after_pause(Pause(pause.lease, Reason("paused", "by ann")), builders.NOW) == ()
