"""An order interrupts the reading of a cycle, however slowly that reading unwinds and however many orders wait."""

import asyncio

import pytest

from agent.observe.hurry import Hurried, Hurry


async def test_a_second_order_may_come_while_the_first_is_still_ending_the_reading() -> None:
    hurry, reads, unwound = Hurry(), asyncio.Event(), asyncio.Event()

    async def slow_to_end() -> None:
        reads.set()
        try:
            await asyncio.Event().wait()
        finally:
            await unwound.wait()

    cycle = asyncio.create_task(hurry.read(slow_to_end))
    await reads.wait()
    with hurry.waiting():
        # The reading has been told to end, and has not ended.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        with hurry.waiting():
            unwound.set()
            with pytest.raises(Hurried):
                await cycle
    done = []

    async def step() -> None:
        done.append(True)

    await hurry.read(step)
    assert done == [True]
