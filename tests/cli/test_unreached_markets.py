"""Orders without a daemon where a market lacks its key or table: what the others have ends, and the rest is named."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.simulator.vast.http.call_gate import DEFAULT_KEY
from tests.support import programs
from tests.support.programs import LIVE, Market, gpubid, until

RUNPOD = '[markets.runpod]\nurl = "{url}"\ncredential = "runpod_api_key"\n'


@pytest.fixture
async def left(tmp_path: Path) -> AsyncIterator[Market]:
    """Give a market on which a daemon that ended left a lease."""
    async with programs.market(tmp_path) as market:
        (tmp_path / "agent.toml").write_text(LIVE.format(url=market.url))
        async with programs.daemon(tmp_path) as daemon:
            await until(market.billing, "a rent")
            assert await daemon.stop() == 0
        yield market


def other_market(market: Market) -> str:
    return RUNPOD.format(url=market.first_line["runpod_url"])


async def test_a_kill_ends_what_it_can_where_the_key_of_another_market_is_missing(tmp_path: Path, left: Market) -> None:
    with (tmp_path / "agent.toml").open("a") as file:
        file.write(other_market(left))
    ran = await gpubid(tmp_path, "kill", RUNPOD_API_KEY=None)
    assert ran.code == 1, ran
    assert "runpod is not looked at, so instances there may still bill: there is no key named runpod_api_key" in ran.err
    assert "not listed, so instances there may still bill: runpod" in ran.out
    assert "nothing is rented until `gpubid kill --lift`" in ran.out
    assert await left.billing() == []


@pytest.mark.parametrize("words", [("kill",), ("release", "train", "--yes"), ("kill", "train", "--yes")], ids=" ".join)
async def test_an_order_names_the_leases_of_a_market_that_the_configuration_lacks(
    tmp_path: Path, left: Market, words: tuple[str, ...]
) -> None:
    head, _, tail = LIVE.format(url=left.url).partition("[markets.vast]")
    without = head + other_market(left) + "spend = true\n[limits]" + tail.partition("[limits]")[2]
    (tmp_path / "agent.toml").write_text(without)
    ran = await gpubid(tmp_path, *words, RUNPOD_API_KEY=DEFAULT_KEY)
    assert ran.code == 1, ran
    assert "[markets.vast] is not in the configuration; write it again" in ran.err
    assert "vast" in ran.out
    assert len(await left.billing()) == 1
    (tmp_path / "agent.toml").write_text(LIVE.format(url=left.url))
    async with programs.daemon(tmp_path):
        await until(lambda: released(left), "the release that was ordered")


async def released(market: Market) -> bool:
    """Return whether a release has reached the market."""
    return any(method == "DELETE" for method, _ in await market.writes())
