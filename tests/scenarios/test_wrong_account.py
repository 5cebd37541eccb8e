"""The key belongs to another account: nothing is ordered with it, nothing is believed gone, and the program stops."""

from pathlib import Path

import pytest

from agent.domain.record.lease import LeaseState
from agent.ledger.ledger_errors import Code, LedgerError
from tests.support import engines
from tests.support.world import rehearsed


async def test_key_changes_while_running(tmp_path: Path) -> None:
    async with rehearsed(tmp_path) as world:
        await world.until_running()
        contract, orders = world.contract(), len(world.orders)
        world.weather("wrong_account")
        with pytest.raises(LedgerError) as refused:
            await world.cycle(minutes=10)
        assert refused.value.code is Code.WRONG_ACCOUNT
        for _ in range(20):
            with pytest.raises(LedgerError):
                await world.app.cycle()
            world.clock.advance(15)
        assert len(world.orders) == orders
        assert world.lease().state is not LeaseState.ENDED, "the other account's look-up proved ours gone"
        assert contract.ended is None


async def test_start_with_the_key_of_another_account(tmp_path: Path) -> None:
    async with rehearsed(tmp_path) as world:
        await world.until_running()
        orders = len(world.orders)
        world.weather("wrong_account")
        with pytest.raises(LedgerError) as refused:
            await world.restart()
        assert refused.value.code is Code.WRONG_ACCOUNT
        assert len(world.orders) == orders


async def test_account_that_cannot_be_read_pays_for_nothing(tmp_path: Path) -> None:
    """Whose money it is was never seen: nothing is rented until it is."""
    async with rehearsed(tmp_path) as world:
        await world.close()
        engines.lose(world.config.ledger)
        weather = world.weather("server_error_before", route="/users/current")
        await world.open()
        await world.cycle(minutes=5)
        assert not world.orders
        world.simulator.weather.clear(weather)
        await world.until_running()
