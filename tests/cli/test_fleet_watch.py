"""`gpubid fleet --watch` for pipes: the table or a line of JSON after each change, over a real daemon's socket."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import launch, programs
from tests.support.programs import PATIENCE_SECONDS, gpubid, until


async def watching(place: Path, *arguments: str) -> launch.Process:
    """Start the verb."""
    environment = programs.environment(place)
    return await launch.start("agent", "fleet", "--watch", *arguments, folder=place, environment=environment)


async def line_of(process: launch.Process) -> str:
    assert process.stdout is not None
    return (await asyncio.wait_for(process.stdout.readline(), PATIENCE_SECONDS)).decode()


@pytest.mark.long(15)
async def test_a_line_of_json_a_change_until_the_daemon_ends_and_again_when_it_is_back(tmp_path: Path) -> None:
    async with programs.running(tmp_path) as (market, daemon):
        await until(market.billing, "a rent")
        process = await watching(tmp_path, "--json")
        try:
            first: dict[str, Any] = json.loads(await line_of(process))
            await market.advance(40)
            shown = first
            while shown["running"] == 0 or shown["last_cycle_at"] == first["last_cycle_at"]:
                shown = json.loads(await line_of(process))
            await daemon.stop()
            assert process.stderr is not None
            said = await asyncio.wait_for(process.stderr.readline(), PATIENCE_SECONDS)
            async with programs.daemon(tmp_path) as again:
                await again.until_told("READY=1")
                back = json.loads(await line_of(process))
        finally:
            process.kill()
            await process.wait()
    assert first["money"]["day_cap_dollars"] == 12.0
    assert shown["last_cycle_at"] > first["last_cycle_at"]
    assert b"the daemon ended; waiting" in said
    assert back["as_of"] > first["as_of"]


async def test_the_table_has_money_and_decisions_and_without_a_daemon_it_ends(tmp_path: Path) -> None:
    async with programs.running(tmp_path) as (market, daemon):
        await until(market.billing, "a rent")
        process = await watching(tmp_path)
        try:
            lines = [await line_of(process)]
            while not lines[-1].startswith("today $"):
                lines.append(await line_of(process))
        finally:
            process.kill()
            await process.wait()
        await daemon.stop()
    alone = await gpubid(tmp_path, "fleet", "--watch")
    assert lines[0].startswith("fleet at 20")
    assert any(line.startswith("train/0") for line in lines)
    assert " of $12.00, month $" in lines[-1]
    assert alone.code == 1
    assert "`gpubid run` starts it" in alone.err
    assert alone.out == ""
