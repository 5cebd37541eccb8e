"""The instance is not as ordered: it is read back and released at once."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agent.domain.market.tenure import Tenure
from agent.domain.record.intent import IntentKind
from agent.simulator.vast.model import Contract
from tests.support.world import rehearsed


def _lose_the_price(contract: Contract) -> None:
    contract.bid = None


def _raise_the_price(contract: Contract) -> None:
    assert contract.bid is not None
    contract.bid *= 1.5


def _swell_the_disk(contract: Contract) -> None:
    contract.disk_gb = 400.0


SPOILS = [
    (_lose_the_price, "mismatch: it is on_demand instead of interruptible"),
    (_raise_the_price, "mismatch: it costs"),
    (_swell_the_disk, "mismatch: its disk has 400 GB"),
]


@pytest.mark.parametrize(("spoil", "said"), SPOILS, ids=["price omitted", "price above the bid", "disk"])
@pytest.mark.parametrize("is_lost", [False, True], ids=["answered", "reply lost"])
async def test_mismatch_is_released(
    tmp_path: Path, spoil: Callable[[Contract], None], said: str, *, is_lost: bool
) -> None:
    async with rehearsed(tmp_path) as world:
        if is_lost:
            world.weather("reset", when="after", route="PUT /asks", seconds=1)
        await world.cycle()
        spoilt = world.contract()
        spoil(spoilt)

        done = await world.cycle()
        assert [intent.kind for intent in done.done] == [IntentKind.RELEASE]
        assert spoilt.ended is not None
        known = world.app.ledger.recollection(world.clock.now()).cooldowns
        assert {"market:vast", f"host:vast/{spoilt.slice.machine_id}"} <= {str(each) for each in known}
        await world.until_running(minutes=90)
        await world.cycle(minutes=1)
        first, second = await world.past_leases()
        assert first.end_reason.startswith(said)
        assert second.tenure is Tenure.INTERRUPTIBLE
        assert second.host_id != first.host_id, "rented again where it just went wrong"


async def test_as_asked_for_is_kept(tmp_path: Path) -> None:
    """A bid capped at the ask costs less than was bid; less is no mismatch."""
    async with rehearsed(tmp_path) as world:
        await world.cycle()
        contract = world.contract()
        assert contract.bid is not None
        contract.bid *= 0.9
        await world.until_running()
        assert world.contract() is contract
