"""What a kill left is one sentence wherever a person looks, and a metric for the alert."""

import html
import json
from pathlib import Path

import aiohttp
from prometheus_client import CollectorRegistry

from agent.pass_metrics import Figures
from agent.telemetry.metric_updates import Metrics
from tests.support import spending
from tests.web.page import served


async def test_the_page_and_fleet_say_the_same_of_what_bills_after_a_kill_and_a_metric_counts_it(
    tmp_path: Path,
) -> None:
    async with served(tmp_path) as page:
        page.world.is_checked = False
        for verb in ("DELETE", "PUT"):
            page.world.weather("server_error_before", route=f"{verb} /instances")
        await spending.kill(page.world.app)
        done = await page.world.cycle(minutes=6)
        page.feed.changed()
        _, shown = await page.get("/")
        async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(page.socket))) as client:
            told = json.loads(await (await client.get("http://daemon/fleet")).text())
        registry = CollectorRegistry()
        Figures(Metrics(registry, ["vast"], ["train"])).see(page.world.app, done)
        (sentence,) = [each["sentence"] for each in told["notices"] if each["code"] == "bills_after_kill"]
        assert page.world.lease().lease_id in sentence
        assert sentence in html.unescape(shown)
        assert registry.get_sample_value("gpubid_billing_after_kill") == 1.0
        killed_at = registry.get_sample_value("gpubid_kill_timestamp_seconds")
        assert killed_at is not None
        assert 300 <= page.world.clock.time() - killed_at <= 400
