"""One recorded situation under the whole plan() and under the bench's rule: both judge every place and choose alike."""

import numpy as np
import pytest

from agent.decide.service import availability_dial
from agent.lab.availability import availability_ticks, live_dial, own_rule, span
from tests.lab.planned_service import ASK, COLD, GAIN, POOLS, PRICES, STEP, Asked, Both, Planned


def recorded() -> span.Span:
    """Return a day and a half in which places come and go, one of them often."""
    lots = np.random.default_rng(7)
    rows = []
    for often in (0.4, 1.0, 3.0, 6.0):
        hours = lots.exponential(often, 400)
        up = [place % 3 < 2 for place, length in enumerate(hours) for _ in range(max(int(length * 30), 1))]
        rows.append(up[: 36 * 30])
    return span.Span(
        group="g",
        first=0,
        pools=POOLS,
        capacity=np.array(rows, dtype=np.int64),
        prices=np.repeat(np.array(PRICES)[:, None], len(rows[0]), axis=1),
        on_demand_price=ASK,
        step_seconds=STEP.total_seconds(),
        cold_steps=COLD,
        begins_hours=0.0,
    )


@pytest.mark.parametrize(("worth", "choices"), [(12.0, {(1, 0), (2, 0)}), (40.0, {(2, 0), (0, 1)})])
def test_the_plan_and_the_bench_judge_every_place_and_choose_alike(
    worth: float, choices: set[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    planned, day = Planned(short_worth=worth), recorded()
    rule = own_rule.Hedged(day, span.Setting(slots=1), worth=worth, least_gain=GAIN)
    both = Both(rule, planned, Asked(monkeypatch))
    availability_ticks.run(lambda *_: both, day, span.Setting(slots=1))
    assert planned.losses >= 5
    assert both.met >= choices, "the record must ask for every choice"


@pytest.mark.parametrize("target", [0.9, 0.99])
def test_a_live_dial_is_the_same_in_both(target: float, monkeypatch: pytest.MonkeyPatch) -> None:
    planned, day, setting = Planned(target=target), recorded(), span.Setting(slots=1)
    dial = live_dial.begun(day, setting, target, availability_dial.LAW, None)
    both = Both(own_rule.Hedged(day, setting, worth=dial, least_gain=GAIN), planned, Asked(monkeypatch))
    availability_ticks.run(lambda *_: both, day, setting)
    assert both.compared > 50
    lived = planned.warm["train"]
    assert [(each.wanted, each.short) for each in lived.stretches] == [
        (each.wanted, each.short) for each in dial.time.stretches
    ]
    assert lived.short_hours > 0.1
    assert dial.worth != pytest.approx(availability_dial.of(target, None).worth), "the dial must move"
