"""The count of the daemon's silence, with the time handed in; and the market's request, over real HTTP."""

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from agent.act.guarding import guard_launch
from agent.guard import guard_settings
from agent.guard.bucket_notes import BucketNotes
from agent.guard.deadman import deadman_switch, market_stop
from agent.guard.deadman.deadman_switch import DeadmanSwitch, SignOfLife
from agent.guard.guard_settings import DeadmanSettings, UnusableSettings
from tests.support.memory_store import MemoryStore

HOUR = 3_600.0
FIRST, SECOND = SignOfLife("a", 1, 0.0), SignOfLife("b", 2, 0.0)
KEY = "instance-key-0123456789"


def answer(switch: DeadmanSwitch, begin: float, end: float, sign: SignOfLife | None) -> float:
    """Let the bucket answer each half minute of a stretch of time; return its end."""
    now = begin
    while now <= end:
        switch.answered(now, sign)
        now += 30.0
    return end


def test_it_is_due_after_the_time_and_not_sooner() -> None:
    switch = DeadmanSwitch(HOUR)
    answer(switch, 0.0, HOUR - 30.0, FIRST)
    assert (switch.silent_seconds, switch.is_due, switch.written) == (HOUR - 30.0, False, 1)
    switch.answered(HOUR - 0.001, FIRST)
    assert not switch.is_due
    switch.answered(HOUR, FIRST)
    assert switch.is_due


def test_time_before_the_first_answer_is_not_silence() -> None:
    switch = DeadmanSwitch(HOUR)
    switch.answered(10 * HOUR, None)
    assert switch.silent_seconds == 0.0


def test_a_bucket_that_is_away_counts_a_minute_at_most() -> None:
    switch = DeadmanSwitch(HOUR)
    switch.answered(0.0, FIRST)
    switch.answered(100 * HOUR, FIRST)
    assert (switch.silent_seconds, switch.is_due) == (60.0, False)
    switch.answered(100 * HOUR + 60.0, FIRST)
    assert switch.silent_seconds == 120.0


def test_a_clock_that_goes_back_takes_nothing_away() -> None:
    switch = DeadmanSwitch(HOUR)
    for now in (1_000.0, 1_050.0, 3.0, 53.0):
        switch.answered(now, FIRST)
    assert switch.silent_seconds == 100.0


@pytest.mark.parametrize("sign", [SECOND, SignOfLife("b", 1, 0.0), SignOfLife("a", 2, 0.0), SignOfLife("a", 0, 0.0)])
def test_another_version_begins_the_count_again(sign: SignOfLife) -> None:
    switch = DeadmanSwitch(HOUR)
    end = answer(switch, 0.0, 2 * HOUR, FIRST)
    assert switch.is_due
    switch.answered(end + 30.0, sign)
    assert (switch.silent_seconds, switch.is_due) == (0.0, False)
    answer(switch, end + 60.0, end + 30.0 + HOUR, sign)
    assert switch.is_due


def test_a_note_that_is_missing_or_cannot_be_read_changes_nothing() -> None:
    switch = DeadmanSwitch(HOUR)
    answer(switch, 0.0, HOUR / 2, FIRST)
    answer(switch, HOUR / 2, HOUR - 30.0, None)
    switch.answered(HOUR - 30.0, FIRST)
    assert (switch.silent_seconds, switch.is_due) == (HOUR - 30.0, False)
    never = DeadmanSwitch(HOUR)
    answer(never, 0.0, HOUR, None)
    assert (never.is_due, never.written) == (True, None)


def test_an_absence_postpones_from_its_first_sight() -> None:
    switch = DeadmanSwitch(HOUR)
    end = answer(switch, 0.0, HOUR / 2, FIRST)
    away = SignOfLife("b", 2, 5 * HOUR)
    answer(switch, end, end + 5 * HOUR - 30.0, away)
    assert not switch.is_due
    switch.answered(end + 5 * HOUR, away)
    assert switch.is_due
    short = DeadmanSwitch(HOUR)
    answer(short, 0.0, HOUR - 30.0, SignOfLife("b", 2, 60.0))
    assert not short.is_due


def test_a_restart_on_the_same_disk_goes_on() -> None:
    before = DeadmanSwitch(HOUR)
    away = SignOfLife("b", 2, 2 * HOUR)
    answer(before, 0.0, HOUR, away)
    after = DeadmanSwitch(HOUR, json.loads(json.dumps(before.facts())))
    assert after.written == 2
    # A clock of another boot.
    answer(after, 0.0, HOUR - 30.0, away)
    assert not after.is_due
    answer(after, HOUR - 30.0, HOUR, away)
    assert (after.silent_seconds, after.is_due) == (2 * HOUR, True)
    heard = DeadmanSwitch(HOUR, before.facts())
    heard.answered(0.0, SignOfLife("c", 3, 0.0))
    assert heard.silent_seconds == 0.0


TORN: list[Any] = [
    None,
    [],
    "x",
    {"silent_seconds": float("nan")},
    {"silent_seconds": -5},
    {"silent_seconds": True},
    {"silent_seconds": "9999999"},
    {"tag": 5, "written": "x", "absent_seconds": []},
]


@pytest.mark.parametrize("left", TORN, ids=range(len(TORN)))
def test_a_torn_count_is_none(left: Any) -> None:
    switch = DeadmanSwitch(HOUR, left)
    switch.answered(0.0, None)
    assert (switch.silent_seconds, switch.is_due) == (0.0, False)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"[" * 60_000,
        b'{"version":2,"written":5,"absent_seconds":0}',
        b'{"version":1}',
        b'{"version":1,"written":true}',
        b'{"version":1,"written":-1}',
        b'{"version":1,"written":8589934593}',
        b'{"version":1,"written":1e308}',
        b'{"version":1,"written":"5"}',
        b'{"version":1,"written":1' + b"0" * 300 + b"}",
        b'{"version":1,"written":1' + b"0" * 60_000 + b"}",
    ],
)
def test_a_hostile_note_is_no_sign_of_life(body: bytes) -> None:
    store = MemoryStore()
    store.put("root/alive.json", body)
    found = BucketNotes(store, "root").read("alive.json")
    assert found is not None
    assert deadman_switch.read_sign(*found) is None


@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        ("60", 60.0),
        ("-60", 0.0),
        ("1e308", 30 * 86_400.0),
        ("1" + "0" * 300, 30 * 86_400.0),
        ("1e999", 30 * 86_400.0),
        ("NaN", 0.0),
        ("true", 0.0),
        ('"60"', 0.0),
        ("null", 0.0),
    ],
)
def test_an_absence_has_bounds(told: str, seconds: float) -> None:
    store = MemoryStore()
    store.put("root/alive.json", b'{"version":1,"written":7,"absent_seconds":%s}' % told.encode())
    found = BucketNotes(store, "root").read("alive.json")
    assert found is not None
    sign = deadman_switch.read_sign(*found)
    assert sign is not None
    assert (sign.written, sign.absent_seconds) == (7, seconds)


# --- its settings ---------------------------------------------------------------------------------------------------
def settings(environment: dict[str, str] | None = None, **changes: Any) -> DeadmanSettings | None:
    deadman = {
        "after_seconds": 21_600,
        "destroy": False,
        "api": "https://market.example",
        **guard_launch.asking("vast"),
    }
    told = {"version": 1, "paths": ["/ckpt"], "lease": "L", "deadman": {**deadman, **changes}}
    own = {"CONTAINER_ID": "12", "CONTAINER_API_KEY": KEY} if environment is None else environment
    return guard_settings.read({"GPUBID_GUARD": json.dumps(told), **own}).deadman


def test_the_settings_of_the_switch_are_bounded() -> None:
    told = settings()
    assert told is not None
    assert (told.after_seconds, told.destroys, told.instance, told.key) == (21_600.0, False, "12", KEY)
    assert KEY not in repr(told)
    for given, kept in [(1, 3_600.0), (-5, 3_600.0), (1e308, 30 * 86_400.0), (10**300, 30 * 86_400.0)]:
        bounded = settings(after_seconds=given)
        assert bounded is not None
        assert bounded.after_seconds == kept
    for destroy in ("yes", 1, None):
        kept_disk = settings(destroy=destroy)
        assert kept_disk is not None
        assert kept_disk.destroys is False


@pytest.mark.parametrize(
    "changes",
    [
        {"after_seconds": None},
        {"after_seconds": "6h"},
        {"after_seconds": True},
        {"stop": None},
        {"stop": ["PUT", "/stop"]},
        {"stop": {"method": ["PUT"], "path": "/instances/{instance}", "body": {}}},
        {"end": {"method": "GET", "path": "/instances/{instance}", "body": {}}},
        {"end": {"method": "DELETE", "path": "/instances/", "body": {}}},
        {"end": {"method": "DELETE", "path": "/instances/{instance} HTTP/1.1\r\nhost: other", "body": {}}},
        {"end": {"method": "DELETE", "path": "@other.example/{instance}", "body": {}}},
        {"end": {"method": "DELETE", "path": "/instances/{instance}", "body": {"all": True}}},
        {"instance_from": None},
        {"key_from": ["CONTAINER_API_KEY"]},
        {"api": None},
        {"api": "market.example"},
        {"api": "http://market.example/api"},
        {"api": "http://127.0.0.1.example/api"},
        {"api": "https://me@market.example/api"},
        {"api": "https://market.example/api?x=1"},
        {"api": "https://market.example/a b"},
        {"api": "https://market.example:x/api"},
        {"api": "https://[market.example/api"},
        {"api": "https://market.example/api\r\nhost: other"},
        {"api": "ftp://market.example"},
    ],
)
def test_a_switch_that_makes_no_sense_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(UnusableSettings):
        settings(**changes)


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"CONTAINER_ID": "12"},
        {"CONTAINER_API_KEY": KEY},
        {"CONTAINER_ID": "12", "CONTAINER_API_KEY": "two\nlines"},
        {"CONTAINER_ID": "12", "CONTAINER_API_KEY": "k\u00e9y"},
        {"CONTAINER_ID": "12/../7", "CONTAINER_API_KEY": KEY},
        {"RUNPOD_POD_ID": "12", "RUNPOD_API_KEY": KEY},
    ],
)
def test_without_the_markets_own_words_there_is_no_key(environment: dict[str, str]) -> None:
    told = settings(environment)
    assert told is not None
    assert not told.has_key


def test_without_a_switch_nothing_is_read() -> None:
    told = {"version": 1, "paths": ["/ckpt"], "lease": "L"}
    assert guard_settings.read({"GPUBID_GUARD": json.dumps(told)}).deadman is None


# --- the request ----------------------------------------------------------------------------------------------------
class Vendor:
    """A market that notes its requests, and gives the answers that the test sets."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str | None, bytes]] = []
        self.status, self.body, self.headers = 200, b'{"success": true}', {"Content-Type": "application/json"}
        self.drips = False
        self.done = threading.Event()
        vendor = self

        class Handler(BaseHTTPRequestHandler):
            def _answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                vendor.asked.append((self.command, self.path, self.headers.get("Authorization"), body))
                self.send_response(vendor.status)
                for name, value in vendor.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(10**9 if vendor.drips else len(vendor.body)))
                self.end_headers()
                self.wfile.write(vendor.body)
                with contextlib.suppress(OSError):
                    while vendor.drips and not vendor.done.wait(0.05):
                        self.wfile.write(b"x")

            do_GET = do_PUT = do_POST = do_DELETE = _answer  # noqa: N815 - the names are the library's

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=[0.01], daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.done.set()
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def vendor() -> Iterator[Vendor]:
    it = Vendor()
    yield it
    it.close()


def door(vendor: Vendor, market: str = "vast") -> DeadmanSettings:
    asked = guard_launch.asking(market)
    own = {str(asked["instance_from"]): "12", str(asked["key_from"]): KEY}
    told = settings(own, api=vendor.url, **asked)
    assert told is not None
    return told


@pytest.mark.parametrize(
    ("market", "destroys", "asked"),
    [
        ("vast", False, ("PUT", "/api/v0/instances/12/", {"state": "stopped"})),
        ("vast", True, ("DELETE", "/api/v0/instances/12/", {})),
        ("runpod", False, ("POST", "/v2/pods/12/action", {"action": "stop"})),
        ("runpod", True, ("POST", "/v2/pods/12/action", {"action": "terminate"})),
    ],
)
def test_the_request_is_the_markets_own(
    vendor: Vendor, market: str, destroys: bool, asked: tuple[str, str, dict[str, str]]
) -> None:
    market_stop.send(door(vendor, market), destroys=destroys)
    ((method, where, key, body),) = vendor.asked
    assert (method, where, json.loads(body)) == asked
    assert key == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("status", "body"), [(403, KEY.encode()), (500, b""), (410, b"{}"), (200, b'{"success": false, "msg": "no"}')]
)
def test_a_refusal_does_not_repeat_what_the_market_says(vendor: Vendor, status: int, body: bytes) -> None:
    vendor.status, vendor.body = status, body
    with pytest.raises(market_stop.MarketFailed, match=f"^the market answered {status}") as refused:
        market_stop.send(door(vendor), destroys=False)
    assert KEY not in str(refused.value)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(vendor: Vendor, status: int) -> None:
    other = Vendor()
    try:
        vendor.status, vendor.headers = status, {"Location": f"{other.url}/api/v0/instances/12/"}
        with pytest.raises(market_stop.MarketFailed, match=f"answered {status}"):
            market_stop.send(door(vendor), destroys=False)
        assert (len(vendor.asked), other.asked) == (1, [])
    finally:
        other.close()


def test_an_answer_without_end_is_cut_in_size_and_time(vendor: Vendor, monkeypatch: pytest.MonkeyPatch) -> None:
    vendor.body = b" " * (market_stop.MOST_BYTES + 1)
    vendor.drips = True
    market_stop.send(door(vendor), destroys=False)
    vendor.body = b" "
    monkeypatch.setattr(market_stop, "MOST_SECONDS", 0.5)
    done = threading.Event()

    def ask() -> None:
        # A promised answer that did not come is one with a cut body, or none: both end here.
        with contextlib.suppress(market_stop.MarketFailed):
            market_stop.send(door(vendor), destroys=False)
        done.set()

    threading.Thread(target=ask, daemon=True).start()
    assert done.wait(20.0)


def test_nobody_there_is_a_failure_without_words(vendor: Vendor) -> None:
    address = door(vendor)
    vendor.close()
    with pytest.raises(market_stop.MarketFailed, match=r"^the market does not answer \(\w+\)$"):
        market_stop.send(address, destroys=False)
