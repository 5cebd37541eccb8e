"""`gpubid ssh` and `gpubid logs`: a person gets to the container, through the daemon and without it."""

import asyncio
from pathlib import Path

import pytest

from agent.clock import SystemClock
from agent.decide.reconcile.probes import probing
from agent.ledger.store import Ledger
from agent.simulator.vast.http.call_gate import DEFAULT_KEY
from agent.web.reading import container_logs, lease_address
from tests.support import builders, launch, programs
from tests.support.configs import GOOD
from tests.support.programs import gpubid, until

PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHkxb0JtZUhlcmVJc05vS2V5QXRBbGxZZXQx me@box"


@pytest.mark.long(34)
async def test_ssh_and_logs_of_a_running_slot(tmp_path: Path) -> None:
    told = f'ssh_keys = ["{PUBLIC_KEY}"]\n[workloads.train.env]\nSIM_READY_LINE = "the key is {DEFAULT_KEY}"\n'
    async with programs.running(tmp_path, config=programs.LIVE + told) as (market, daemon):
        await until(market.billing, "a rent")

        async def address() -> str:
            return str((await gpubid(tmp_path, "fleet", "--json")).json["leases"][0]["ssh"] or "")

        await until(address, "an address")
        [lease] = (await gpubid(tmp_path, "fleet", "--json")).json["leases"]
        assert lease["ssh"].startswith("ssh -p ")
        assert lease["ports"]["22/tcp"]
        said = await gpubid(tmp_path, "ssh", "train/0", "--print", "nvidia-smi")
        assert said.out == f"{lease['ssh']} nvidia-smi\n"
        through = await gpubid(tmp_path, "logs", "train", "--lines", "5")
        assert "started" in through.out
        await _follow(tmp_path, market)

        async def keys_seen() -> str:
            return str((await gpubid(tmp_path, "fleet", "--json")).json["leases"][0]["keys_seen_at"] or "")

        await until(keys_seen, "the key on the instance")
        assert (await gpubid(tmp_path, "logs", "train", "--previous")).code == 2, "only its present run has a log"
        assert (await gpubid(tmp_path, "pause", "train/0")).code == 0

        async def kept() -> programs.Ran | None:
            ran = await gpubid(tmp_path, "logs", "train", "--previous", "--json")
            return ran if ran.code == 0 and "step 3" in ran.out else None

        before = (await until(kept, "a kept log")).json
        assert DEFAULT_KEY not in str(before)
        assert any("the key is [redacted]" in line for line in before["lines"])
        daemon.process.kill()
        await daemon.ended()
        alone = await gpubid(tmp_path, "logs", "train/0", "--json")
        assert alone.json["lease"] == lease["lease"]
        assert any("started" in line for line in alone.json["lines"])
        stopped = await gpubid(tmp_path, "logs", "train/0", "--lease", lease["lease"], "--json")
        assert stopped.json["lines"][: len(before["lines"])] == before["lines"]
        assert DEFAULT_KEY not in (await gpubid(tmp_path, "logs", "train/0", "--previous", "-n", "1")).out
        assert "logs too" in (await gpubid(tmp_path, "ledger", "backup", "copy.sqlite")).out
        restored = await gpubid(tmp_path, "ledger", "restore", "copy.sqlite", "--replace")
        assert "are unchanged: a backup has no logs" in restored.out
        assert (await gpubid(tmp_path, "logs", "train/0", "--follow", "--previous")).code == 2
        assert (await gpubid(tmp_path, "logs", "nobody/0")).code == 1
        assert (await gpubid(tmp_path, "ssh", "nobody/0", "--print")).code == 2


async def test_a_log_without_output_is_called_empty(tmp_path: Path) -> None:
    async with programs.running(tmp_path) as (market, _):
        (contract,) = await until(market.billing, "a rent")
        ran = await gpubid(tmp_path, "logs", "train/0")
        assert ran.code == 0
        assert f"vast-{contract} (train/0) has printed nothing yet; `gpubid fleet` shows its state" in ran.err
        assert not ran.out.strip()


async def _follow(place: Path, market: programs.Market) -> None:
    """Read on as the container prints: every line once, and none of the lines before again."""
    words = ("logs", "train/0", "--follow", "--lines", "3")
    process = await launch.start("agent", *words, folder=place, environment=programs.environment(place), stderr=None)
    try:
        assert process.stdout is not None
        said = [await asyncio.wait_for(process.stdout.readline(), programs.PATIENCE_SECONDS)]
        await market.advance(180)
        while b"step 3" not in said[-1]:
            said.append(await asyncio.wait_for(process.stdout.readline(), programs.PATIENCE_SECONDS))
        assert len(set(said)) == len(said), "a line was printed twice"
    finally:
        process.kill()
        await process.wait()


@pytest.mark.parametrize("address", ["", "host", "-oProxyCommand=x:22", "a b:22", "host:", "ho;st:1", "$(x):22"])
def test_what_is_no_address_is_never_run(address: str) -> None:
    assert lease_address.ssh(builders.lease(ssh_address=address)) is None


def test_ports_are_told_apart() -> None:
    held = builders.lease(ssh_address="ssh4.vast.ai:10022", ports="22/tcp=1.2.3.4:40022 80/tcp=[::1]:40080")
    assert lease_address.ssh(held) == ["ssh", "-p", "10022", "root@ssh4.vast.ai"]
    assert lease_address.ports(held) == {"22/tcp": "1.2.3.4:40022", "80/tcp": "[::1]:40080"}


@pytest.mark.parametrize(
    ("before", "now", "new"),
    [
        ([], ["a", "b"], ["a", "b"]),
        (["a", "b"], ["a", "b", "c"], ["c"]),
        (["a", "b"], ["b", "c"], ["c"]),
        (["a", "a"], ["a", "a"], []),
        (["a", "b"], ["x", "y"], ["x", "y"]),
    ],
)
def test_only_new_lines_are_printed(before: list[str], now: list[str], new: list[str]) -> None:
    assert probing.news(before, now) == new


def test_a_name_means_the_lease_that_runs() -> None:
    old, new = builders.lease(1), builders.lease(2)
    assert container_logs.lease_of("train", [old, new]) is new
    assert container_logs.lease_of("vast-1", [old, new]) is old
    assert container_logs.lease_of("train/7", [old, new]) is None


async def test_a_market_without_addresses_is_told_with_its_own_way_to_a_shell(tmp_path: Path) -> None:
    (tmp_path / "agent.toml").write_text(GOOD + "[ledger]\npath = 'ledger.sqlite'\n")
    ledger = await Ledger.open(tmp_path / "ledger.sqlite", clock=SystemClock())
    async with ledger.transaction() as tx:
        tx.open_lease(builders.lease(market="dstack", intent_id="0123456789abcdef"))
    await ledger.close()
    said = await gpubid(tmp_path, "ssh", "train/0", "--print")
    assert said.code == 1, said
    assert "dstack gives train/0 no address" in said.err
    assert "ends with -0123456789abcdef; `dstack attach RUN`" in " ".join(said.err.split())
