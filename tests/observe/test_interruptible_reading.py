"""An order interrupts the reading of a cycle, however slowly that reading unwinds and however many orders wait."""

import asyncio

import pytest

from agent.observe.interruptible_reading import InterruptibleReading, ReadingInterrupted


async def test_a_second_order_may_come_while_the_first_is_still_ending_the_reading() -> None:
    reading, reads, unwound = InterruptibleReading(), asyncio.Event(), asyncio.Event()

    async def slow_to_end() -> None:
        reads.set()
        try:
            await asyncio.Event().wait()
        finally:
            await unwound.wait()

    cycle = asyncio.create_task(reading.run(slow_to_end))
    await reads.wait()
    with reading.interrupted():
        # The reading was interrupted, and has not ended.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        with reading.interrupted():
            unwound.set()
            with pytest.raises(ReadingInterrupted):
                await cycle
    done = []

    async def step() -> None:
        done.append(True)

    await reading.run(step)
    assert done == [True]
