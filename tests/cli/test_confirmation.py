"""A person on a terminal is shown what an order ends, with dollars an hour, and asked; a script never is."""

# ruff: noqa: ASYNC240 - a test may wait for its own files

import asyncio
from pathlib import Path

import pytest

from agent.simulator.vast.http.call_gate import DEFAULT_KEY
from tests.support import programs
from tests.support.programs import LIVE, Market, gpubid, until
from tests.support.terminal import typed


async def at_terminal(place: Path, *words: str, answers: tuple[str, ...] = ()) -> tuple[int, str]:
    """Return the exit code of a verb on a terminal, and its output."""
    return await asyncio.to_thread(typed, words, place, list(answers), "", DEFAULT_KEY)


async def until_running(market: Market, daemon: programs.Daemon) -> None:
    """Wait for a lease that runs."""
    await until(market.billing, "a rent")
    await market.advance(40)
    await daemon.until_logged("lease.running")


@pytest.mark.long(18)
async def test_a_person_sees_leases_and_dollars_and_may_decline(tmp_path: Path) -> None:
    async with programs.running(tmp_path, config=f'{LIVE}kind = "batch"\n') as (market, daemon):
        await until_running(market, daemon)
        (lease,) = (await gpubid(tmp_path, "fleet", "--json")).json["leases"]
        rate = f"${lease['billing_dollars_per_hour']:.4f}"
        for words, action, after in (
            (("kill",), "release", "$0.0000"),
            (("kill", "train"), "release", "$0.0000"),
            (("kill", "--keep-disks"), "pause", f"${lease['disk_dollars_per_hour']:.4f}"),
            (("kill", "fleet:all", "--keep-disks"), "pause", f"${lease['disk_dollars_per_hour']:.4f}"),
            (("pause", "train/0"), "pause", f"${lease['disk_dollars_per_hour']:.4f}"),
            (("release", lease["lease"]), "release", "$0.0000"),
            (("done", "train"), "release", "$0.0000"),
            (("drain", "train"), "goes on", rate),
        ):
            code, shown = await at_terminal(tmp_path, *words, answers=("n",))
            assert code == 1, (words, shown)
            assert f"train/0 {lease['lease']} running" in shown, words
            assert f"{rate}/h, {action}" in shown, words
            assert f"1 lease(s), {rate} an hour now, {after} an hour after it" in shown, words
            assert "nothing was ordered" in shown, words
        assert len(await market.billing()) == 1
        ordered = (await gpubid(tmp_path, "ledger", "events", "--kind", "operator.ordered", "--json")).json
        assert ordered == [], "what was declined left no word behind"


async def test_who_agrees_or_says_yes_is_obeyed(tmp_path: Path) -> None:
    async with programs.running(tmp_path) as (market, daemon):
        await until_running(market, daemon)
        code, shown = await at_terminal(tmp_path, "drain", "train", "--yes")
        assert code == 0, shown
        assert "Go on?" not in shown
        code, shown = await at_terminal(tmp_path, "kill", answers=("y",))
        assert code == 0, shown
        assert "Go on?" in shown
        assert await market.billing() == []


async def test_without_a_daemon_the_ledger_tells_what_would_end(tmp_path: Path) -> None:
    async with programs.running(tmp_path) as (market, daemon):
        await until_running(market, daemon)
        await daemon.stop()
        code, shown = await at_terminal(tmp_path, "kill", answers=("n",))
        assert code == 1, shown
        assert "1 lease(s), $" in shown
        unknown, shown = await at_terminal(tmp_path, "release", "nothing")
        assert unknown == 2
        assert "no workload, slot or lease is named 'nothing'" in shown
        for suffix in ("-wal", "-shm"):
            (tmp_path / f"ledger.sqlite{suffix}").unlink(missing_ok=True)
        (tmp_path / "ledger.sqlite").write_bytes(b"this is no database" * 100)
        code, shown = await at_terminal(tmp_path, "kill", answers=("y",))
        assert code == 0, shown
        assert "cannot be listed" in shown
        assert await market.billing() == []


@pytest.mark.parametrize("words", [("kill",), ("kill", "train"), ("kill", "--keep-disks"), ("kill", "--lift")])
async def test_a_kill_without_a_ledger_makes_none(tmp_path: Path, words: tuple[str, ...]) -> None:
    async with programs.market(tmp_path) as market:
        (tmp_path / "agent.toml").write_text(LIVE.format(url=market.url))
        before = sorted(tmp_path.iterdir())
        ran = await gpubid(tmp_path, *words)
        assert ran.code == 2, ran
        assert "there is no ledger at ledger.sqlite" in ran.err
        assert sorted(tmp_path.iterdir()) == before


async def test_a_kill_on_the_embedded_market_leaves_no_file_either(tmp_path: Path) -> None:
    config = LIVE.replace('url = "{url}"', 'simulated = "calm"').replace('credential = "vast_api_key"\n', "")
    (tmp_path / "agent.toml").write_text(config.replace("spend = true\n", "").replace("{{", "{").replace("}}", "}"))
    ran = await gpubid(tmp_path, "kill")
    assert ran.code == 2, ran
    assert sorted(each.name for each in tmp_path.iterdir()) == ["agent.toml"]
    empty = tmp_path / "empty"
    empty.mkdir()
    assert (await gpubid(empty, "kill")).code == 2
    assert list(empty.iterdir()) == []
