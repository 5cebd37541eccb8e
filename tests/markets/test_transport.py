import contextlib
import logging
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime

import pytest

from agent.clock import SteppedClock
from agent.markets import market_errors, pace, transport
from agent.markets.transport import USUAL, Bounds, Call, Transport
from tests.markets.wire import Says, Seen, in_turn, serving

START = datetime(2026, 11, 5, tzinfo=UTC)
KEY = "made-up-key-4711"
READ = Call("list", "GET", "/api/v1/instances/?limit=25")
SEARCH = Call("search", "POST", "/api/v0/bundles/", b'{"type":"bid"}')
RENT = Call("create", "PUT", "/api/v0/asks/5/", b'{"price":0.2}')
RELEASE = Call("destroy", "DELETE", "/api/v0/instances/5/", b"{}")


@contextlib.asynccontextmanager
async def linked(
    url: str, clock: SteppedClock, jitter: Callable[[], float] = lambda: 0.5, bounds: Bounds = USUAL
) -> AsyncIterator[Transport]:
    link = Transport(url, lambda: KEY, clock, pace.Pace(clock, {}), jitter, bounds=bounds)
    try:
        yield link
    finally:
        await link.close()


@pytest.fixture
def clock() -> SteppedClock:
    return SteppedClock(START)


@pytest.mark.parametrize("call", [RENT, RELEASE], ids=lambda call: call.method)
async def test_a_write_whose_reply_is_dropped_is_seen_once(clock: SteppedClock, call: Call) -> None:
    async with serving(Says(drop=True)) as server, linked(server.url, clock) as link:
        with pytest.raises(market_errors.Ambiguous):
            await link.write(call)
    assert [(seen.method, seen.body) for seen in server.seen] == [(call.method, call.body)]


async def test_a_write_after_others_on_the_same_server_is_seen_once(clock: SteppedClock) -> None:
    """A kept-alive connection is what makes the library below us resend."""
    answers = in_turn(Says({"success": True}), Says({"success": True}), Says(drop=True))
    async with serving(answers) as server, linked(server.url, clock) as link:
        await link.write(RENT)
        await link.read(READ)
        with pytest.raises(market_errors.Ambiguous):
            await link.write(RENT)
    assert [seen.method for seen in server.seen] == ["PUT", "GET", "PUT"]


async def test_a_write_goes_out_with_its_length(clock: SteppedClock) -> None:
    async with serving(Says({"success": True})) as server, linked(server.url, clock) as link:
        await link.write(RENT)
    assert server.seen[0].headers["content-length"] == str(len(RENT.body or b""))
    assert "transfer-encoding" not in server.seen[0].headers
    assert server.seen[0].headers["content-type"] == "application/json"


async def test_a_write_is_not_redirected(clock: SteppedClock) -> None:
    def answers(seen: Seen) -> Says:
        return Says(status=307, headers={"Location": seen.target.replace("5", "6")})

    async with serving(answers) as server, linked(server.url, clock) as link:
        reply = await link.write(RENT)
    assert (reply.status, len(server.seen)) == (307, 1)


async def test_a_truncated_answer_to_a_write_is_ambiguous(clock: SteppedClock) -> None:
    async with serving(Says({"success": True}, cut=5)) as server, linked(server.url, clock) as link:
        with pytest.raises(market_errors.Ambiguous, match="broke"):
            await link.write(RENT)
    assert len(server.seen) == 1


async def test_a_write_that_found_nobody_never_left(clock: SteppedClock) -> None:
    async with serving(Says()) as server:
        url = server.url
    async with linked(url, clock) as link:
        with pytest.raises(market_errors.Unreachable) as caught:
            await link.write(RENT)
    assert isinstance(caught.value, market_errors.Rejected)
    assert (caught.value.reason, caught.value.leftover_id) == ("unreachable", "")


@pytest.mark.parametrize(
    "failure",
    [
        Says(drop=True),
        Says({"offers": []}, cut=4),
        Says(b"busy", 503),
        Says(b"<html>forbidden</html>", 403),
        Says(status=408),
    ],
    ids=["dropped", "truncated", "503", "html 403", "408"],
)
async def test_a_read_is_asked_again_with_jittered_growing_waits(clock: SteppedClock, failure: Says) -> None:
    async with serving(in_turn(failure, failure, Says({"ok": 1}))) as server, linked(server.url, clock) as link:
        # A POST: the library below asks a GET once more by itself, which would hide our own repeats.
        reply = await link.read(SEARCH)
    assert reply.body == b'{"ok": 1}'
    assert [seen.body for seen in server.seen] == [SEARCH.body] * 3
    assert clock.monotonic() == pytest.approx(transport.BACKOFF_SECONDS * (1 + 2))


async def test_jitter_stretches_the_wait(clock: SteppedClock) -> None:
    answers = in_turn(Says(status=500), Says({}))
    async with serving(answers) as server, linked(server.url, clock, jitter=lambda: 1.0) as link:
        await link.read(READ)
    assert clock.monotonic() == pytest.approx(transport.BACKOFF_SECONDS * 1.5)


async def test_a_read_that_keeps_failing_is_unavailable(clock: SteppedClock) -> None:
    async with serving(Says(status=502)) as server, linked(server.url, clock) as link:
        with pytest.raises(market_errors.Unavailable, match="502"):
            await link.read(READ)
    assert len(server.seen) == transport.ATTEMPTS


async def test_a_refusal_in_json_is_not_asked_again(clock: SteppedClock) -> None:
    async with serving(Says({"error": "auth_error"}, 403)) as server, linked(server.url, clock) as link:
        assert (await link.read(READ)).status == 403
    assert len(server.seen) == 1


async def test_the_deadline_holds_on_the_stepped_clock(clock: SteppedClock) -> None:
    def answers(_: Seen) -> Says:
        clock.advance(40.0)
        return Says({"success": True})

    async with serving(answers) as server, linked(server.url, clock) as link:
        with pytest.raises(market_errors.Ambiguous, match="no answer within 30 s"):
            await link.write(RENT)
        assert len(server.seen) == 1
        with pytest.raises(market_errors.Unavailable, match="no answer within 30 s"):
            await link.read(READ)


async def test_the_deadline_holds_on_the_wall(clock: SteppedClock) -> None:
    async with serving(Says(hang=True)) as server, linked(server.url, clock, bounds=Bounds(deadline=0.02)) as link:
        with pytest.raises(market_errors.Ambiguous, match=r"no answer within 0\.02 s"):
            await link.write(RENT)
    assert len(server.seen) == 1


async def test_an_endless_answer_is_cut_off(clock: SteppedClock) -> None:
    async with serving(Says(b"[" * 5000)) as server, linked(server.url, clock, bounds=Bounds(max_bytes=1000)) as link:
        with pytest.raises(market_errors.Malformed, match="longer than 1000"):
            await link.read(READ)
        with pytest.raises(market_errors.Ambiguous, match="longer than 1000"):
            await link.write(RENT)


@pytest.mark.parametrize(("encoding", "window"), [("gzip", 31), ("deflate", 15)])
async def test_a_small_answer_that_unpacks_to_much_is_cut_off_before(
    clock: SteppedClock, encoding: str, window: int
) -> None:
    packer = zlib.compressobj(9, wbits=window)
    bomb = b"".join([*(packer.compress(bytes(2**20)) for _ in range(256)), packer.flush()])
    assert len(bomb) < 2**19
    bounds = Bounds(max_bytes=2**22)
    packed = Says(bomb, headers={"Content-Encoding": encoding})
    async with serving(packed) as server, linked(server.url, clock, bounds=bounds) as link:
        tracemalloc.start()
        try:
            with pytest.raises(market_errors.Malformed, match="longer than"):
                await link.read(READ)
            with pytest.raises(market_errors.Ambiguous, match="longer than"):
                await link.write(RENT)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < 8 * bounds.max_bytes


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_no_other_host_gets_the_key_by_a_redirect(clock: SteppedClock, status: int) -> None:
    async with serving(Says({"offers": []})) as thief:
        elsewhere = Says(status=status, headers={"Location": f"{thief.url}/api/v1/instances/"})
        async with serving(elsewhere) as server, linked(server.url, clock) as link:
            replies = [await link.read(READ), await link.read(SEARCH), await link.write(RENT)]
            replies += [await link.fetch(f"{server.url}/log", 100), await link.tail(READ, 100)]
    assert {reply.status for reply in replies} == {status}
    assert thief.seen == []


async def test_the_key_travels_in_its_header_and_nowhere_else(
    clock: SteppedClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with serving(Says(status=500)) as server, linked(server.url, clock) as link:
        with pytest.raises(market_errors.Unavailable) as caught:
            await link.read(READ)
        assert KEY not in repr(link) + repr(vars(link)) + str(caught.value) + caplog.text
    assert {seen.headers["authorization"] for seen in server.seen} == {f"Bearer {KEY}"}


@pytest.mark.parametrize("key", ["", "  ", "two\nlines", "schlüssel"])
async def test_a_key_that_is_none_is_not_sent(clock: SteppedClock, key: str) -> None:
    async with serving(Says({})) as server:
        link = Transport(server.url, lambda: key, clock, pace.Pace(clock, {}), lambda: 0.5)
        with pytest.raises(market_errors.Unauthorized) as caught:
            await link.write(RENT)
        await link.close()
    assert server.seen == []
    assert "schl" not in str(caught.value)


def test_a_body_with_secrets_is_in_no_repr() -> None:
    assert "0.2" not in repr(RENT)


async def test_an_ambiguous_write_names_no_query_and_no_body(clock: SteppedClock) -> None:
    call = Call("create", "PUT", "/api/v0/asks/5/?api_key=leak", b'{"env":"leak"}')
    async with serving(Says(drop=True)) as server, linked(server.url, clock) as link:
        with pytest.raises(market_errors.Ambiguous) as caught:
            await link.write(call)
    assert "leak" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "why"),
    [("http://127.0.0.1:1", "nobody listens there"), ("http://nowhere.invalid", "its name is not found")],
)
async def test_no_connection_says_why_and_names_the_own_side_first(clock: SteppedClock, url: str, why: str) -> None:
    async with linked(url, clock) as link:
        with pytest.raises(market_errors.Unavailable) as caught:
            await link.read(READ)
    own_side = "check this machine's network, and `url` in the market's table if it is set"
    assert str(caught.value) == f"GET /api/v1/instances/: no connection, {why}, 3 time(s); {own_side}."
