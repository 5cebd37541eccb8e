"""What guards measured, in the feed and on the page over real HTTP."""

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
        # The daemon writes these figures in a cycle, and each cycle's end makes the feed read anew.
        page.feed.changed()
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


async def test_the_page_shows_what_a_guard_measured_and_marks_it(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        held, now = page.world.lease(), page.world.clock.now()
        places = ("/", f"/lease/{held.lease_id}")
        for place in places:
            assert "easured" not in (await page.get(place))[1]
        told = GuardFigures(held.lease_id, held.slot, "vast", held.host_id, 1, 1, now, 1250.0, "<b>", now)
        figures = dataclasses.replace(told, checkpoint_bytes=1_500_000_000, took_seconds=4.25, restore_seconds=30.0)
        ages = ((now, "0 min old"), (now - dt.timedelta(minutes=95), "1 h 35 min old"), (None, "of unknown age"))
        for kept_at, age in ages:
            kept = dataclasses.replace(figures, kept_at=kept_at)
            async with page.world.app.ledger.transaction() as tx:
                tx.keep_guard_figures(kept)
            for place in places:
                text = (await page.get(place))[1]
                assert "Measured by its guard" in text
                assert f"progress 1250; last checkpoint in the bucket {age}; checkpoint of 1.5 GB; " in text
                assert "made in 4.25 s; restored in 30 s" in text
                assert "uploaded" not in text
                assert "<b>" not in text
        async with page.world.app.ledger.transaction() as tx:
            tx.keep_guard_figures(GuardFigures(held.lease_id, held.slot, "vast", held.host_id, 1, 1, now))
        assert "no checkpoint in the bucket yet" in (await page.get("/"))[1]
