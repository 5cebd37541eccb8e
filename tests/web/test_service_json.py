"""How many slots of a service are kept warm is what its strategy counts by."""

from agent.domain.slot_demand import Demand, DemandFrom, DemandReport
from agent.domain.work.workload import WorkloadKind
from agent.web.reading.workload_rows import service_json
from strategies.hedged import Hedged
from strategies.hedged_rules.params import HedgedParams
from tests.support import builders


def test_under_a_demand_the_wanted_slots_count_and_not_the_most() -> None:
    """`gpubid explain` said two in one line and three in the next."""
    work = builders.workload(slots=4, kind=WorkloadKind.SERVICE, demand=Demand(1, DemandFrom.HTTP))
    warm = HedgedParams(keep_warm=True, share_of_owner=1.0, share_of_market=1.0, spare_slots=1)
    reports = {"train": DemandReport(3, 3, builders.NOW, builders.ago(minutes=30))}
    fleet = builders.fleet(workloads=(work,), demand_reports=reports)
    (row,) = service_json.of(fleet, work, builders.tuned(Hedged(), warm, "hedged"))
    assert (row["needed"], row["sentence"]) == (2, "2 of its slots are kept warm")
