"""`gpubid status` and `gpubid reload`, asked of a real daemon and of a ledger without one."""

from pathlib import Path
from typing import Any

import pytest

from tests.support import programs
from tests.support.programs import LIVE, gpubid, until


async def test_status_says_well_what_runs_and_what_it_costs(tmp_path: Path) -> None:
    async with programs.running(tmp_path) as (market, daemon):
        await until(market.billing, "a rent")
        await market.advance(40)
        await daemon.until_logged("lease.running")
        ran = await gpubid(tmp_path, "status", "--json")
        assert ran.code == 0, ran
        found = ran.json
        fleet = (await gpubid(tmp_path, "fleet", "--json")).json
        assert (found["is_well"], found["is_running"], found["troubles"]) == (True, True, [])
        assert (found["running"], found["wanted"]) == (1, 1)
        (lease,) = fleet["leases"]
        (slot,) = found["slots"]
        assert (slot["host"], slot["gpu"], slot["state"]) == (lease["host"], lease["gpu"], "running")
        assert slot["dollars_per_hour"] == lease["billing_dollars_per_hour"] > 0
        caps = {row["window"]: row for row in found["caps"]}
        assert {name: row["cap_dollars"] for name, row in caps.items()} == {
            "per_hour": 3.0,
            "per_day": 12.0,
            "per_month": 250.0,
        }
        assert caps["per_day"]["used_dollars"] >= found["spent_today_dollars"] > 0
        assert caps["per_hour"]["used_dollars"] == found["dollars_per_hour"] == fleet["dollars_per_hour"]
        assert [row["is_fresh"] for row in found["markets"]] == [True]
        for verb in ("plan", "explain"):
            # In another terminal than the daemon's nobody has its keys.
            shown = await gpubid(tmp_path, verb, VAST_API_KEY=None)
            assert shown.code == 0, shown
            assert "train/0: hold, running" in shown.out
        said = await gpubid(tmp_path, "status")
        assert said.code == 0
        assert said.out.startswith("well\n")
        assert "1 of 1 slot(s) run" in said.out
        assert "cap today, all: $" in said.out


@pytest.mark.nightly
async def test_status_ends_with_1_and_names_what_is_wrong(tmp_path: Path) -> None:
    async with programs.running(tmp_path) as (market, daemon):
        await until(market.billing, "a rent")
        assert (await gpubid(tmp_path, "kill", "--no-wait")).code in {0, 1}
        killed = await gpubid(tmp_path, "status", "--json")
        assert killed.code == 1
        assert "killed" in {row["code"] for row in killed.json["troubles"]}
        await market.weather("server_error_before", route="*")

        async def unreadable() -> bool:
            found = (await gpubid(tmp_path, "status", "--json")).json
            return "unreadable" in {row["code"] for row in found["troubles"]}

        await until(unreadable, "a market that cannot be read")
        assert "not readable" in (await gpubid(tmp_path, "status")).out
        await daemon.stop()
    alone = await gpubid(tmp_path, "status", "--json")
    assert alone.code == 1
    assert alone.json["is_running"] is False
    assert alone.json["troubles"][0]["code"] == "not_running"


async def test_a_market_that_only_reads_on_purpose_is_a_note(tmp_path: Path) -> None:
    async with programs.running(tmp_path, config=LIVE.replace("spend = true", "spend = false")) as _:

        async def noted() -> list[dict[str, Any]]:
            ran = await gpubid(tmp_path, "status", "--json")
            return list(ran.json["notes"])

        await until(noted, "a note")
        ran = await gpubid(tmp_path, "status", "--json")
        assert ran.code == 0, ran
        assert [row["code"] for row in ran.json["notes"]] == ["no_spend"]


async def test_reload_shows_whether_the_files_were_applied(tmp_path: Path) -> None:
    async with programs.running(tmp_path) as (_, daemon):
        await daemon.until_logged("decision.made")
        file = tmp_path / "agent.toml"
        good = file.read_text()
        file.write_text(good.replace("max_per_day = 12.00", "max_per_day = 9.00"))
        ran = await gpubid(tmp_path, "reload")
        assert ran.code == 0, ran
        assert ran.out.startswith("applied: agent.toml, digest ")
        caps = {row["window"]: row["cap_dollars"] for row in (await gpubid(tmp_path, "status", "--json")).json["caps"]}
        assert caps["per_day"] == 9.0
        file.write_text(good.replace("127.0.0.1:0", "127.0.0.1:9478"))
        noted = await gpubid(tmp_path, "reload")
        assert noted.code == 0
        assert "note: web.listen: applies from the next start" in noted.out
        file.write_text(good.replace("max_price = 0.8", "max_prise = 0.8"))
        refused = await gpubid(tmp_path, "reload")
        assert refused.code == 2, refused
        line = next(number for number, text in enumerate(file.read_text().splitlines(), 1) if "max_prise" in text)
        assert f"agent.toml:{line}: workloads.train.max_prise: " in refused.err
        assert "max_price" in refused.err
        assert "keeps its last good files" in refused.err
        as_json = await gpubid(tmp_path, "reload", "--json")
        assert (as_json.code, as_json.json["is_applied"]) == (2, False)
        assert "workloads.train.max_prise" in {row["key"] for row in as_json.json["problems"]}
        file.write_text(good)
        looked = await gpubid(tmp_path, "status")
        assert looked.code == 1
        assert "the last reload was refused: agent.toml" in looked.out
        assert (await gpubid(tmp_path, "reload")).code == 0
        assert (await gpubid(tmp_path, "status")).code == 0
        await daemon.stop()
    alone = await gpubid(tmp_path, "reload")
    assert alone.code == 1
    assert "no daemon runs" in alone.err
