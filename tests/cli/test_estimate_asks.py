"""`gpubid estimate` asks a server of clouds for its prices of now, where the configuration names one."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agent.simulator.vast.http.call_gate import DEFAULT_KEY
from tests.support import programs
from tests.support.programs import LIVE, gpubid

OWN = """\
[markets.dstack]
url = "{url}"
credential = "dstack_api_key"
fleet = "gpubid"
backends = ["aws", "cloudrift"]
"""
CONFIG = OWN + LIVE.partition("spend = true\n")[2].replace('"patient"', '"ondemand"')
JOB = ("--gpu", "RTX 4090", "--hours", "10")


pytestmark = pytest.mark.usefixtures("server")


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[None]:
    """Give a simulated server whose address is in the configuration; no daemon ever ran."""
    async with programs.market(tmp_path) as market:
        (tmp_path / "agent.toml").write_text(CONFIG.format(url=market.first_line["dstack_url"]))
        yield


async def estimated(place: Path, *words: str, **env: str | None) -> tuple[list[dict[str, Any]], str]:
    ran = await gpubid(place, "estimate", *JOB, "--json", *words, **env)
    assert ran.code == 0, ran
    return json.loads(ran.out)["models"][0]["options"], ran.err


async def test_the_servers_price_of_now_is_estimated_without_a_ledger(tmp_path: Path) -> None:
    options, told = await estimated(tmp_path, DSTACK_API_KEY=DEFAULT_KEY)
    ours = [each for each in options if each["name"].startswith("dstack")]
    (on_demand,) = [each for each in ours if each["name"] == "dstack, ondemand"]
    assert on_demand["dollars_per_hour"] > 0
    assert any("on dstack in the ledger and as asked now" in note for note in on_demand["cited"])
    assert "dstack told no price" not in told
    (bid,) = [each for each in ours if each["name"] == "dstack, patient"]
    assert any("the listed price is paid" in note for note in bid["cited"])
    assert bid["dollars_per_hour"] < on_demand["dollars_per_hour"]
    assert not (tmp_path / "ledger.sqlite").exists(), "an estimate writes nothing"


async def test_a_server_that_tells_nothing_is_named_and_the_rest_is_estimated(tmp_path: Path) -> None:
    options, told = await estimated(tmp_path, DSTACK_API_KEY="another")
    assert "dstack told no price of now, so those of the ledger count: " in told
    assert not any(each["name"].startswith("dstack") for each in options)
    assert any(each["name"].startswith("runpod") for each in options), "the dated table"
    missing, told = await estimated(tmp_path, DSTACK_API_KEY=None)
    assert missing == options
    assert "dstack_api_key" in told


async def test_a_server_with_none_of_the_cards_is_named(tmp_path: Path) -> None:
    ran = await gpubid(tmp_path, "estimate", "--gpu", "B200", "--hours", "1", DSTACK_API_KEY=DEFAULT_KEY)
    assert (ran.code, "it offers none of these cards now" in ran.err) == (0, True), ran
