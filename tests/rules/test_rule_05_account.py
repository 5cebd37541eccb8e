"""Rule 5: the account id is stored with the ledger; a key of another account writes nothing and ends the program."""

import asyncio
import contextlib
import dataclasses
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.ledger.ledger_errors import Code, LedgerError
from tests.support.losses import seeds
from tests.support.world import Rehearsed, Scene, play, rehearsed


@given(seed=seeds, minutes=st.sampled_from([0, 1, 30]), restart=st.booleans(), rival=st.booleans())
def test_a_key_of_another_account_writes_nothing(seed: int, minutes: float, *, restart: bool, rival: bool) -> None:
    async def story(world: Rehearsed) -> None:
        await world.cycle(minutes)
        orders, contract = len(world.orders), world.contract()
        world.weather("wrong_account")
        if rival:
            world.rival(contract.slice.machine_id)
        with pytest.raises(LedgerError) as refused:
            await (world.restart() if restart else world.cycle(minutes=15))
        assert refused.value.code is Code.WRONG_ACCOUNT
        for _ in range(30 if world.is_open else 0):
            with contextlib.suppress(LedgerError):
                await world.app.cycle()
            world.clock.advance(15)
        assert len(world.orders) == orders
        assert contract.ended is None
        if not world.is_open:
            world.still()
            await world.open()
        assert str(contract.contract_id) in {lease.instance_id for lease in world.leases()}

    play(story, seed=seed)


@given(seed=seeds)
def test_one_wrong_answer_does_not_end_the_daemon(seed: int) -> None:
    async def story(world: Rehearsed) -> None:
        lease = await world.until_running()
        orders = len(world.orders)
        # The account is read with the listing at least every ten minutes, and again right after the cycle.
        for _ in range(10):
            world.weather("wrong_account")
            await world.cycle()
            world.still()
            await world.cycle(minutes=4)
        assert len(world.orders) == orders
        assert [each.lease_id for each in world.leases()] == [lease.lease_id]
        assert [poller.view.no_spend_because for poller in world.app.pollers] == [""]

    play(story, seed=seed)


@given(seed=seeds)
def test_a_ledger_is_not_used_for_another_market_account(seed: int) -> None:
    """The same ledger before another account's market: refused before anything is asked or ordered."""

    async def story(directory: Path) -> None:
        async with rehearsed(directory, seed=seed) as world:
            await world.cycle()
        other = Rehearsed(directory, dataclasses.replace(Scene(), seed=seed + 1))
        assert other.market.account_id != world.market.account_id
        async with other.simulator:
            with pytest.raises(LedgerError) as refused:
                await other.open()
        assert refused.value.code is Code.WRONG_ACCOUNT
        assert not other.orders

    with tempfile.TemporaryDirectory(prefix="gpubid-rules-") as directory:
        asyncio.run(story(Path(directory)))
