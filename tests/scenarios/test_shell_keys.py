"""Public keys are registered with each running instance by the market's API, read back, and registered again."""

from pathlib import Path

from agent.cli.setup import doctor_keys
from agent.cli.setup.doctor_checks import Verdict
from agent.cli.shared import login_keys
from agent.domain.record.intent import IntentKind, IntentState
from agent.domain.record.lease import LeaseState
from agent.domain.work import public_key
from agent.domain.work.order import Order
from tests.support.world import Rehearsed, rehearsed, work

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHkxb0JtZUhlcmVJc05vS2V5QXRBbGxZZXQx me@box"
OTHER = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHkxb0JtZUhlcmVJc05vS2V5QXRBbGxZZXQy you@box"
WORK = work(ssh_keys=(KEY, OTHER))


def attached(world: Rehearsed) -> list[str]:
    keys = world.simulator.api._surface.attached_keys
    return list(keys.get(world.contract().contract_id, {}).values())


async def registered(world: Rehearsed) -> list[IntentState]:
    return [each.state for each in await world.intents(IntentKind.REGISTER_KEY)]


async def test_keys_are_registered_once_an_instance_runs_and_read_back(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, workloads=(WORK,)) as world:
        await world.until_running()
        await world.cycle(minutes=3)
        assert attached(world) == [KEY, OTHER]
        assert world.lease().has_keys
        [line] = await doctor_keys.keys(world.config)
        assert (line.verdict, "1 running instance(s) have them" in line.sentence) == (Verdict.OK, True)
        assert await registered(world) == [IntentState.CONFIRMED] * 2
        events = await world.events("lease.key_registered")
        assert [event.reason for event in events] == [
            f"register {public_key.fingerprint(key)} with the instance" for key in (KEY, OTHER)
        ]
        since = world.clock.time()
        await world.cycle(minutes=20)
        assert world.calls("POST", "/instances", since) == []
        assert world.calls("GET", f"/instances/{world.lease().instance_id}/ssh", since) == []


async def test_keys_that_vanish_are_registered_again(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, workloads=(WORK,)) as world:
        await world.until_running()
        await world.cycle(minutes=3)
        world.simulator.api._surface.attached_keys[world.contract().contract_id].clear()
        await world.cycle(minutes=35)
        assert attached(world) == [KEY, OTHER]
        assert world.lease().has_keys
        assert len(await registered(world)) == 4


async def test_keys_are_read_again_after_a_resume(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, workloads=(WORK,)) as world:
        await world.until_running()
        await world.cycle(minutes=3)
        await world.app.say(Order("pause", "train/0"), "a person")
        await world.cycle(minutes=1)
        world.simulator.api._surface.attached_keys[world.contract().contract_id].clear()
        await world.app.say(Order("resume", "train/0"), "a person")
        await world.until(lambda: world.lease().state is LeaseState.RUNNING)
        assert not world.lease().has_keys
        await world.cycle(minutes=3)
        assert attached(world) == [KEY, OTHER]
        assert world.lease().has_keys


async def test_key_that_the_market_does_not_take_is_tried_ever_less(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, workloads=(WORK,)) as world:
        world.weather("server_error_before", route="POST /instances/{id}/ssh")
        await world.until_running()
        await world.cycle(minutes=60)
        tries = await registered(world)
        assert 3 <= len(tries) <= 8
        assert set(tries) <= {IntentState.VOID, IntentState.IN_DOUBT}
        [line] = await doctor_keys.keys(world.config)
        assert (line.verdict, world.lease().lease_id in line.sentence) == (Verdict.WARN, True)
        assert not world.lease().has_keys
        world.still()
        await world.cycle(minutes=35)
        assert world.lease().has_keys


async def test_workload_without_keys_asks_for_none(tmp_path: Path) -> None:
    async with rehearsed(tmp_path) as world:
        await world.until_running()
        await world.cycle(minutes=3)
        assert world.calls("GET", f"/instances/{world.lease().instance_id}/ssh") == []


async def test_nothing_is_registered_on_an_instance_that_shows_another_label(tmp_path: Path) -> None:
    """Rule 18: a proven instance that shows another label is written to by a person alone."""
    async with rehearsed(tmp_path, workloads=(WORK,)) as world:
        world.is_checked = False
        await world.until_running()
        await world.cycle(minutes=3)
        world.simulator.api._surface.attached_keys[world.contract().contract_id].clear()
        world.market.set_label(world.contract().contract_id, "another's")
        since = world.clock.time()
        await world.cycle(minutes=40)
        assert world.calls("POST", "/instances", since) == []


async def test_nothing_is_registered_beside_a_second_daemon(tmp_path: Path) -> None:
    """Rules 5 and 7: whatever stops our writing stops this too."""
    async with rehearsed(tmp_path, workloads=(WORK,)) as world:
        await world.until_running()
        world.app.stop_writing("a second daemon")
        since = world.clock.time()
        await world.cycle(minutes=10)
        assert not world.lease().has_keys
        assert world.calls("POST", "/instances", since) == []


def test_the_way_in_force_is_said() -> None:
    assert "showed them at 10:00" in login_keys.sentence("vast", "10:00")
    assert "has not shown them" in login_keys.sentence("vast", None)
    assert "with the account alone" in login_keys.sentence("runpod", None)


def test_a_key_is_the_same_under_another_comment() -> None:
    assert public_key.missing((KEY, OTHER), (" ".join(KEY.split()[:2]) + " another",)) == (OTHER,)
    assert public_key.fingerprint(KEY).startswith("ssh-ed25519 SHA256:")
    assert public_key.fingerprint("ssh-rsa no*base64") == "ssh-rsa"
