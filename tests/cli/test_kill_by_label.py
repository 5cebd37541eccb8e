"""`gpubid kill` without a usable ledger or configuration: by label, twice seen, or nothing at all."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from agent.ledger.file.ledger_lock import LedgerLock
from tests.support import launch, programs
from tests.support.programs import LIVE, Market, gpubid, until

YEAR = 31_536_000


@pytest.fixture
async def left(tmp_path: Path) -> AsyncIterator[Market]:
    """Give a market on which a daemon that ended left a lease."""
    async with programs.market(tmp_path) as market:
        (tmp_path / "agent.toml").write_text(LIVE.format(url=market.url))
        async with programs.daemon(tmp_path) as daemon:
            await until(market.billing, "a rent")
            assert await daemon.stop() == 0
        yield market


def damage(place: Path) -> None:
    for suffix in ("-wal", "-shm"):
        (place / f"ledger.sqlite{suffix}").unlink(missing_ok=True)
    (place / "ledger.sqlite").write_bytes(b"this is no database, whatever its name says" * 100)


async def test_a_damaged_ledger_is_no_reason_to_go_on_paying(tmp_path: Path, left: Market) -> None:
    damage(tmp_path)
    ran = await gpubid(tmp_path, "kill")
    assert ran.code == 0, ran
    assert "is damaged or no ledger" in ran.err
    assert "are ended" in ran.err
    assert "none of this is recorded" in ran.err
    assert "nothing bills any more; this kill is not recorded: a daemon that starts rents again" in ran.out
    assert "kill --lift" not in ran.out
    assert await left.billing() == []


async def test_a_ledger_that_is_in_use_is_waited_for_and_records_the_kill(tmp_path: Path, left: Market) -> None:
    starting = LedgerLock(tmp_path / "ledger.sqlite")
    kill = await launch.start("agent", "kill", folder=tmp_path, environment=programs.environment(tmp_path))
    try:
        assert kill.stderr is not None
        assert b"asking it again" in await asyncio.wait_for(kill.stderr.readline(), programs.PATIENCE_SECONDS)
        assert await left.billing(), "nothing is ended by label beside that process"
    finally:
        starting.release()
        out, err = await asyncio.wait_for(kill.communicate(), programs.PATIENCE_SECONDS)
    assert kill.returncode == 0, (out, err)
    assert b"nothing is rented until `gpubid kill --lift`" in out
    assert await left.billing() == []


async def test_a_ledger_that_stays_in_use_refuses_the_kill_and_names_the_way_by_label(
    tmp_path: Path, left: Market
) -> None:
    stuck = LedgerLock(tmp_path / "ledger.sqlite")
    try:
        ran = await gpubid(tmp_path, "kill")
    finally:
        stuck.release()
    assert ran.code == 1, ran
    assert "nothing was ended; `gpubid kill --by-label` ends instances without that daemon" in ran.err
    assert ran.out == ""
    assert await left.billing()


@pytest.mark.parametrize("revision", ["9999", "0016"], ids=["a later release's", "of before the first"])
async def test_a_ledger_of_another_schema_tells_its_fleet_itself(tmp_path: Path, left: Market, revision: str) -> None:
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite")) as ledger:
        ledger.execute("UPDATE alembic_version SET version_num = ?", (revision,))
        ledger.commit()
    (tmp_path / "ledger.sqlite.fleet").unlink()
    ran = await gpubid(tmp_path, "kill")
    assert ran.code == 0, ran
    assert f"has schema {revision}" in ran.err
    assert await left.billing() == []


async def test_without_a_fleet_id_nothing_is_ended_and_the_fleets_are_shown(tmp_path: Path, left: Market) -> None:
    fleet = (tmp_path / "ledger.sqlite.fleet").read_text().strip()
    damage(tmp_path)
    (tmp_path / "ledger.sqlite.fleet").unlink()
    ran = await gpubid(tmp_path, "kill")
    assert ran.code == 3, ran
    assert fleet in ran.out
    assert "nothing was ended: give `gpubid kill --fleet ID`" in ran.err
    assert await left.billing()
    other = await gpubid(tmp_path, "kill", "--fleet", "000000000000")
    assert other.code == 0
    assert await left.billing(), "another fleet's"
    assert (await gpubid(tmp_path, "kill", "--fleet", fleet)).code == 0
    assert await left.billing() == []


async def test_an_unreadable_configuration_is_replaced_by_options(tmp_path: Path, left: Market) -> None:
    (tmp_path / "agent.toml").write_text('[ledger]\npath = "ledger.sqlite"\nthis is [no toml')
    ran = await gpubid(tmp_path, "kill")
    assert ran.code == 2
    assert "gpubid kill --market NAME --credential NAME_OR_FILE" in ran.err
    assert await left.billing()
    (tmp_path / "key").write_text("simulated-key")
    ran = await gpubid(tmp_path, "kill", "--market", f"vast={left.url}", "--credential", "key")
    assert ran.code == 0, ran
    assert await left.billing() == []


async def test_a_refused_release_is_a_pause_and_is_tried_again(tmp_path: Path, left: Market) -> None:
    damage(tmp_path)
    await left.weather("throttle_retry_after", route="DELETE /instances", retry_after=YEAR)
    ran = await gpubid(tmp_path, "kill", "--no-wait")
    assert ran.code == 1, ran
    assert "release throttled" in ran.out
    assert "pause confirmed" in ran.out
    states = {contract["status"] for contract in (await left.truth())["contracts"]}
    assert states == {"stopped"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--fleet", "nonsense"), "is not a fleet id"),
        (("--market", "mars", "--credential", "key"), "is none of"),
        (("--market", "vast"), "one --credential for each --market"),
    ],
    ids=["fleet", "market", "credential"],
)
async def test_options_that_make_no_sense(tmp_path: Path, arguments: tuple[str, ...], says: str) -> None:
    ran = await gpubid(tmp_path, "kill", *arguments)
    assert ran.code == 2
    assert says in ran.err
