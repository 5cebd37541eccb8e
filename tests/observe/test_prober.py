"""Probes: the answer of a port or a page is a value, a slow one delays nobody, private addresses are not asked."""

import asyncio
import dataclasses
import datetime as dt
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from agent.clock import SteppedClock
from agent.decide.reconcile.probes.probing import Target
from agent.domain.work.deadline import Deadline, ProgressSign
from agent.domain.work.ready_sign import Liveness, Readiness, ReadySign, Sighting
from agent.markets import market_errors
from agent.observe import prober

NOW = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC)


class Logs:
    """A market that has only logs."""

    def __init__(self, *lines: str, fails: bool = False) -> None:
        self.lines = lines
        self.fails = fails
        self.reads = 0

    async def logs(self, _: str, __: int) -> Sequence[str]:
        self.reads += 1
        if self.fails:
            raise market_errors.Unavailable("dark")
        return self.lines


def probing(market: Any, clock: SteppedClock, *, may_be_local: bool = True) -> prober.Prober:
    return prober.Prober(market, clock, asyncio.create_task, may_be_local=may_be_local)


def target(sign: ReadySign = ReadySign.HTTP, place: str = "", **changes: Any) -> Target:
    ready = Readiness(sign, line="is up", port=80, path="/health")
    return Target("1", NOW, ready, place, **changes)


async def test_a_line_of_before_a_resume_is_no_sign_of_readiness_after_it() -> None:
    clock = SteppedClock(NOW)
    market = Logs("boot", "the model is up")
    probe = probing(market, clock)
    first = target(ReadySign.LOG)
    assert (await probe.look([first]))["1"].is_ready
    clock.advance(600)
    resumed = dataclasses.replace(first, since=clock.now())
    assert not (await probe.look([resumed]))["1"].is_ready, "an old line"
    market.lines = (*market.lines, "boot", "the model is up")
    clock.advance(61)
    assert (await probe.look([resumed]))["1"].is_ready


async def test_a_container_made_anew_that_prints_the_same_again_is_ready_in_the_end() -> None:
    clock = SteppedClock(NOW)
    probe = probing(Logs("boot", "the model is up"), clock)
    await probe.look([target(ReadySign.LOG)])
    resumed = dataclasses.replace(target(ReadySign.LOG), since=clock.now() + dt.timedelta(seconds=1))
    clock.advance(resumed.ready.within.total_seconds() / 2 + 61)
    assert (await probe.look([resumed]))["1"].is_ready


@asynccontextmanager
async def answering(answer: bytes, *, is_silent: bool = False) -> AsyncIterator[str]:
    gone = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        if is_silent:
            await gone.wait()
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        gone.set()
        server.close()


async def seen_of(probe: prober.Prober, wanted: Target) -> Mapping[str, Sighting]:
    """Return the sighting of a target, however long the machine takes to answer."""
    async with asyncio.timeout(30):
        while not (seen := await probe.look([wanted])):
            """Each look waits for a while."""
    return seen


@pytest.mark.parametrize(
    ("answer", "is_ready"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", True),
        (b"HTTP/1.0 204 No Content\r\n\r\n", True),
        (b"HTTP/1.1 503 Service Unavailable\r\n\r\n", False),
        (b"HTTP/1.1 301 Moved\r\n\r\n", False),
        (b"SSH-2.0-OpenSSH_9\r\n", False),
        (b"", False),
        (b"\xff" * 10_000, False),
    ],
)
async def test_a_page_is_ready_with_a_2xx_only(answer: bytes, is_ready: bool) -> None:
    async with answering(answer) as place:
        seen = await seen_of(probing(Logs(), SteppedClock(NOW)), target(place=place))
    assert seen["1"].is_ready is is_ready
    assert bool(seen["1"].said) is not is_ready


async def test_a_port_is_ready_when_it_answers_and_closed_when_not() -> None:
    async with answering(b"") as place:
        seen = await seen_of(probing(Logs(), SteppedClock(NOW)), target(ReadySign.PORT, place))
        assert seen["1"].is_ready
    seen = await seen_of(probing(Logs(), SteppedClock(NOW)), target(ReadySign.PORT, place))
    assert not seen["1"].is_ready
    assert "does not answer" in seen["1"].said


async def test_a_slow_answer_is_collected_later_and_asked_for_once() -> None:
    async with answering(b"HTTP/1.1 200 OK\r\n\r\n", is_silent=True) as place:
        slow = probing(Logs(), SteppedClock(NOW))
        assert await slow.look([target(place=place)]) == {}
        assert await slow.look([target(place=place)]) == {}
        assert len(slow._running) == 1
        await slow.close()
        assert not slow._running


@pytest.mark.parametrize("place", ["127.0.0.1:80", "10.0.0.5:80", "[::1]:80", "169.254.169.254:80", "name:80"])
async def test_a_live_market_sends_nobody_to_a_private_address(place: str) -> None:
    seen = await probing(Logs(), SteppedClock(NOW), may_be_local=False).look([target(place=place)])
    assert seen["1"].said == f"{place} is no public address"


async def test_logs_are_read_once_a_minute_and_at_once_when_it_is_over() -> None:
    clock, market = SteppedClock(NOW), Logs("epoch 1", "the model is up")
    reader = probing(market, clock)
    waiting = target(ReadySign.LOG, done_line="all done")
    seen = await reader.look([waiting])
    assert (seen["1"].is_ready, seen["1"].is_done) == (True, False)
    await reader.look([waiting])
    assert market.reads == 1
    clock.advance(61)
    market.lines = (*market.lines, "all done")
    assert (await reader.look([waiting]))["1"].is_done
    clock.advance(5)
    over = Target("1", clock.now(), Readiness(), done_line="all done", is_over=True)
    await reader.look([over])
    assert market.reads == 3
    assert await reader.look([]) == {}


async def test_a_log_that_cannot_be_read_says_so() -> None:
    seen = await probing(Logs(fails=True), SteppedClock(NOW)).look([target(ReadySign.LOG)])
    assert (seen["1"].said, seen["1"].was_asked) == ("its log could not be read (unavailable)", False)
    read = await probing(Logs("epoch 9"), SteppedClock(NOW)).look([target(ReadySign.LOG)])
    assert (read["1"].said, read["1"].was_asked) == ("no line of its log says so", True)


def telling(sign: ProgressSign, place: str = "") -> Target:
    wanted = Deadline(48.0, NOW, sign=sign, line="hours done: {hours}", port=80, path="/progress")
    return Target("1", NOW, Readiness(), deadline=wanted, progress_place=place)


@pytest.mark.parametrize(
    ("body", "hours"),
    [
        (b"1.5", 1.5),
        (b' {"hours": 3, "step": 100}\n', 3.0),
        (b"", None),
        (b"true", None),
        (b'{"hours": "3"}', None),
        (b"-1", None),
        (b"1e99", None),
        (b"[1]", None),
        (b"9" * 100_000, None),
    ],
)
async def test_a_page_tells_hours_or_nothing(body: bytes, hours: float | None) -> None:
    async with answering(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n" + body) as place:
        seen = await seen_of(probing(Logs(), SteppedClock(NOW)), telling(ProgressSign.HTTP, place))
    assert seen["1"].hours == hours


async def test_a_page_of_long_headers_tells_nothing_and_hides_no_other_sign() -> None:
    """It ended the probe, so that a service that had died stayed well."""
    long = b"HTTP/1.0 200 OK\r\nSet-Cookie: " + b"c" * 10_000 + b"\r\n\r\n1.5"
    async with answering(long) as place:
        wanted = telling(ProgressSign.HTTP, place)
        market = Logs("done")
        seen = await seen_of(probing(market, SteppedClock(NOW)), dataclasses.replace(wanted, done_line="done"))
    assert seen["1"].hours is None
    assert seen["1"].is_done


@pytest.mark.parametrize("count", [20, 150])
async def test_every_one_of_many_instances_gets_its_turn(count: int) -> None:
    """The first 64 had all turns, so the end of the work of the others was never seen."""
    clock, market = SteppedClock(NOW), Logs("step 1")
    probe = probing(market, clock)
    wanted = [dataclasses.replace(target(ReadySign.LOG), instance_id=str(each)) for each in range(count)]
    for _ in range(20):
        seen = await probe.look(wanted)
        clock.advance(15)
    assert len(seen) == count
    assert clock.now() - min(each.at for each in seen.values()) <= dt.timedelta(minutes=3)


async def test_a_container_that_has_just_ended_is_read_before_the_others() -> None:
    """Its GPU is paid for until its log was read."""
    clock, market = SteppedClock(NOW), Logs("done")
    probe = probing(market, clock)
    wanted = [dataclasses.replace(target(ReadySign.LOG), instance_id=str(each)) for each in range(40)]
    for _ in range(4):
        await probe.look(wanted)
        clock.advance(15)
    ended = dataclasses.replace(wanted[-1], ready=Readiness(), is_over=True, since=clock.now(), done_line="done")
    assert (await probe.look([*wanted[:-1], ended]))["39"].is_done


async def test_a_probe_that_ends_by_an_unknown_error_keeps_no_older_sighting_alive() -> None:
    """The last one stayed for as long as its probe failed, and nothing said so."""

    class Broken(Logs):
        name = "vast"

        async def logs(self, _: str, __: int) -> Sequence[str]:
            if self.fails:
                raise RuntimeError("a defect")
            return self.lines

    clock, market = SteppedClock(NOW), Broken("the model is up")
    probe = probing(market, clock)
    assert (await probe.look([target(ReadySign.LOG)]))["1"].is_ready
    market.fails = True
    clock.advance(61)
    seen = (await probe.look([target(ReadySign.LOG)]))["1"]
    assert (seen.is_ready, seen.was_asked, seen.said) == (False, False, "its probe failed (RuntimeError)")


async def test_a_page_that_refuses_tells_nothing() -> None:
    async with answering(b"HTTP/1.1 500 No\r\n\r\n7") as place:
        seen = await seen_of(probing(Logs(), SteppedClock(NOW)), telling(ProgressSign.HTTP, place))
    assert seen["1"].hours is None


async def test_a_page_is_asked_once_a_minute_and_never_in_private_networks() -> None:
    clock = SteppedClock(NOW)
    async with answering(b"HTTP/1.1 200 OK\r\n\r\n2") as place:
        looks = probing(Logs(), clock)
        first = await looks.look([telling(ProgressSign.HTTP, place)])
        again = await looks.look([telling(ProgressSign.HTTP, place)])
        far = await probing(Logs(), clock, may_be_local=False).look([telling(ProgressSign.HTTP, place)])
    assert first["1"].hours == 2.0
    assert again["1"] is first["1"]
    assert far["1"].hours is None


async def test_the_last_line_of_the_log_that_tells_counts() -> None:
    logs = Logs("hours done: 1", "hours done: 2.5", "step 12")
    seen = await probing(logs, SteppedClock(NOW)).look([telling(ProgressSign.LOG)])
    assert seen["1"].hours == 2.5


async def test_the_line_of_bare_work_is_kept_and_proves_nothing_of_a_log_that_cannot_be_read() -> None:
    clock = SteppedClock(NOW)
    market = Logs("gpubid-guard: bare: no python3", "epoch 1")
    probe = probing(market, clock)
    silent = Target("1", NOW, Readiness(), is_silent=True)
    assert (await probe.look([silent]))["1"].is_bare
    assert not (await probing(market, clock).look([dataclasses.replace(silent, is_silent=False)])).get("1")
    clock.advance(61)
    market.lines = ("epoch 9",)
    assert (await probe.look([silent]))["1"].is_bare
    clock.advance(61)
    market.fails = True
    assert not (await probe.look([silent]))["1"].is_bare
    assert not (await probing(Logs("epoch 9"), clock).look([silent]))["1"].is_bare


@pytest.mark.parametrize("answers", [True, False])
async def test_what_a_market_saw_that_asks_pages_itself_is_the_answer(answers: bool) -> None:
    clock = SteppedClock(NOW)
    probe = probing(Logs("done"), clock, may_be_local=False)
    seen = (await probe.look([target(page_answers=answers, is_live=True)]))["1"]
    assert (seen.is_ready, seen.was_asked) == (answers, True)
    assert seen.said == ("" if answers else "/health does not answer its market")
    await probe.close()


async def test_a_service_that_was_ready_is_asked_at_its_own_pace_and_only_where_it_has_an_address() -> None:
    clock, asked = SteppedClock(NOW), 0

    async def answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        await reader.readline()
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(answered, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    probe = probing(Logs("done"), clock)
    live = dataclasses.replace(target(place=f"127.0.0.1:{port}", done_line="never"), is_live=True)
    live = dataclasses.replace(live, ready=dataclasses.replace(live.ready, live=Liveness(dt.timedelta(minutes=5))))
    seen = (await probe.look([live]))["1"]
    assert (seen.is_ready, seen.was_asked, asked) == (True, True, 1)
    clock.advance(30)
    assert (await probe.look([live]))["1"].at == seen.at
    assert asked == 1
    clock.advance(300)
    lost = dataclasses.replace(live, place="")
    unknown = (await probe.look([lost]))["1"]
    assert (unknown.is_ready, unknown.was_asked, asked) == (False, False, 1)
    private = probing(Logs("done"), clock, may_be_local=False)
    assert not (await private.look([live]))["1"].was_asked
    await probe.close()
    server.close()
