"""The market applied a rent and its answer was lost: the intent is in doubt, and the listing's label settles it."""

from pathlib import Path
from typing import Any

import pytest

from agent.domain.record.intent import IntentKind, IntentState
from agent.domain.record.lease import LeaseState
from tests.support.world import POLL, rehearsed

LOSSES: list[dict[str, Any]] = [
    {"fault": "server_error_after"},
    {"fault": "server_error_after", "status": 500},
    {"fault": "reset", "when": "after"},
    {"fault": "truncated"},
    {"fault": "malformed"},
    {"fault": "slow", "delay": 45},
]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: "-".join(str(value) for value in loss.values()))
async def test_lost_reply_rents_once(tmp_path: Path, loss: dict[str, Any]) -> None:
    async with rehearsed(tmp_path) as world:
        world.weather(route="PUT /asks", **loss)
        await world.cycle()

        assert len(world.live()) == 1, "the fault came before the rent; the story tells nothing"
        doubted = world.open_intents()
        assert [(intent.kind, intent.state) for intent in doubted] == [(IntentKind.RENT, IntentState.IN_DOUBT)]
        assert not world.leases()

        world.still()
        await world.cycle()
        lease = world.lease()
        assert lease.intent_id == doubted[0].intent_id
        assert lease.instance_id == str(world.contract().contract_id)
        await world.until_running()
        rents = await world.intents(IntentKind.RENT)
        assert [intent.state for intent in rents] == [IntentState.CONFIRMED]
        assert rents[0].outcome == "the listing shows its label"
        assert len(world.calls("PUT", "/asks")) == 1
        assert len(world.contracts()) == 1


async def test_doubt_blocks_its_slot_until_the_grace_is_over(tmp_path: Path) -> None:
    """The order never arrived: no second one leaves for ten minutes, and counts as spend until then."""
    async with rehearsed(tmp_path, poll=POLL) as world:
        weather = world.weather("server_error_before", route="PUT /asks")
        await world.cycle()
        sent = world.clock.time()
        world.simulator.weather.clear(weather)
        assert world.open_intents()[0].state is IntentState.IN_DOUBT

        done = await world.cycle()
        assert done.plan.standing.rate == world.open_intents()[0].rate
        assert done.plan.standing.instances == 1
        await world.cycle(minutes=9.5)
        assert len(world.calls("PUT", "/asks")) == 1, "a second rent left while the first was in doubt"
        assert not world.contracts()

        await world.until_running()
        rents = await world.intents(IntentKind.RENT)
        assert [intent.state for intent in rents] == [IntentState.VOID, IntentState.CONFIRMED]
        assert rents[1].recorded_at.timestamp() - sent >= 600
        assert len(world.contracts()) == 1


async def test_lost_reply_while_the_listing_lies(tmp_path: Path) -> None:
    """An empty listing that looks complete settles no doubt before the grace is over."""
    async with rehearsed(tmp_path) as world:
        world.weather("reset", when="after", route="PUT /asks", seconds=5)
        await world.cycle()
        assert len(world.live()) == 1
        world.weather("empty_list", route="GET /instances", seconds=570)
        await world.until_running()
        assert len(world.contracts()) == 1
        assert world.lease().state is LeaseState.RUNNING
