"""Public keys are registered with each running instance by the market's API, read back, and registered again."""

import asyncio
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from agent.cli.setup import doctor_keys
from agent.cli.setup.doctor_checks import Verdict
from agent.cli.shared import login_keys
from agent.domain.record import hold
from agent.domain.record.hold import OperatorHold, Word
from agent.domain.record.intent import IntentKind, IntentState
from agent.domain.record.lease import LeaseState
from agent.domain.work import public_key
from agent.domain.work.order import Order
from agent.pass_metrics import Figures
from agent.telemetry.metric_updates import Metrics
from tests.support.world import POLL, Rehearsed, rehearsed, work

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHkxb0JtZUhlcmVJc05vS2V5QXRBbGxZZXQx me@box"
OTHER = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHkxb0JtZUhlcmVJc05vS2V5QXRBbGxZZXQy you@box"
WORK = work(ssh_keys=(KEY, OTHER))


def attached(world: Rehearsed) -> list[str]:
    keys = world.simulator.api._surface.attached_keys
    return list(keys.get(world.contract().contract_id, {}).values())


async def registered(world: Rehearsed) -> list[IntentState]:
    return [each.state for each in await world.intents(IntentKind.REGISTER_KEY)]


async def test_keys_are_registered_once_an_instance_runs_and_read_back(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, workloads=(WORK,), poll=POLL) as world:
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
    async with rehearsed(tmp_path, workloads=(WORK,), poll=POLL) as world:
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


async def test_nothing_waits_for_a_registration_and_a_kill_meanwhile_stops_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A market that does not answer holds no turn: a cycle and an order of a person go on, and no doubt arises."""
    async with rehearsed(tmp_path, workloads=(WORK,)) as world:
        world.is_checked = False
        await world.until_running()
        answers, asked, add = asyncio.Event(), asyncio.Event(), world.app.keys._keys["vast"].add

        async def slow(instance_id: str, key: str) -> None:
            asked.set()
            await answers.wait()
            await add(instance_id, key)

        monkeypatch.setattr(world.app.keys._keys["vast"], "add", slow)
        await world.app.cycle()
        await asyncio.wait_for(asked.wait(), 60)
        await world.app.say(Order("pause", "train/0"), "a person")
        await world.app.cycle()
        assert await registered(world) == [IntentState.SENT], "it is under way, and no leftover of a crash"
        await world.app.say(Order("kill", "fleet:all"), "a person")
        answers.set()
        await world.app.keys.settle()
        assert await registered(world) == [IntentState.REJECTED], "by then the instance is released"
        await world.cycle(minutes=3)
        assert len(await registered(world)) == 1, "nothing more is sent under a kill"


async def test_a_key_is_denied_if_the_kill_comes_before_it_is_sent(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, workloads=(WORK,)) as world:
        await world.until_running()
        lease = world.lease()
        since = world.clock.time()
        ordered = asyncio.create_task(world.app.keys._order(lease, OTHER))
        async with world.app.ledger.transaction() as tx:
            tx.add_expiring(OperatorHold(Word.KILL, hold.EVERYTHING, world.clock.now(), "a person"))
        await ordered
        assert IntentState.DENIED in await registered(world)
        assert world.calls("POST", "/instances", since) == []


async def test_keys_that_stay_missing_raise_an_alert_until_they_are_there(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, workloads=(WORK,)) as world:
        registry = CollectorRegistry()
        figures = Figures(Metrics(registry, ["vast"], ["train"]))

        async def count() -> float | None:
            figures.see(world.app, await world.cycle())
            return registry.get_sample_value("gpubid_leases_without_keys", {"workload": "train"})

        world.weather("server_error_before", route="POST /instances/{id}/ssh")
        await world.until_running()
        await world.cycle(minutes=12)
        assert await count() == 0.0
        assert await world.events("alert.keys_missing") == []
        await world.cycle(minutes=8)
        (alert,) = await world.events("alert.keys_missing")
        assert alert.reason.startswith("train/0 runs at $")
        assert "but vast has not shown its ssh keys for 15 min; `gpubid doctor` names such instances" in alert.reason
        assert await count() == 1.0
        world.still()
        await world.cycle(minutes=35)
        assert world.lease().has_keys
        assert await count() == 0.0


async def test_a_market_in_the_dark_shows_no_keys_and_raises_no_alert(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, workloads=(WORK,)) as world:
        world.weather("server_error_before", route="POST /instances/{id}/ssh")
        await world.until_running()
        world.weather("server_error_before")
        await world.cycle(minutes=40)
        assert await world.events("alert.keys_missing") == []


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
