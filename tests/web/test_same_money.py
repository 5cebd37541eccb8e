"""What spend, savings, fleet, status, feed and metrics say of one instant is the same money, to the micro-dollar."""

import dataclasses
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from agent.decide.limits.limits import Limits
from agent.domain import money
from agent.domain.money import MICROS
from agent.ledger.reader import open_reader
from agent.pass_metrics import Figures
from agent.telemetry.metric_updates import Metrics
from agent.web.feed.live_feed import LiveFeed
from agent.web.reading import spend_reports, status_json, verb_json
from tests.support.scene import work
from tests.support.world import Rehearsed, play

REPORTS = (("/spend", ""), ("/savings", ""), ("/savings", "runpod"), ("/savings", "aws"))


def micros(dollars: float) -> int:
    """Return dollars as whole micro-dollars."""
    return round(dollars * MICROS)


def together(report: Mapping[str, Any]) -> int:
    """Return all sums of a report: the metered cost, with a price to compare or without, and the cost since."""
    total = report["total"]
    return micros(total["dollars"] + total.get("unpriced_dollars", 0.0) + report["unmetered_dollars"])


async def told(world: Rehearsed) -> tuple[dict[str, int], set[str]]:
    """Return the micro-dollars of today as each reader shows them now, and the instants that the readers name."""
    now = world.clock.now()
    reader = await open_reader(world.app.ledger.path)
    try:
        known = await reader.recollection(now)
        fleet, status = verb_json.fleet((), known, (), now), status_json.shown((), known, (), now, (), Limits())
        found = {"fleet": micros(fleet["spent_today_dollars"]), "status": micros(status["spent_today_dollars"])}
        instants = {fleet["now"], status["now"]}
        for route, baseline in REPORTS:
            query = {"by": "workload"} | ({"baseline": baseline} if baseline else {})
            report = await spend_reports.answer(reader, route, query, now)
            found[f"{route} {baseline}"] = together(report)
            instants.add(report["as_of"])
    finally:
        await reader.close()
    feed = (await LiveFeed(world.app).newest()).fleet
    return found | {"feed": micros(feed.money.today_dollars)}, instants | {feed.as_of.isoformat()}


def of_metrics(world: Rehearsed) -> tuple[int, datetime]:
    """Return the micro-dollars of today in the metrics of the last cycle, and when that was."""
    assert world.app.seen is not None
    registry = CollectorRegistry()
    Figures(Metrics(registry, ["vast"], ["train"])).see(world.app, world.app.seen)
    dollars = registry.get_sample_value("gpubid_spent_dollars", {"window": "day"})
    assert dollars is not None
    return micros(dollars), world.app.seen.fleet.now


def test_every_reader_tells_the_same_money_of_one_instant() -> None:
    async def story(world: Rehearsed) -> None:
        await world.until_running()
        await world.cycle(minutes=7)
        await world.app.cycle()
        now = world.clock.now()
        found, instants = await told(world)
        in_metrics, at = of_metrics(world)
        assert at == now
        assert set(found.values()) == {in_metrics}, found
        assert instants == {now.isoformat()}

    play(story, seed=1, workloads=(work(slots=1),))


def test_they_agree_between_two_meterings_too() -> None:
    async def story(world: Rehearsed) -> None:
        await world.until_running()
        await world.cycle(minutes=7)
        world.clock.advance(170.0)
        now = world.clock.now()
        found, instants = await told(world)
        assert len(set(found.values())) == 1, found
        assert instants == {now.isoformat()}
        reader = await open_reader(world.app.ledger.path)
        try:
            report = await spend_reports.answer(reader, "/spend", {"by": "workload"}, now)
            past = await spend_reports.answer(reader, "/spend", {"until": now.date().isoformat()}, now)
        finally:
            await reader.close()
        assert report["unmetered_dollars"] > 0
        assert past["unmetered_dollars"] == 0

    play(story, seed=1, workloads=(work(slots=1),))


def test_a_network_volume_is_in_the_spend_counter_and_in_every_rate() -> None:
    rate = money.per_hour("0.5")
    asked = work(slots=1, network_volume_rate=rate)
    asked = dataclasses.replace(asked, requirements=dataclasses.replace(asked.requirements, network_volume="nv1"))

    async def story(world: Rehearsed) -> None:
        world.is_checked = False  # This market does not charge for the volume.
        registry = CollectorRegistry()
        figures = Figures(Metrics(registry, ["vast"], ["train"]))
        figures.see_ledger(world.app)
        for _ in range(12):
            figures.see(world.app, await world.cycle(minutes=2))
        assert world.app.seen is not None
        counted = sum(
            sample.value
            for family in registry.collect()
            for sample in family.samples
            if sample.name == "gpubid_spend_dollars_total"
        )
        known = world.app.ledger.recollection(world.app.seen.fleet.now)
        assert counted == pytest.approx(known.total.today.dollars)
        assert counted > 0.1
        feed = (await LiveFeed(world.app).newest()).fleet
        assert registry.get_sample_value("gpubid_spend_dollars_per_hour") == rate.dollars
        assert feed.money.dollars_per_hour == rate.dollars
        assert [row.dollars_per_hour for row in feed.money.workloads] == [rate.dollars]
        shown = verb_json.fleet((asked,), known, [], world.app.seen.fleet.now)
        assert shown["dollars_per_hour"] == rate.dollars

    play(story, seed=1, workloads=(asked,))
