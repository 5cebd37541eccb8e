"""An image that a dstack server cannot read at the order is the workload's fault, not that of a cloud."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agent.domain.record.cooldown import CooldownKind
from agent.domain.record.hold import Word
from agent.simulator.dstack.model import Refused, Run
from tests.scenarios.test_dstack import running, server

UNKNOWN = "Error pulling configuration for image 'ghcr.io/me/typo:1' from the docker registry: manifest unknown"
COMMANDLESS = "Could not determine what command to run. Please specify explicitly in run configuration"


@pytest.mark.parametrize("said", [UNKNOWN, COMMANDLESS])
async def test_an_order_that_the_registry_does_not_know_is_held_as_its_own_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    """The real server asks the registry if an order has no command; its words are in `jobs/configurators/base.py`."""

    def asks_registry(spec: Mapping[str, Any], name: str) -> Run:
        del spec, name
        raise Refused(400, said, "error")

    async with running(tmp_path, command="", onstart="", max_failed_starts=3) as world:
        monkeypatch.setattr(server(world), "submit", asks_registry)
        await world.cycle(minutes=60)
        assert len(await world.events("intent.rejected")) == 3
        known = world.app.ledger.recollection(world.clock.now())
        assert [(str(each.target), each.word) for each in known.holds] == [("workload:train", Word.HELD)]
        assert not [each for each in known.cooldowns if each.kind is CooldownKind.OFFER], "no offer is at fault"
        assert not await world.events("protection.tripped"), "nor is the market"
        assert any(said[:40] in tally.ground for tally in known.tallies)
