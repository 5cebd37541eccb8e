"""Logs: their shape, and that no secret is in them."""

import io
import json
import logging
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from agent.telemetry import logging as logs
from agent.telemetry.redaction import LONGEST, REDACTED, Redactor

AT = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
KEY = "0123456789abcdef" * 4


@pytest.fixture
def redactor() -> Redactor:
    return Redactor()


@pytest.fixture
def stream(redactor: Redactor) -> Iterator[io.StringIO]:
    """Configure logs into a stream, and leave the process as it was."""
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    target = io.StringIO()
    logs.configure(redactor, lambda: AT, level="info", stream=target, environment={})
    yield target
    root.handlers, root.level = handlers, level
    structlog.reset_defaults()


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_an_event_is_one_json_line(stream: io.StringIO) -> None:
    with structlog.contextvars.bound_contextvars(cycle=7):
        structlog.get_logger("gpubid.journal").info("intent.recorded", intent="a1", rate=0.25, lease=None)
    expected = {"event": "intent.recorded", "intent": "a1", "rate": 0.25, "lease": None, "level": "info", "cycle": 7}
    assert lines(stream) == [{**expected, "at": "2026-11-20T12:00:00.000+00:00"}]


def test_debug_is_for_those_who_ask(stream: io.StringIO, redactor: Redactor) -> None:
    structlog.get_logger("gpubid").debug("cycle.ended")
    assert stream.getvalue() == ""
    logs.configure(redactor, lambda: AT, level="debug", stream=stream, environment={})
    structlog.get_logger("gpubid").debug("cycle.ended")
    assert lines(stream)[0]["level"] == "debug"


def test_libraries_speak_in_the_same_shape_and_only_when_it_matters(stream: io.StringIO) -> None:
    logging.getLogger("aiohttp.access").info("GET / 200")
    logging.getLogger("aiohttp.server").warning("bad request from %s", "10.0.0.1")
    (line,) = lines(stream)
    assert (line["event"], line["level"]) == ("bad request from 10.0.0.1", "warning")


def test_a_traceback_is_kept_and_redacted(stream: io.StringIO, redactor: Redactor) -> None:
    redactor.register("hunter2-hunter2")
    try:
        int("hunter2-hunter2")
    except ValueError:
        structlog.get_logger("gpubid").exception("cycle.failed")
    (line,) = lines(stream)
    assert "ValueError: invalid literal for int() with base 10: '[redacted]'" in line["exception"]


@pytest.mark.parametrize(
    "fields",
    [
        {"reply": f"unknown key {KEY}"},
        {"header": f"Bearer {KEY[:20]}"},
        {"url": "https://h/api/v0/users/current?api_key=hunter2-hunter2&x=1"},
        {"nested": {"deep": [{"note": "hunter2-hunter2"}]}},
        {"nested": {"hunter2-hunter2": 1}},
        {"api_key": "short"},
        {"env": {"A": "short"}},
        {"body": b"hunter2-hunter2"},
        {"error": ValueError("hunter2-hunter2")},
        {"quoted": "a%2Fhunter2%2Fb"},
        {"authorization": ["short"]},
    ],
    ids=str,
)
def test_no_secret_reaches_a_log(stream: io.StringIO, redactor: Redactor, fields: dict[str, Any]) -> None:
    redactor.register("hunter2-hunter2")
    redactor.register("a/hunter2/b")
    structlog.get_logger("gpubid").warning("market.unavailable", **fields)
    text = stream.getvalue()
    assert lines(stream)[0]["event"] == "market.unavailable"
    assert not any(secret in text for secret in ("hunter2", KEY, KEY[:20], "short"))


@given(st.text(min_size=6, max_size=40), st.lists(st.text(max_size=30)), st.sampled_from(["", " ", "&", "x"]))
def test_a_registered_secret_is_never_seen_whole(secret: str, around: list[str], between: str) -> None:
    redactor = Redactor()
    redactor.register(secret)
    text = between.join([secret, *around, secret])
    shown = redactor.text(text)
    assert secret not in shown.replace(REDACTED, "\0")


def test_what_is_too_short_to_be_a_key_is_not_taken_out_of_plain_words(redactor: Redactor) -> None:
    redactor.register("a")
    assert redactor.text("a market") == "a market"


def test_values_are_bounded(stream: io.StringIO) -> None:
    deep: Any = "x"
    for _ in range(200):
        deep = [deep]
    structlog.get_logger("gpubid").info(
        "e", long="y z" * 10_000, many=list(range(1000)), deep=deep, wide={str(n): n for n in range(999)}
    )
    (line,) = lines(stream)
    assert len(line["long"]) < LONGEST + 50
    assert len(line["many"]) == len(line["wide"]) == 50
    assert len(stream.getvalue()) < 5_000


def test_a_line_break_in_a_value_does_not_make_a_second_event(stream: io.StringIO) -> None:
    structlog.get_logger("gpubid").info("e", message='x\n{"event": "intent.confirmed"}')
    assert len(stream.getvalue().splitlines()) == 1


def test_a_terminal_gets_colours_and_the_journal_does_not(redactor: Redactor) -> None:
    import pty

    master, slave = pty.openpty()
    with os.fdopen(slave, "w") as terminal, os.fdopen(master, "rb") as screen:
        found = os.fstat(terminal.fileno())
        journal = {"JOURNAL_STREAM": f"{found.st_dev}:{found.st_ino}"}
        root = logging.getLogger()
        handlers, level = root.handlers, root.level
        for environment in ({}, journal):
            logs.configure(redactor, lambda: AT, stream=terminal, environment=environment)
            structlog.get_logger("gpubid").info("lease.interrupted")
            terminal.flush()
        root.handlers, root.level = handlers, level
        structlog.reset_defaults()
        coloured, plain = [screen.readline().decode() for _ in range(2)]
    assert "\x1b[" in coloured
    assert json.loads(plain)["event"] == "lease.interrupted"


def test_a_stream_without_a_file_is_no_journal() -> None:
    assert not logs.is_journal(io.StringIO(), {"JOURNAL_STREAM": "1:2"})
    assert not logs.is_journal(sys.__stderr__ or sys.stderr, {})
