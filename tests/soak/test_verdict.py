"""The verdict on a release: a lease that ran is released for an allowed reason, however often that is ordered."""

from datetime import timedelta
from typing import Any

import pytest

from agent.cli.rehearsing.rehearsal import Rehearsal
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from tests.support import builders, verdict

RAN, RELEASED, LOST = "lease.running", "lease.released_by_us", "lease.interrupted"
TAKEN, DOUBTED = "intent.accepted", "intent.in_doubt"


def told(*happened: tuple[str, str]) -> Rehearsal:
    events = [
        Event(
            at=builders.NOW + timedelta(minutes=number),
            kind=EventKind(kind),
            lease_id="vast-1",
            reason_code=code,
            reason="rebid: no answer" if code == "lower_bid" else "release: it bills until its cloud has it back",
        )
        for number, (kind, code) in enumerate(happened)
    ]
    whole: Any = {"figures": {}, "events": tuple(events), "spend": (), "leases": (), "config": None}
    return Rehearsal(**whole)


@pytest.mark.parametrize(
    ("happened", "wrong"),
    [
        ([(RAN, ""), (RELEASED, "moved")], 0),
        ([(RAN, ""), (RELEASED, "moved"), (RELEASED, "release_again"), (RELEASED, "release_again")], 0),
        ([(RAN, ""), (TAKEN, "moved"), (TAKEN, "release_again"), (RELEASED, "release_again")], 0),
        ([(RAN, ""), (TAKEN, "too_long"), (RELEASED, "release_again")], 1),
        ([(RAN, ""), (DOUBTED, "moved"), (RELEASED, "release_again")], 0),
        ([(RAN, ""), (DOUBTED, "lower_bid")], 0),
        ([(RAN, ""), (LOST, ""), (RELEASED, "too_long")], 0),
        ([(RAN, ""), (RELEASED, "too_long")], 1),
        ([(RAN, ""), (RELEASED, "too_long"), (RELEASED, "release_again")], 1),
        ([(RAN, ""), (RELEASED, "moved"), (RAN, ""), (RELEASED, "release_again")], 1),
    ],
)
def test_a_lease_that_ran_is_released_for_an_allowed_reason(happened: list[tuple[str, str]], wrong: int) -> None:
    assert len(list(verdict._healthy_releases(told(*happened)))) == wrong
