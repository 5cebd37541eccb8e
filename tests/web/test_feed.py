"""The feed over real HTTP and over the operators' socket: one document, its description, and a stream of changes."""

import asyncio
import contextlib
import dataclasses
import datetime as dt
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import jsonschema
import msgspec
import pytest

from agent.cli.shared.daemon_socket import Refused
from agent.cli.watch.feed_client import FeedClient
from agent.decide.accounting import meter
from agent.decide.limits.limits import Limits
from agent.domain import money
from agent.domain.market.price import PriceSample
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.domain.work.order import Order
from agent.web.feed import feed_routes, fleet_document, live_feed, openapi
from agent.web.reading import spend_reports
from tests.support.builders import per_hour
from tests.support.programs import PATIENCE_SECONDS
from tests.support.scene import work
from tests.web.page import Served, served

HOSTILE = "<script>\x1b[2J\u202e" + "x" * 5_000
LARGE = 40_000_000
"""Bytes that no buffer between two programs holds."""
CAPS = Limits(per_day=money.usd("10"), per_month=money.usd("100"))


async def fleet(page: Served) -> dict[str, Any]:
    status, text = await page.get("/api/v1/fleet")
    assert status == 200, text
    document = json.loads(text)
    must_fit(document, "Fleet")
    return dict(document)


def must_fit(document: Any, name: str) -> None:
    """Insist that a document is what `/api/v1/openapi.json` says of it."""
    schemas = openapi.document()["components"]
    jsonschema.validate(document, {"$ref": f"#/components/schemas/{name}", "components": schemas})


@contextlib.asynccontextmanager
async def stream(page: Served) -> AsyncIterator[AsyncIterator[tuple[str, Any]]]:
    """Open a stream of events; yield its messages."""
    async with page.client.get(page.url + "/api/v1/events") as answer:
        assert answer.headers["Content-Type"] == "text/event-stream"
        assert answer.headers["Cache-Control"] == "no-store"
        yield messages(answer)


async def messages(answer: aiohttp.ClientResponse) -> AsyncIterator[tuple[str, Any]]:
    name, lines = "", b""
    async for chunk in answer.content.iter_any():
        lines += chunk
        while b"\n" in lines:
            line, _, lines = lines.partition(b"\n")
            if line.startswith(b"event: "):
                name = line.removeprefix(b"event: ").decode()
            if line.startswith(b"data: "):
                yield name, json.loads(line.removeprefix(b"data: "))


async def until_saved(page: Served) -> None:
    """Wait for the first savings, which come as a change of their own."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (await page.feed.newest()).fleet.money.savings is None:  # noqa: ASYNC110 - no event of ours says so
            await asyncio.sleep(0.01)


async def next_of(told: AsyncIterator[tuple[str, Any]]) -> tuple[str, Any]:
    return await asyncio.wait_for(anext(told), PATIENCE_SECONDS)


async def last_of(told: AsyncIterator[Any]) -> Any:
    """Return the last message of a stream that ends, nothing where none came."""
    last: Any = ("", None)
    async with asyncio.timeout(PATIENCE_SECONDS):
        async for message in told:
            last = message
    return last


async def test_one_document_says_what_runs_where_for_how_much_and_why(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        lease = page.world.lease()
        shown = await fleet(page)
    (slot,) = shown["slots"]
    assert (slot["slot"], slot["state"], slot["lease"]) == ("train/0", "running", lease.lease_id)
    assert (slot["host"], slot["gpu"], slot["gpus"]) == (lease.host_id, lease.gpu, lease.gpus)
    assert slot["dollars_per_hour"] == lease.billing_rate.dollars == shown["money"]["dollars_per_hour"]
    assert slot["bid"] == lease.gpu_rate.dollars
    assert slot["prices"][-1]["bid"] == slot["bid"]
    assert slot["floor"] is not None
    assert slot["decision"]["code"]
    assert slot["decision"]["sentence"]
    assert (shown["running"], shown["wanted"]) == (1, 1)
    assert "lease.running" in {event["kind"] for event in shown["events"]}


async def test_money_is_the_ledgers_with_what_is_owed_and_the_runway(tmp_path: Path) -> None:
    async with served(tmp_path, limits=CAPS) as page:
        await page.world.cycle(minutes=10)
        now = page.world.clock.now()
        known = page.world.app.ledger.recollection(now)
        shown = (await fleet(page))["money"]
    spent = known.total.today.dollars
    assert spent > 0
    assert shown["today_dollars"] >= spent
    assert (shown["day_cap_dollars"], shown["month_cap_dollars"]) == (10, 100)
    assert {cap["window"]: cap["cap_dollars"] for cap in shown["caps"]} == {"per_day": 10, "per_month": 100}
    credit = min(row["lasts_hours"] for row in shown["credit"] if row["lasts_hours"] is not None)
    assert 0 < shown["runway_hours"] <= credit
    assert shown["runway_ends"]


async def test_money_by_workload_is_that_of_spend_with_what_is_owed(tmp_path: Path) -> None:
    async with served(tmp_path, workloads=(work(slots=1), work("other", slots=2))) as page:
        for _ in range(4):
            await page.world.cycle(minutes=20)
        page.world.clock.advance(100)
        shown = (await fleet(page))["money"]
        now = page.world.clock.now()
        known = page.world.app.ledger.recollection(now)
        asked = spend_reports.ReportScope("workload", now.date())
        rows = (await spend_reports.spend(await page.world.app.ledger.reader(), asked, now))["rows"]
        _, board = await page.get("/")
    by_name = {row["workload"]: row for row in shown["workloads"]}
    assert {*by_name} == {"train", "other"} == {row["key"] for row in rows}
    assert sum(row["today_dollars"] for row in by_name.values()) == pytest.approx(shown["today_dollars"])
    assert sum(row["dollars_per_hour"] for row in by_name.values()) == pytest.approx(shown["dollars_per_hour"])
    for row in rows:
        mine = by_name[row["key"]]
        owed = meter.outstanding([each for each in known.leases if each.slot.workload == row["key"]], now)
        assert mine["today_dollars"] == pytest.approx(row["dollars"] + owed.dollars)
        assert mine["useful_hours"] == pytest.approx(row["useful_hours"], abs=1e-4)
        assert mine["dollars_per_useful_hour"] == pytest.approx(row["dollars_per_useful_hour"], rel=1e-3)
        assert f">${mine['dollars_per_useful_hour']:.4f}</td>" in board


async def test_the_useful_share_grows_while_it_runs_before_the_ledger_meters_it(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        shares = []
        for _ in range(2):
            page.world.clock.advance(1_800)
            shares.append((await fleet(page))["slots"][0]["useful_share"])
    assert 0 < shares[0] < shares[1] < 1


async def test_times_are_in_utc_and_age_is_told(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        fresh = await fleet(page)
        page.world.clock.advance(5 * page.world.config.poll.total_seconds())
        late = await fleet(page)
    for key in ("as_of", "last_cycle_at"):
        assert dt.datetime.fromisoformat(fresh[key]).utcoffset() == dt.timedelta(0)
    assert (fresh["is_stale"], late["is_stale"]) == (False, True)
    assert late["last_cycle_at"] == fresh["last_cycle_at"]
    assert late["as_of"] > fresh["as_of"]


async def test_what_is_wrong_is_told_with_a_kill_and_a_refused_reload(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        calm = await fleet(page)
        await page.world.app.say(Order("kill", "fleet:all"), "a test")
        page.world.app.stop_writing("another daemon writes")
        page.feed.changed()
        shown = await fleet(page)
    assert (calm["is_well"], calm["is_killed"], calm["alerts"]) == (True, False, [])
    assert (shown["is_well"], shown["is_killed"]) == (False, True)
    assert {"writing_stopped", "killed"} <= {alert["code"] for alert in shown["alerts"]}


async def test_a_lease_without_a_slot_is_shown_because_it_bills(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        lease = page.world.lease()
        rules = page.world.app.rules
        page.world.app.rules = dataclasses.replace(rules, workloads=())
        shown = await fleet(page)
    (slot,) = shown["slots"]
    assert (slot["lease"], slot["is_configured"]) == (lease.lease_id, False)
    assert slot["dollars_per_hour"] == lease.billing_rate.dollars


async def test_hostile_text_is_bounded_and_plain(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        told = Event(at=page.world.clock.now(), kind=EventKind.LEASE_INTERRUPTED, host_id=HOSTILE, evidence=HOSTILE)
        async with page.world.app.ledger.transaction() as tx:
            tx.append_event(told)
        shown = await fleet(page)
        async with page.client.get(page.url + "/api/v1/fleet") as answer:
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert answer.content_type == "application/json"
    event = shown["events"][0]
    assert all(character.isprintable() for character in event["why"] + event["host"])
    assert len(event["why"]) <= 600
    assert len(event["host"]) <= 200


async def test_the_description_lists_every_path(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        status, text = await page.get("/api/v1/openapi.json")
        answers = [(await page.client.head(page.url + path)).status for path in json.loads(text)["paths"]]
    assert status == 200
    assert answers == [200, 200, 200]


async def test_the_description_says_what_each_field_is_its_unit_and_what_a_null_means(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        _, text = await page.get("/api/v1/openapi.json")
    shapes = json.loads(text)["components"]["schemas"]
    said = {f"{name}.{field}": kind for name, shape in shapes.items() for field, kind in shape["properties"].items()}
    assert [name for name, kind in said.items() if not kind.get("description", "").endswith(".")] == []
    nulls = [kind["description"] for kind in said.values() if {"type": "null"} in kind.get("anyOf", ())]
    assert len(nulls) > 30
    assert [each for each in nulls if "Null: " not in each] == []
    rates = [name for name in said if name.endswith((".dollars_per_hour", ".bid", ".floor", ".ask"))]
    assert [name for name in rates if "dollars per hour" not in said[name]["description"]] == []


@pytest.mark.parametrize("path", ["/api/v1/fleet", "/api/v1/events", "/api/v1/openapi.json"])
async def test_a_foreign_name_and_a_write_are_refused(tmp_path: Path, path: str) -> None:
    async with served(tmp_path) as page:
        foreign, _ = await page.get(path, Host="gpubid.example")
        written, _ = await page.post(path)
    assert (foreign, written) == (421, 405)


async def test_a_stream_tells_each_change_and_beats_where_only_time_and_money_went_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_feed, "LOOK_SECONDS", 0.01)
    async with served(tmp_path) as page, contextlib.AsyncExitStack() as streams:
        await until_saved(page)
        told = await streams.enter_async_context(stream(page))
        first, document = await next_of(told)
        must_fit(document, "Fleet")
        second, beat = await next_of(told)
        must_fit(beat, "Beat")
        await page.world.cycle()
        page.feed.changed()
        while (message := await next_of(told))[1]["as_of"] <= document["as_of"]:
            """The beat after the cycle comes."""
        page.world.app.stop_writing("another daemon")
        page.world.clock.advance(1)
        page.feed.changed()
        while (change := await next_of(told))[0] == "beat":
            """The next change comes."""
    assert (first, second, message[0], change[0]) == ("fleet", "beat", "beat", "fleet")
    for later in (message[1], change[1]):
        assert later["as_of"] > document["as_of"]
        assert later["money"]["today_dollars"] > document["money"]["today_dollars"]


async def test_a_minute_without_a_change_sends_the_document_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_feed, "LOOK_SECONDS", 0.01)
    async with served(tmp_path) as page, contextlib.AsyncExitStack() as streams:
        await until_saved(page)
        told = await streams.enter_async_context(stream(page))
        _, document = await next_of(told)
        page.world.clock.advance(live_feed.DOCUMENT_SECONDS / 2)
        while (half := await next_of(told))[1]["as_of"] <= document["as_of"]:
            """The beat of half a minute comes."""
        page.world.clock.advance(live_feed.DOCUMENT_SECONDS / 2)
        while (whole := await next_of(told))[1]["as_of"] <= half[1]["as_of"]:
            """A message that is sent after a minute arrives."""
    assert (half[0], whole[0]) == ("beat", "fleet")


async def test_time_that_goes_on_is_no_change_and_a_price_is_one(tmp_path: Path) -> None:
    """The first point of a day's trail is cut to its beginning, and useful time and money grow."""
    async with served(tmp_path, limits=CAPS) as page:
        lease, now = page.world.lease(), page.world.clock.now()

        def floor(at: dt.datetime, dollars: float) -> PriceSample:
            return PriceSample(at, lease.market, lease.host_id, lease.gpu, lease.gpus, None, per_hour(dollars))

        await until_saved(page)
        async with page.world.app.ledger.transaction() as tx:
            yesterday = now - dt.timedelta(hours=25)
            tx.update_lease(msgspec.structs.replace(lease, opened_at=yesterday, bid_since=yesterday))
        page.feed.changed()
        made = [await page.feed.newest()]
        page.world.clock.advance(30)
        made.append(await page.feed.newest())
        async with page.world.app.ledger.transaction() as tx:
            tx.observe_prices([floor(page.world.clock.now(), 0.061)])
        page.feed.changed()
        made.append(await page.feed.newest())
    firsts = [each.fleet.slots[0].prices[0].at for each in made]
    assert firsts[0] < firsts[1]
    assert made[0].fleet.money.today_dollars < made[1].fleet.money.today_dollars
    assert made[0].fleet.money.caps[0].used_dollars < made[1].fleet.money.caps[0].used_dollars
    assert made[0].mark == made[1].mark
    assert made[1].mark != made[2].mark


async def test_what_changes_while_a_document_is_made_is_in_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the clock stopped: else a second would hide it."""
    made = fleet_document.document

    async def interrupted(*of: Any) -> Any:
        document = await made(*of)
        monkeypatch.undo()
        page.world.app.stop_writing("another daemon writes")
        page.feed.changed()
        return document

    async with served(tmp_path) as page:
        monkeypatch.setattr(fleet_document, "document", interrupted)
        first = (await page.feed.newest()).fleet
        second = (await page.feed.newest()).fleet
    assert (first.is_well, second.is_well) == (True, False)


async def test_one_stream_too_many_ends_the_oldest_and_tells_it_so(tmp_path: Path) -> None:
    async with served(tmp_path) as page, contextlib.AsyncExitStack() as streams:
        told = []
        for _ in range(live_feed.MOST_STREAMS + 1):
            told.append(await streams.enter_async_context(stream(page)))
            await next_of(told[-1])
        event, said = await last_of(told[0])
        page.feed.close()
        ended = await last_of(told[-1])
    must_fit(said, "Refusal")
    assert (event, said["error"]) == ("refused", "too_many_streams")
    assert "16" in said["sentence"]
    assert ended[0] in {"", "beat"}


async def test_a_terminal_that_gives_way_does_not_say_that_the_daemon_is_gone(tmp_path: Path) -> None:
    async with served(tmp_path) as page, contextlib.AsyncExitStack() as streams:
        told = await streams.enter_async_context(contextlib.aclosing(FeedClient(page.socket).messages()))
        assert (await anext(told)).event == "fleet"
        for _ in range(live_feed.MOST_STREAMS):
            await next_of(await streams.enter_async_context(stream(page)))
        with pytest.raises(Refused, match="readers of the feed"):
            await last_of(told)


async def test_a_client_that_reads_nothing_is_cut_and_its_place_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full pipe to a client that went to sleep: closing it politely would wait for the client for ever."""
    monkeypatch.setattr(live_feed, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(feed_routes, "PATIENCE_SECONDS", 0.2)
    monkeypatch.setattr(feed_routes, "_written", lambda _: b"x" * LARGE)
    async with served(tmp_path) as page:
        reader, writer = await asyncio.open_connection(*page.place, limit=1)
        received = 0
        writer.write(b"GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        async with asyncio.timeout(PATIENCE_SECONDS):
            for wanted in (1, 0):
                while len(page.feed._streams) != wanted:  # noqa: ASYNC110 - the daemon has no event for it
                    await asyncio.sleep(0.01)
            with contextlib.suppress(ConnectionError):
                while read := await reader.read(1_000_000):
                    received += len(read)
        writer.close()
    assert received < LARGE


async def test_feed_fleet_and_status_show_the_same_money_at_one_instant(tmp_path: Path) -> None:
    async with served(tmp_path, limits=CAPS) as page:
        await page.world.cycle(minutes=10)
        money = (await fleet(page))["money"]
        link = aiohttp.UnixConnector(str(page.socket))
        async with aiohttp.ClientSession(connector=link) as client:
            others = [await (await client.get(f"http://x/{route}")).json() for route in ("fleet", "status")]
    for other in others:
        assert other["spent_today_dollars"] == money["today_dollars"]
        assert other["spent_month_dollars"] == money["month_dollars"]
        assert other["dollars_per_hour"] == pytest.approx(money["dollars_per_hour"], abs=1e-9)
        assert other["credit"][0]["lasts_hours"] == money["credit"][0]["lasts_hours"]
    assert others[1]["caps"] == money["caps"]


async def test_the_operators_socket_serves_the_same(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        await until_saved(page)
        over_tcp = await fleet(page)
        link = aiohttp.UnixConnector(str(page.socket))
        async with aiohttp.ClientSession(connector=link) as client, client.get("http://x/api/v1/fleet") as answer:
            assert await answer.json() == over_tcp
