"""What guards measured, in the feed over real HTTP."""

import dataclasses
import datetime as dt
from pathlib import Path

from agent.domain.record.guard_figures import GuardFigures
from tests.web.page import served
from tests.web.test_feed import fleet


async def test_what_a_guard_measured_is_in_its_slot_and_null_without_a_guard(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        assert (await fleet(page))["slots"][0]["measured"] is None
        held, now = page.world.lease(), page.world.clock.now()
        async with page.world.app.ledger.transaction() as tx:
            told = GuardFigures(held.lease_id, held.slot, "vast", held.host_id, 1, 1, now, 7.5, kept_at=now)
            tx.keep_guard_figures(dataclasses.replace(told, checkpoint_bytes=1_500_000_000, upload_seconds=12.5))
        shown = (await fleet(page))["slots"][0]["measured"]
    at = shown.pop("told_at")
    assert dt.datetime.fromisoformat(at) == dt.datetime.fromisoformat(shown.pop("kept_at")) == now
    assert shown == {
        "progress": 7.5,
        "checkpoint_gb": 1.5,
        "took_seconds": None,
        "upload_seconds": 12.5,
        "restore_seconds": None,
    }
