"""How many slots run is one figure: in the feed, in `gpubid status`, in `gpubid fleet` and on the page."""

import json
import re
from pathlib import Path

import aiohttp
import msgspec

from agent.domain.record.lease import LeaseState
from tests.support import builders
from tests.web.page import Served, served


async def counts(page: Served) -> list[tuple[int, int]]:
    """Return (running, wanted) of each reader."""
    fleet = json.loads((await page.get("/api/v1/fleet"))[1])
    link = aiohttp.UnixConnector(str(page.socket))
    async with aiohttp.ClientSession(connector=link) as client:
        status, verb = [await (await client.get(f"http://x/{route}")).json() for route in ("status", "fleet")]
    shown = re.search(r"(\d+) <small>of (\d+) slots", (await page.get("/"))[1])
    assert shown is not None
    return [
        (fleet["running"], fleet["wanted"]),
        (status["running"], status["wanted"]),
        (sum(row["state"] == "running" for row in verb["slots"]), len(verb["slots"])),
        (int(shown[1]), int(shown[2])),
    ]


async def open_beside(page: Served) -> None:
    """Open another lease of the slot that runs, as a move does."""
    now = page.world.clock.now()
    starting = builders.lease(77, slot=page.world.lease().slot, state=LeaseState.STARTING)
    async with page.world.app.ledger.transaction() as tx:
        tx.open_lease(msgspec.structs.replace(starting, opened_at=now, state_since=now, accrued_until=now))
    page.feed.changed()


async def test_a_slot_whose_old_lease_runs_while_it_moves_is_running(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        old = page.world.lease()
        await open_beside(page)
        assert await counts(page) == [(1, 1)] * 4
        (row,) = json.loads((await page.get("/api/v1/fleet"))[1])["slots"]
        page.world.is_checked = False
    assert (row["lease"], row["state"]) == (old.lease_id, "running")


async def test_a_held_lease_fills_no_slot_and_its_cost_is_shown(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        mine = page.world.lease()
        async with page.world.app.ledger.transaction() as tx:
            tx.update_lease(msgspec.structs.replace(mine, is_held=True))
        page.feed.changed()
        assert await counts(page) == [(0, 1)] * 4
        _, text = await page.get("/")
        page.world.is_checked = False
    (row,) = re.findall(r"<tr><th scope=\"row\">[^\n]*fills no slot.*?</tr>", text, re.DOTALL)
    assert mine.lease_id in row
    assert f"${mine.billing_rate.dollars:.3f}" in row
