"""A live strategy that raises.

Nothing more is paid for, the cycle reports its failure, and necessary endings happen.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from agent.decide.limits.limits import Limits
from agent.decide.strategy import Params, Proposal, Tuned, View
from agent.domain import money
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import LeaseState
from strategies.patient import Patient, PatientParams
from tests.support.world import rehearsed


class Fickle:
    """Decides as patient does until it is broken."""

    params: ClassVar[type[Params]] = PatientParams
    is_broken = False

    def propose(self, view: View, params: Any) -> Sequence[Proposal]:
        if self.is_broken:
            raise RuntimeError("broken")
        return Patient().propose(view, params)


async def test_a_budget_is_kept_although_the_strategy_raises(tmp_path: Path) -> None:
    fickle = Fickle()
    tuned = {"patient": Tuned("patient", fickle, PatientParams(), "f")}
    async with rehearsed(tmp_path, tuned=tuned) as world:
        await world.until_running()
        await world.cycle(minutes=10)
        fickle.is_broken = True
        with pytest.raises(RuntimeError, match="broken"):
            await world.cycle()
        assert world.lease().state is LeaseState.RUNNING, "nothing has to end yet"
        world.app.rules = replace(world.app.rules, caps=Limits(per_day=money.usd("0.0001")))
        with pytest.raises(RuntimeError, match="broken"):
            await world.cycle()
        assert world.lease().paused_by_us
        assert world.orders[-1].kind is IntentKind.PAUSE
