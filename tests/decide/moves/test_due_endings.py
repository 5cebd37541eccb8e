"""One order for each lease: the first one, unless a hard one must replace a pause."""

from agent.decide.moves import due_endings
from agent.domain.work.decision import Pause, Reason, Release
from tests.support import builders

LEASE = builders.lease(1)
SOFT, CAP = Pause(LEASE, Reason("paused", "a person")), Pause(LEASE, Reason("over_budget", "its cap"))
KILL = Release(LEASE, Reason("killed", "a person"))
GENTLE = Release(LEASE, Reason("window", "its window is over"))


def test_a_hard_order_replaces_a_pause_whatever_comes_first() -> None:
    for hard in (CAP, KILL):
        assert due_endings.orders((SOFT, hard)) == due_endings.orders((hard, SOFT)) == [hard]


def test_otherwise_the_first_order_stands() -> None:
    assert due_endings.orders((CAP, KILL)) == [CAP]
    assert due_endings.orders((SOFT, GENTLE)) == [SOFT]
    assert due_endings.orders((GENTLE, CAP)) == [GENTLE]
