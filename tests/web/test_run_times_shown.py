"""The page and the feed say when a workload may run, and how long it has."""

import datetime as dt
import json
from pathlib import Path

from agent.domain.work.run_times.run_window import WindowRule
from agent.domain.work.run_times.running_limit import RunningLimit
from tests.support.world import work
from tests.web.page import served


async def test_windows_and_running_time_are_among_what_to_know(tmp_path: Path) -> None:
    hours = WindowRule("0 2 * * *", dt.timedelta(hours=8), "Europe/Berlin")
    mine = work(windows=(hours,), max_running=(RunningLimit(dt.timedelta(hours=12)),))
    async with served(tmp_path, workloads=(mine,)) as page:
        (note,) = json.loads((await page.get("/api/v1/fleet"))[1])["notes"]
        _, text = await page.get("/")
    assert (note["about"], note["code"]) == ("train", "run_times")
    assert note["sentence"].startswith("its window is open until Mon 10:00 Europe/Berlin; ")
    assert note["sentence"].endswith(" min of 12 h run")
    assert "window is open until Mon 10:00 Europe/Berlin" in text
