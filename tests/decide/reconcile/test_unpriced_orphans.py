"""A stopped instance of ours without a readable price is adopted as stopped, and its start counts at our price."""

from datetime import timedelta

import msgspec
import pytest

from agent.decide import plan
from agent.decide.facts import InstanceFound, LeaseChanged
from agent.decide.limits import limits
from agent.decide.reconcile import reconcile
from agent.decide.reconcile.pass_memory import Memory
from agent.domain.market.instance import InstanceState
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.decision import Resume
from agent.domain.work.workload import Checkpoint, CheckpointPlace
from agent.markets import registered_markets
from strategies.patient import Patient, PatientParams
from tests.support import builders

RULES = registered_markets.record("runpod").rules
POOL = "pool/SECURE/RTX/EU"


@pytest.mark.parametrize("place", list(CheckpointPlace))
def test_it_is_seen_as_stopped_and_never_released_as_a_start_that_takes_too_long(place: CheckpointPlace) -> None:
    """Its row was never read back, so it counted as starting, and went with its disk after forty minutes."""
    work = builders.workload(checkpoint=Checkpoint(place=place))
    row = builders.instance(
        1,
        market="runpod",
        host_id=POOL,
        state=InstanceState.PAUSED,
        tenure=Tenure.ON_DEMAND,
        gpu_rate=UsdPerHour(0),
        unread=frozenset({"gpu_rate"}),
        is_wanted_running=False,
        created_at=builders.ago(hours=9),
    )
    label = builders.label(1)
    seen = builders.view(
        market="runpod",
        instances=(row,),
        looked_up=frozenset({"1"}),
        looked_rows={"1": row},
        labels={"1": label},
        looks={"1": label},
        rules=RULES,
    )
    memory, leases = Memory(), tuple[Lease, ...]()
    for number in range(400):
        now = builders.NOW + timedelta(seconds=20 * number)
        view = msgspec.structs.replace(seen, listed_at=now)
        fleet = builders.fleet(
            now=now, started_at=builders.NOW, workloads=(work,), markets={"runpod": view}, leases=leases
        )
        done = reconcile.reconcile(fleet, memory)
        memory = done.memory
        for fact in done.facts:
            if isinstance(fact, InstanceFound):
                assert fact.verdict == "adopt"
                assert fact.lease is not None
                leases = (fact.lease,)
            elif isinstance(fact, LeaseChanged):
                leases = (fact.after,)
    (lease,) = leases
    assert lease.state is LeaseState.PAUSED
    tuned = {"patient": builders.tuned(Patient(), PatientParams(), "patient")}
    cap = limits.Limits(per_instance_hour=builders.per_hour("0.10"))
    made = plan.plan(msgspec.structs.replace(fleet, leases=leases), tuned, cap).decisions
    assert not [each for each in made if isinstance(each, Resume)], "it passed the cap as if it cost nothing"
    assert lease.most_gpu_rate == work.price_of(lease.gpu) - lease.disk_rate
