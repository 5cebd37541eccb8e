"""A workload's secrets reach its container and nothing that is kept: no ledger, no log, no decision."""

import dataclasses
from pathlib import Path

import pytest
import structlog

from agent.domain.record.cooldown import CooldownKind
from agent.domain.record.intent import IntentState
from agent.domain.work.decision import Hold
from agent.domain.work.order import Order
from agent.domain.work.workload import ImageLogin
from tests.support.world import rehearsed, strategies, work

SECRETS = {"hf_token": "hf-0123456789-secret", "ghcr_token": "ghcr-9876543210-secret"}
PRIVATE = work(
    env_from=(("HF_TOKEN", "hf_token"),), image_login=ImageLogin("ghcr.io", "me", "ghcr_token"), ports=(8000,)
)


async def test_secrets_leave_and_stay_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with rehearsed(tmp_path, workloads=(PRIVATE,)) as world:
        monkeypatch.setattr(world.app._executor._journal, "_credential", SECRETS.__getitem__)
        with structlog.testing.capture_logs() as logged:
            await world.until_running()
        assert world.contract().env["HF_TOKEN"] == SECRETS["hf_token"]
        lease = world.lease()
        assert lease.ports.startswith("22/tcp=")
        assert "8000/tcp=127.0.0.1:" in lease.ports
        assert lease.ssh_address
    kept = _everything_in(tmp_path)
    for secret in SECRETS.values():
        assert secret.encode() not in kept
        assert secret not in str(logged)


async def test_a_missing_credential_rents_nothing(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, workloads=(PRIVATE,)) as world:
        await world.cycle(minutes=5)
        assert world.contracts() == []
        assert not world.open_intents()
        refused = await world.events("intent.rejected")
        assert "no credential 'ghcr_token'" in refused[0].reason or "no credential 'hf_token'" in refused[0].reason


async def test_a_missing_credential_is_told_at_its_slot_and_takes_no_offer_from_other_work(tmp_path: Path) -> None:
    keyless = work("keyless", slots=2, env_from=(("HF_TOKEN", "hf_token"),))
    async with rehearsed(tmp_path, workloads=(keyless, work("good", slots=0))) as world:
        await world.cycle(minutes=60)
        known = world.app.ledger.recollection(world.clock.now())
        assert {each.kind for each in known.cooldowns} == {CooldownKind.SLOT}, "of no offer, and of no market"
        assert await world.events("protection.tripped") == []
        assert world.app.seen is not None
        for hold in world.app.seen.plan.decisions:
            assert isinstance(hold, Hold)
            assert "There is no credential 'hf_token' here" in hold.reason.sentence
        assert len(await world.events("intent.rejected")) <= 2 * 13, "each slot waits between two attempts"
        good = dataclasses.replace(world.config, workloads=(keyless, work("good")))
        world.app.reload(good, strategies())
        assert (await world.until_running(slots=1)).slot.workload == "good"


async def test_a_credential_that_is_there_again_is_used_after_the_cooldown_or_at_once_on_order(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, workloads=(PRIVATE,)) as world:
        await world.cycle(minutes=2)
        world.app._executor._journal._credential = SECRETS.__getitem__
        await world.app.say(Order("unlock", "slot:train/0"), "a person")
        done = await world.cycle()
        assert [intent.state for intent in done.done] == [IntentState.CONFIRMED]


def _everything_in(directory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in directory.iterdir() if path.is_file())
