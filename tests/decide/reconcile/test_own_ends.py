"""A container that ended by itself: of a batch that is judged later, of a service it is a loss."""

import pytest

from agent.decide.facts import LeaseChanged
from agent.domain.market.instance import InstanceState
from agent.domain.market.interruption import Cause
from agent.domain.work.workload import WorkloadKind
from tests.support import builders
from tests.support.listings import changed, seen


@pytest.mark.parametrize(("kind", "event"), [("batch", "lease.exited"), ("service", "lease.interrupted")])
def test_the_own_end_of_a_batch_is_no_interruption_and_that_of_a_service_is_one(kind: str, event: str) -> None:
    work, row = builders.workload(kind=WorkloadKind(kind)), builders.instance(state=InstanceState.EXITED)
    first = seen(builders.lease(), row, work=work)
    fact: LeaseChanged = changed(seen(builders.lease(), row, at=1, memory=first.memory, work=work))
    assert (fact.kind, fact.cause) == (event, Cause.CONTAINER_EXIT)
