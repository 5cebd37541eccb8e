"""`gpubid kill` on a box of two: it ends nothing that another box may rent again, and waits for its own box to lead."""

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.simulator.vast.http.call_gate import DEFAULT_KEY
from tests.support import engines, launch, postgres, programs
from tests.support.boxes import Pair, pair, until_led, until_standing_by
from tests.support.engines import database
from tests.support.postgres import Server
from tests.support.programs import until
from tests.support.terminal import typed

__all__ = ["database"]
pytest.importorskip("psycopg")
pytestmark = pytest.mark.skipif(not postgres.is_here(), reason="PostgreSQL is not installed (make tools)")


@pytest.fixture
async def left(tmp_path: Path) -> AsyncIterator[tuple[Pair, Server]]:
    """Yield two boxes on which no daemon runs any more, while a lease bills, and their ledger's server."""
    with postgres.serving() as server:
        engines.make_role(server.url)
        async with pair(tmp_path, engines.role_url(server.url)) as two:
            async with two.daemon(0) as first:
                await until_led(first)
                await two.until_running(0)
            yield two, server


async def test_a_box_that_cannot_see_who_leads_ends_nothing_unless_a_person_says_so(
    left: tuple[Pair, Server],
) -> None:
    """It ended everything by label, without a question, and the leader on the other box rented it again."""
    two, server = left
    wrong = await programs.gpubid(two.places[0], "kill", "--yes", LEDGER_PASSWORD="of-last-year")
    server.kill()
    away = await two.gpubid(0, "kill", "--yes")
    unnamed = await programs.gpubid(two.places[0], "kill", "--yes", "--market", "vast", "--credential", "vast_api_key")
    for ran in (wrong, away, unnamed):
        assert (ran.code, "nothing was ended, because another box may lead" in ran.err) == (1, True), ran
        assert "`gpubid kill --by-label`" in ran.err
    assert len(await two.live()) == 1
    code, printed = typed(["kill", "--by-label"], two.places[0], ["y", "y"], key=DEFAULT_KEY)
    assert code == 0, printed
    assert not await two.live()


@pytest.mark.nightly
async def test_a_broken_configuration_of_a_ledger_on_a_server_ends_nothing_unless_a_person_says_so(
    left: tuple[Pair, Server],
) -> None:
    """With --market it ended everything by label, beside a leader on the other box that rented it again."""
    two, _ = left
    file = two.places[0] / "agent.toml"
    file.write_text(file.read_text() + "\n[limits\n")
    words = ["--market", f"vast={two.market.url}", "--credential", "vast_api_key"]
    ran = await programs.gpubid(two.places[0], "kill", "--yes", *words)
    assert (ran.code, "nothing was ended, because another box may lead" in ran.err) == (1, True), ran
    assert "agent.toml:" in ran.err, "the mistake of the file is named too"
    assert len(await two.live()) == 1
    code, printed = typed(["kill", "--by-label", *words], two.places[0], ["y", "y"], key=DEFAULT_KEY)
    assert code == 0, printed
    assert not await two.live()


async def test_a_kill_on_a_box_that_takes_the_lead_waits_for_its_daemon(tmp_path: Path, database: str) -> None:
    """It was refused with the advice to end by label, after which the opening daemon rented again."""
    import psycopg

    async with pair(tmp_path, database) as two, two.daemon(0) as first:
        await until_led(first)
        await two.until_running(0)
        async with two.daemon(1) as second:
            await until_standing_by(second)
            words = programs.environment(two.places[1], LEDGER_PASSWORD=postgres.PASSWORD)
            with psycopg.connect(database) as raw:
                raw.execute(f'LOCK TABLE "{two.schema}".intents IN ACCESS EXCLUSIVE MODE'.encode())
                first.process.send_signal(signal.SIGKILL)
                await until(lambda: any("this daemon leads" in line for line in second.messages()), "that it leads")
                kill = await launch.start("agent", "kill", "--yes", folder=two.places[1], environment=words)
                assert kill.stderr is not None
                said = await asyncio.wait_for(kill.stderr.readline(), programs.PATIENCE_SECONDS)
                assert b"asking it again" in said
                assert len(await two.live()) == 1
                raw.rollback()
            out, err = await asyncio.wait_for(kill.communicate(), programs.PATIENCE_SECONDS)
            assert kill.returncode == 0, (out, err)
            assert b"nothing is rented until `gpubid kill --lift`" in out
            assert not await two.live()
