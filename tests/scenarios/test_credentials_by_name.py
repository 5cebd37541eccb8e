"""A workload's secrets reach its container and nothing that is kept: no ledger, no log, no decision."""

from pathlib import Path

import pytest
import structlog

from agent.domain.work.workload import ImageLogin
from tests.support.world import rehearsed, work

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


def _everything_in(directory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in directory.iterdir() if path.is_file())
