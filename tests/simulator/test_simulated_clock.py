import asyncio

from agent.simulator.simulated_clock import ScaledClock


async def test_a_still_clock_moves_when_told() -> None:
    clock = ScaledClock(1_000.0, speed=0.0)
    assert clock.time() == 1_000.0
    clock.advance(2.5)
    assert clock.time() == 1_002.5


async def test_a_still_clock_wakes_each_sleeper_at_its_own_time() -> None:
    clock = ScaledClock(0.0, speed=0.0)
    woken: list[float] = []

    async def wait(seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append(seconds)

    sleepers = [asyncio.ensure_future(wait(seconds)) for seconds in (30.0, 10.0, 20.0)]
    await asyncio.sleep(0)
    for _ in range(3):
        clock.advance(10.0)
        for _ in range(5):
            await asyncio.sleep(0)
    await asyncio.gather(*sleepers)
    assert woken == [10.0, 20.0, 30.0]


async def test_a_running_clock_runs_by_itself() -> None:
    clock = ScaledClock(speed=1_000_000.0)
    before = clock.time()
    await clock.sleep(100.0)
    assert clock.time() >= before + 100.0
