"""The judgement of a rehearsal: a lease that ran is released only for a reason of a choice."""

import pytest

from agent.cli.rehearsing.rehearsal import Rehearsal
from agent.cli.shared import session
from agent.domain.market.interruption import Cause
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.domain.work.decision import SPARE, WAITS
from tests.soak.__main__ import CONFIG
from tests.support import builders, verdict

SOUND = {**dict.fromkeys(verdict.ZEROS, 0), "spend": 0.0, "charged": 0.0}


def judged(code: str, *before: str) -> list[str]:
    """Return the faults of a rehearsal that ends by the release of a lease with these events before it."""
    kinds = [*before, "lease.released_by_us"]
    events = tuple(Event(builders.NOW, EventKind(kind), lease_id="a-lease", reason_code=code) for kind in kinds)
    config, _ = session.read(CONFIG)
    return verdict.wrong(Rehearsal(SOUND, events, (), (), config))


@pytest.mark.parametrize("code", ["moved", SPARE, WAITS])
def test_a_lease_that_runs_may_be_given_up_for_what_is_better(code: str) -> None:
    assert judged(code, "lease.running") == []


def test_a_lease_that_runs_is_given_up_for_no_other_reason() -> None:
    [sentence] = judged("too_late", "lease.running")
    assert sentence.startswith("a-lease was released while it ran: too_late")
    assert judged("too_late", "lease.running", "lease.interrupted") == []
    assert len(judged("too_late", "lease.running", "lease.interrupted", "lease.resumed")) == 1


@pytest.mark.parametrize(
    ("market", "cause", "difference", "is_wrong"),
    [
        ("runpod", Cause.HOST_OFFLINE, 0.9, False),
        ("runpod", Cause.HOST_OFFLINE, -0.9, True),
        ("runpod", Cause.HOST_OFFLINE, 1.2, True),
        ("runpod", Cause.OUTBID, 0.9, True),
        ("vast", Cause.HOST_OFFLINE, 0.9, True),
    ],
)
def test_only_a_pod_that_nobody_heard_may_be_counted_beyond_its_bill(
    market: str, cause: Cause, difference: float, is_wrong: bool
) -> None:
    held = builders.lease(market=market, gpu_rate=builders.per_hour("1"), disk_rate=builders.per_hour("0"))
    events = (
        Event(builders.ago(hours=1), EventKind.LEASE_INTERRUPTED, lease_id=held.lease_id, cause=cause),
        Event(builders.NOW, EventKind.LEASE_RESUMED, lease_id=held.lease_id),
    )
    config, _ = session.read(CONFIG)
    figures = SOUND | {"spend": 10.0 + difference, "charged": 10.0}
    assert bool(verdict.wrong(Rehearsal(figures, events, (), (held,), config))) is is_wrong
