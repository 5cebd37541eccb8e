"""`gpubid kill` by label where the market is a dstack server: the project, and clouds that cannot pause."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agent.simulator.vast.http.call_gate import DEFAULT_KEY
from tests.support import programs
from tests.support.programs import LIVE, Market, gpubid, until

OWN = """\
[markets.dstack]
url = "{url}"
credential = "dstack_api_key"
project = "prod"
fleet = "gpubid"
backends = ["aws", "cloudrift"]
spend = true
"""
CONFIG = OWN + LIVE.partition("spend = true\n")[2].replace('"patient"', '"ondemand"').replace("0.90", "3.00")
AGENT = '[agent]\npoll = "5s"\n'
BROKEN = '[ledger]\npath = "ledger.sqlite"\nthis is [no toml'


class Server(Market):
    """A simulated market of which the dstack server is used."""

    async def billing(self) -> list[str]:  # type: ignore[override]
        """Return the runs whose machine bills now."""
        return list((await self.truth())["dstack"]["billing_now"])

    async def runs(self) -> list[str]:
        """Return the statuses of all runs."""
        side: dict[str, Any] = (await self.truth())["dstack"]
        return [run["status"] for run in side["contracts"]]

    async def rename_project(self, name: str) -> None:
        """Put everything into the project of this name."""
        await self._post("/projects", {"market": "dstack", "name": name})


@pytest.fixture
async def left(tmp_path: Path) -> AsyncIterator[Server]:
    """Give a server on whose project `prod` a daemon that ended left a run."""
    async with programs.market(tmp_path) as market:
        server = Server(market.first_line, market._link)
        await server.rename_project("prod")
        text = AGENT + CONFIG.format(url=market.first_line["dstack_url"])
        (tmp_path / "agent.toml").write_text(text.replace("max_price = 0.8", "max_price = 2.0"))
        async with programs.daemon(tmp_path, DSTACK_API_KEY=DEFAULT_KEY) as daemon:
            await until(server.billing, "a rent")
            assert await daemon.stop() == 0
        (tmp_path / "key").write_text(DEFAULT_KEY)
        yield server


async def kill(place: Path, server: Server, *words: str, wait: bool = False) -> programs.Ran:
    named = ("--market", f"dstack={server.first_line['dstack_url']}", "--credential", "key")
    return await gpubid(place, "kill", *named, *([] if wait else ["--no-wait"]), *words)


async def test_a_kill_of_a_project_that_nobody_names_is_refused(tmp_path: Path, left: Server) -> None:
    (tmp_path / "agent.toml").write_text(BROKEN)
    ran = await kill(tmp_path, left, wait=True)
    assert ran.code == 2, ran
    assert "the project of dstack is not known" in ran.err
    assert "add `--set project=NAME`" in ran.err
    assert "aborted_by_user" not in str(await left.truth())


async def test_the_project_may_be_named_on_the_command_line(tmp_path: Path, left: Server) -> None:
    (tmp_path / "agent.toml").write_text(BROKEN)
    other = await kill(tmp_path, left, "--set", "project=Prod")
    assert other.code == 1, other
    assert "dstack's project is called prod, not Prod" in other.out + other.err
    assert "aborted_by_user" not in str(await left.truth())
    ran = await kill(tmp_path, left, "--set", "project=prod")
    assert ran.code == 1, ran
    assert "release unfinished" in ran.out
    (status,) = await left.runs()
    assert status in {"terminating", "terminated"}


async def test_a_readable_configuration_names_the_project_and_its_other_markets_count_too(
    tmp_path: Path, left: Server
) -> None:
    (tmp_path / "ledger.sqlite").write_bytes(b"this is no database, whatever its name says" * 100)
    for suffix in ("-wal", "-shm"):
        (tmp_path / f"ledger.sqlite{suffix}").unlink(missing_ok=True)
    with (tmp_path / "agent.toml").open("a") as file:
        file.write(f'[markets.vast]\nurl = "{left.url}"\ncredential = "vast_api_key"\n')
    ran = await gpubid(
        tmp_path,
        "kill",
        "--market",
        f"dstack={left.first_line['dstack_url']}",
        "--credential",
        "key",
        VAST_API_KEY=None,
    )
    assert ran.code == 1, ran
    assert "vast is not looked at, so instances there may still bill: there is no key named vast_api_key" in ran.err
    assert "not listed, so instances there may still bill: vast" in ran.out
    assert "nothing bills any more" not in ran.out
    assert await left.billing() == []


async def test_where_nothing_can_be_paused_a_kill_that_keeps_disks_releases(tmp_path: Path, left: Server) -> None:
    (tmp_path / "agent.toml").write_text(BROKEN)
    ran = await kill(tmp_path, left, "--set", "project=prod", "--keep-disks")
    assert ran.code == 1, ran
    assert "release unfinished" in ran.out
    assert "pause" not in ran.out
    (status,) = await left.runs()
    assert status in {"terminating", "terminated"}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--set", "project=prod"), "no --market that is given here takes one"),
        (("--market", "dstack", "--credential", "key", "--set", "fleet=x"), "'fleet' is no key of a kill"),
        (("--market", "dstack", "--credential", "k", "--market", "dstack=x", "--credential", "k"), "given 2 times"),
    ],
    ids=["no market", "key", "twice"],
)
async def test_options_that_do_not_fit(tmp_path: Path, words: tuple[str, ...], says: str) -> None:
    ran = await gpubid(tmp_path, "kill", *words)
    assert ran.code == 2, ran
    assert says in ran.err


async def test_a_value_that_no_project_can_have_is_refused(tmp_path: Path, left: Server) -> None:
    (tmp_path / "agent.toml").write_text(BROKEN)
    ran = await kill(tmp_path, left, "--set", "project=a b")
    assert ran.code == 2, ran
    assert "--set: project: " in ran.err
