"""A service kept warm through the whole plan: its leases follow the choice of `warm`, look by look."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import pytest

from agent.decide.service import capacity_choice, service_slots
from agent.domain.market.tenure import Tenure
from agent.domain.money import per_hour
from agent.domain.work.workload import Requirements, Workload, WorkloadKind
from agent.lab.engine.engine import Engine
from agent.lab.engine.lab_job import Job
from agent.lab.engine.lookahead_check import GPU, START
from agent.lab.engine.memory_market import Exchange, Pool
from agent.lab.traces.course import Course, Delays
from strategies.hedged import Hedged
from strategies.hedged_rules.params import HedgedParams
from tests.support import builders

MINUTE = timedelta(minutes=1)
SERVICE = Workload(
    name="serve",
    image="lab",
    max_price=per_hour("9.00"),
    strategy="hedged",
    requirements=Requirements(gpu_models=(GPU,)),
    image_gb=1.0,
    slots=4,
    kind=WorkloadKind.SERVICE,
    checkpoint=builders.workload().checkpoint,
)


class Lived:
    """A service on a course of ten-minute ticks, looked at every two minutes."""

    def __init__(self, available: Sequence[int], monkeypatch: pytest.MonkeyPatch, **params: Any) -> None:
        course = Course(START, 10 * MINUTE, tuple(available), (per_hour("1.00"),), per_hour("3.00"))
        pool = Pool(course, GPU, dlperfs=(100.0,) * 9, delays=Delays(median=60.0, spread=0.0))
        self.market = Exchange(pool, "seed", START, Job(1e6, MINUTE, MINUTE))
        numbers = HedgedParams(keep_warm=True, share_of_owner=1.0, **params)
        tuned = {"hedged": builders.tuned(Hedged(), numbers, "hedged")}
        self.engine = Engine(self.market, (SERVICE,), tuned, START)
        self.looks = len(available) * 5
        self.chosen: list[capacity_choice.Choice] = []
        asked = service_slots.choose

        def keep(*given: Any) -> service_slots.ServiceChoice:
            made = asked(*given)
            self.chosen.append(made.choice)
            return made

        monkeypatch.setattr(service_slots, "choose", keep)

    def cycles(self) -> Iterator[tuple[capacity_choice.Choice, Counter[Tenure]]]:
        """Yield after each look the last choice and the live leases; of a moving slot the new one."""
        for _ in range(self.looks):
            self.engine.cycle(self.market.now)
            live = sorted(
                (each for each in self.engine.book.leases.values() if each.is_live), key=lambda e: e.opened_at
            )
            yield self.chosen[-1], Counter(each.tenure for each in {each.slot: each for each in live}.values())
            self.market.advance(self.market.now + 2 * MINUTE)


@pytest.mark.parametrize(("worth", "at_last"), [(20.0, 3), (1.5, 0)])
def test_what_is_held_is_what_was_chosen_while_capacity_comes_and_goes(
    monkeypatch: pytest.MonkeyPatch, worth: float, at_last: int
) -> None:
    lived = Lived([9] * 3 + [0] * 2 + [9] * 4, monkeypatch, short_worth=worth)
    seen = list(lived.cycles())
    for chosen, held in seen:
        assert (sum(chosen.spots), chosen.on_demand) == (held[Tenure.INTERRUPTIBLE], held[Tenure.ON_DEMAND])
    on_demand = [held[Tenure.ON_DEMAND] for _, held in seen]
    assert on_demand[:15] == [0] * 15
    # Capacity goes at the fifteenth look, and on-demand is there in the same one.
    assert set(on_demand[15:25]) == {3}
    # Three losses in an hour: what an hour short is worth decides whether to come back.
    assert on_demand[-1] == at_last
