"""Filters by time, workload, slot and kind: one syntax of times, slots where workloads are, suggestions for a slip."""

import datetime as dt
from pathlib import Path

import pytest
import typer

from agent.cli.shared import instants
from tests.support import programs
from tests.support.programs import LIVE, gpubid, until

TWO = LIVE.replace("slots = 1", 'slots = 2\nshadow = ["ondemand"]')


def test_a_time_is_ago_a_day_or_an_instant() -> None:
    utc = dt.UTC
    assert instants.instant("--since", "2026-11-20") == dt.datetime(2026, 11, 20, tzinfo=utc)
    assert instants.instant("--since", "2026-11-20T08:00Z") == dt.datetime(2026, 11, 20, 8, tzinfo=utc)
    assert instants.instant("--since", "2026-11-20T08:00+02:00") == dt.datetime(2026, 11, 20, 6, tzinfo=utc)
    ago = instants.instant("--since", "2h")
    assert ago is not None
    assert abs(dt.datetime.now(utc) - ago - dt.timedelta(hours=2)) < dt.timedelta(minutes=1)
    assert instants.day("--since", "2026-11-20T23:59Z") == dt.date(2026, 11, 20)
    assert instants.ahead("--for", "90m") == dt.timedelta(minutes=90)
    until_then = instants.ahead("--for", (dt.datetime.now(utc) + dt.timedelta(days=2)).isoformat())
    assert dt.timedelta(days=1) < until_then < dt.timedelta(days=3)


@pytest.mark.parametrize("text", ["soon", "", "2026-13-01", "-2h", "0s", "99999d"])
def test_another_text_is_bad_input(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended:
        instants.instant("--since", text)
    assert ended.value.exit_code == 2
    assert f"--since: {text!r} is not an ISO date such as" in capsys.readouterr().err
    with pytest.raises(typer.Exit):
        instants.ahead("--for", text)


def test_a_lock_ends_in_the_future(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit):
        instants.ahead("--for", "2020-01-01")
    assert "a time to come" in capsys.readouterr().err


async def test_slots_are_taken_and_slips_are_named(tmp_path: Path) -> None:
    async with programs.running(tmp_path, config=TWO) as (market, _daemon):

        async def two() -> bool:
            return len(await market.billing()) == 2

        await until(two, "two leases")
        for since in ("2h", "2026-01-01", "2026-01-01T08:00Z"):
            for verb in ("ledger events", "ledger prices", "spend", "savings"):
                assert (await gpubid(tmp_path, *verb.split(), "--since", since, "--json")).code == 0, (verb, since)
        assert (await gpubid(tmp_path, "ledger", "events", "--since", "2999-01-01", "--json")).json == []
        every = (await gpubid(tmp_path, "ledger", "events", "--workload", "train", "--json")).json
        assert {event["slot"] for event in every} >= {0, 1}
        one = (await gpubid(tmp_path, "ledger", "events", "--workload", "train/1", "--json")).json
        assert {event["slot"] for event in one} == {1}
        assert [event for event in every if event["slot"] == 1] == one
        shadows = [(await gpubid(tmp_path, "shadow", name, "--json")).json for name in ("train", "train/1")]
        assert [[row["workload"] for row in each["shadows"]] for each in shadows] == [["train"], ["train"]]
        for words, says in (
            (("ledger", "events", "--workload", "trian"), "did you mean train?"),
            (
                ("ledger", "events", "--workload", "train/7"),
                "workload 'train' has no slot 'train/7'; write train/0 to train/1, or train for all",
            ),
            (("ledger", "events", "--kind", "lease.interupted"), "did you mean lease.interrupted?"),
            (("ledger", "events", "--kind", "lease.opened", "--kind", "x"), "no events of kind 'x'"),
            (("shadow", "trian"), "did you mean train?"),
            (
                ("shadow", "train/7"),
                "workload 'train' has no slot 'train/7'; write train/0 to train/1, or train for all",
            ),
        ):
            ran = await gpubid(tmp_path, *words)
            assert (ran.code, ran.out) == (2, ""), words
            assert says in ran.err, words
        none = await gpubid(tmp_path, "ledger", "events", "--kind", "lease.disowned", "--json")
        assert (none.code, none.json) == (0, []), "a kind that has not happened is no slip"
