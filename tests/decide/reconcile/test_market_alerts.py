"""What a lease comes to cost more without our doing."""

from agent.decide.facts import Alert, LeaseChanged
from agent.decide.reconcile import reconcile
from agent.decide.reconcile.pass_memory import Memory
from agent.domain.fleet import Fleet
from agent.domain.market.interruption import MarketEventKind
from agent.domain.market.tenure import Tenure
from tests.support import builders


def world(charged: str, tenure: Tenure = Tenure.ON_DEMAND, instance_id: str = "1") -> Fleet:
    held = builders.lease(tenure=tenure, gpus=2, gpu_rate=builders.per_hour("0.40"), ends_at=builders.NOW)
    row = builders.instance(tenure=tenure, gpu_rate=builders.per_hour(charged))
    asked = builders.event(MarketEventKind.PRICE_RISE, instance_id=instance_id, new_rate=builders.per_hour("0.30"))
    view = builders.view(instances=(row,), rises=(asked,))
    return builders.fleet(workloads=(builders.workload(),), markets={"vast": view}, leases=(held,))


def alerts(fleet: Fleet) -> list[Alert]:
    return [fact for fact in reconcile.reconcile(fleet, Memory()).facts if isinstance(fact, Alert)]


def test_a_pending_rise_is_told_with_what_all_gpus_would_cost() -> None:
    (alert,) = alerts(world("0.40"))
    assert alert.code == "price_rise"
    assert "asks for a new price of $0.6000/h" in alert.sentence
    assert f"the lease ends on {builders.NOW:%Y-%m-%d %H:%M} UTC" in alert.sentence


def test_a_rise_of_somebody_elses_instance_is_none_of_ours() -> None:
    assert alerts(world("0.40", instance_id="77")) == []


def test_an_on_demand_lease_that_costs_more_is_an_event_and_a_bid_is_our_own_doing() -> None:
    def kinds(fleet: Fleet) -> list[str]:
        facts = reconcile.reconcile(fleet, Memory()).facts
        return [fact.kind or "" for fact in facts if isinstance(fact, LeaseChanged)]

    assert kinds(world("0.45")) == ["lease.repriced"]
    assert kinds(world("0.35")) == [""]
    assert kinds(world("0.45", Tenure.INTERRUPTIBLE)) == [""]
