"""An image that a dstack server cannot read at the order is the workload's fault, not that of a cloud."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from agent.domain.record.hold import Word
from agent.simulator.dstack.model import Refused, Run
from tests.scenarios.test_dstack import running, server

AWAY = "Error pulling configuration for image 'ghcr.io/me/image:1' from the docker registry: Read timed out"
UNKNOWN = "Error pulling configuration for image 'ghcr.io/me/typo:1' from the docker registry: manifest unknown"
COMMANDLESS = "Could not determine what command to run. Please specify explicitly in run configuration"


def refusing(said: str) -> Callable[[Mapping[str, Any], str], Run]:
    """Return a server's answer to orders; the real server's words are in its `jobs/configurators/base.py`."""

    def refuse(spec: Mapping[str, Any], name: str) -> Run:
        del spec, name
        raise Refused(400, said, "error")

    return refuse


@pytest.mark.parametrize("said", [UNKNOWN, COMMANDLESS])
async def test_an_order_that_the_registry_does_not_know_is_held_as_its_own_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    async with running(tmp_path, command="", onstart="", max_failed_starts=3) as world:
        monkeypatch.setattr(server(world), "submit", refusing(said))
        await world.cycle(minutes=60)
        assert len(await world.events("intent.rejected")) == 3
        known = world.app.ledger.recollection(world.clock.now())
        assert [(str(each.target), each.word) for each in known.holds] == [("workload:train", Word.HELD)]
        assert not await world.events("protection.tripped"), "nor is the market"
        assert any(said[:40] in tally.ground for tally in known.tallies)


@pytest.mark.nightly
async def test_a_registry_that_is_away_holds_no_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(tmp_path, command="", onstart="", max_failed_starts=3) as world:
        monkeypatch.setattr(server(world), "submit", refusing(AWAY))
        await world.cycle(minutes=120)
        assert len(await world.events("intent.rejected")) > 3
        assert not world.app.ledger.recollection(world.clock.now()).holds


@pytest.mark.nightly
async def test_an_image_that_ran_is_not_at_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(tmp_path, command="", onstart="", max_failed_starts=2, slots=2) as world:
        await world.until(lambda: len(world.running()) == 2, minutes=60)
        monkeypatch.setattr(server(world), "submit", refusing(UNKNOWN))
        lost = server(world).runs[world.running()[0].instance_id]
        server(world).set_host_gone(lost.host.machine_id)
        await world.cycle(minutes=120)
        assert len(await world.events("intent.rejected")) > 2
        assert not world.app.ledger.recollection(world.clock.now()).holds
        assert len(world.running()) == 1, "nothing that runs is let go of"
