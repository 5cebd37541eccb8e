"""kill -9 of the real process at every step of the journal, for every kind of write; then it is started again.

Whatever had been recorded, sent, answered or written down: one lease per slot, the right spend, nothing billing that
nobody knows, and no paying order twice. The last three are held by the world after every cycle.
"""

from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from agent.domain.record.intent import IntentKind, IntentState
from agent.domain.record.lease import LeaseState
from tests.support.process import die
from tests.support.scene import heavy, work
from tests.support.world import POLL, Rehearsed, rehearsed

STEPS = ["recorded", "sent", "replied", "resolved"]
SetUp = Callable[[Rehearsed], Awaitable[None]]


async def _before_rent(world: Rehearsed) -> None:
    del world


async def _before_rebid(world: Rehearsed) -> None:
    held = await world.until_running()
    await world.cycle(minutes=30)
    world.rival(int(held.host_id), bid=held.gpu_rate.dollars * 1.2)


async def _before_pause(world: Rehearsed) -> None:
    """Displaced: the start of the old lease is cancelled before another is rented."""
    held = await world.until_running()
    await world.cycle(minutes=30)
    world.rival(int(held.host_id))


async def _before_release(world: Rehearsed) -> None:
    """On the way to another host: the old lease goes when the new one runs."""
    await _before_pause(world)
    await world.until(lambda: len(world.live()) == 2)


async def _before_resume(world: Rehearsed) -> None:
    """The account was empty and everything stopped; then a deposit came."""
    await world.until_running()
    empty = world.weather("no_credit")
    await world.until(lambda: world.lease().state is LeaseState.PAUSED)
    world.simulator.weather.clear(empty)


SET_UPS: dict[IntentKind, SetUp] = {
    IntentKind.RENT: _before_rent,
    IntentKind.REBID: _before_rebid,
    IntentKind.RESUME: _before_resume,
    IntentKind.PAUSE: _before_pause,
    IntentKind.RELEASE: _before_release,
}
AFTER = {
    "recorded": [IntentState.VOID, IntentState.CONFIRMED],
    "sent": [IntentState.VOID, IntentState.CONFIRMED],
    "replied": [IntentState.CONFIRMED],
    "resolved": [IntentState.CONFIRMED],
}
"""What becomes of a paying intent: one that never reached the market is void and made anew, any other is confirmed."""


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("kind", SET_UPS, ids=lambda kind: kind.value)
async def test_kill_then_restart(tmp_path: Path, kind: IntentKind, step: str) -> None:
    # Where another host costs more than a raise, the bid is raised.
    asked_for = heavy() if kind is IntentKind.REBID else work()
    async with rehearsed(tmp_path, workloads=(asked_for,), is_wired=True, poll=POLL) as world:
        await SET_UPS[kind](world)
        known = {intent.intent_id for intent in await world.intents(kind)}
        await world.close()
        arrived = sum(order.kind is kind for order in world.orders)

        await die(world, f"{step}:{kind.value}")
        reached = sum(order.kind is kind for order in world.orders) - arrived
        assert reached == (0 if step in {"recorded", "sent"} else 1)

        await world.open()
        await world.until_running(minutes=60)
        await world.cycle(minutes=20)
        lease = world.lease()
        assert lease.state is LeaseState.RUNNING
        assert [str(contract.contract_id) for contract in world.live()] == [lease.instance_id]
        assert not world.open_intents()
        if kind.is_paying:
            intents = [intent for intent in await world.intents(kind) if intent.intent_id not in known]
            assert Counter(intent.state for intent in intents) == Counter(AFTER[step])
            assert sum(order.kind is kind for order in world.orders) - arrived == 1, "ordered again what was done"


async def test_killed_at_one_step_after_another(tmp_path: Path) -> None:
    """Each restart dies a step later: still one contract per intent and one lease per slot in the end."""
    async with rehearsed(tmp_path, is_wired=True, poll=POLL) as world:
        await world.close()
        for turn, step in enumerate(["recorded", "recorded", "sent", "replied"]):
            await die(world, f"{step}:rent", ids=f"child {turn}")
        await world.open()
        await world.until_running()
        await world.cycle(minutes=15)
        states = [intent.state for intent in await world.intents(IntentKind.RENT)]
        assert states == [IntentState.VOID, IntentState.VOID, IntentState.VOID, IntentState.CONFIRMED]
        assert len(world.contracts()) == 1
        assert sum(order.kind is IntentKind.RENT for order in world.orders) == 1


async def test_killed_while_a_key_is_registered(tmp_path: Path) -> None:
    """It pays for nothing and may be sent again: in the end the key is there, and no intent stays open."""
    key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHkxb0JtZUhlcmVJc05vS2V5QXRBbGxZZXQx me@box"
    async with rehearsed(tmp_path, workloads=(work(ssh_keys=(key,)),), is_wired=True, poll=POLL) as world:
        await world.until_running()
        await world.close()
        for turn, step in enumerate(["sent", "replied"]):
            await die(world, f"{step}:{IntentKind.REGISTER_KEY.value}", ids=f"child {turn}")
            world.simulator.api._surface.attached_keys.clear()
        await world.open()
        await world.cycle(minutes=3)
        keys = world.simulator.api._surface.attached_keys[world.contract().contract_id]
        assert list(keys.values()) == [key]
        assert world.lease().has_keys
        states = [intent.state for intent in await world.intents(IntentKind.REGISTER_KEY)]
        assert states == [IntentState.VOID, IntentState.VOID, IntentState.CONFIRMED]
