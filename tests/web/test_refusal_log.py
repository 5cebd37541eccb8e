"""The log of refusals: complete in number, bounded in lines, and without text that a sender wants to write into it."""

from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs

from agent.ledger.ledger_errors import Code, LedgerError
from agent.web.request_checks.refusal_log import MOST_KINDS, QUIET_SECONDS, Refusals
from tests.support.raw import Surfaces, surfaces

FORGED = b"POST /webhooks/vast HTTP/1.1\r\nHost: h\r\nX-Vast-Signature-256: sha256=\xff\r\nContent-Length: 0\r\n\r\n"
TIMES = 200


class Seconds:
    """A monotonic clock that a test moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Surfaces]:
    with surfaces(tmp_path_factory.mktemp("s")) as made:
        yield made


@pytest.mark.parametrize(
    ("kind", "raw", "status"),
    [
        ("bad_delivery", FORGED, 401),
        ("foreign_name", b"GET /metrics HTTP/1.1\r\nHost: evil\r\n\r\n", 421),
        ("foreign_page", b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: null\r\nContent-Length: 0\r\n\r\n", 403),
        ("no_request", b"GET /\xff HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 400),
    ],
)
def test_a_flood_of_refusals_is_one_line_in_the_log(both: Surfaces, kind: str, raw: bytes, status: int) -> None:
    with capture_logs() as logs:
        assert {both.over_tcp(raw).status for _ in range(TIMES)} == {status}
        both.page.world.clock.advance(QUIET_SECONDS + 1)
        assert both.over_tcp(raw).status == status
    told = [line for line in logs if line.get("kind") == kind]
    assert [line["times"] for line in told] == [1, TIMES]
    assert both.complaints == []


def test_a_line_holds_no_control_characters_and_little_text() -> None:
    with capture_logs() as logs:
        Refusals(Seconds()).refused("foreign_name", "127.0.0.1", "a\n\x1b[31m" + "x" * 10_000)
    assert str(logs[0]["about"]).isprintable()
    assert len(str(logs[0]["about"])) <= 100


def test_a_defect_is_logged_with_its_traceback_once_a_minute() -> None:
    seconds = Seconds()
    refusals = Refusals(seconds)
    with capture_logs() as logs:
        for _ in range(5):
            refusals.failed(ValueError("x"))
        seconds.now += QUIET_SECONDS
        refusals.failed(ValueError("x"))
    assert [line["times"] for line in logs] == [1, 5]
    assert isinstance(logs[0]["exc_info"], ValueError)


def test_a_ledger_that_does_not_answer_is_no_defect_and_is_logged_with_what_is_wrong() -> None:
    refusals = Refusals(Seconds())
    with capture_logs() as logs:
        for code in (Code.UNWRITABLE, Code.UNWRITABLE, Code.CORRUPT):
            refusals.failed(LedgerError(code, "the server is away"))
    assert [(line["code"], line["times"]) for line in logs] == [("unwritable", 1), ("corrupt", 1)]
    assert logs[0]["reason"] == "the server is away"
    assert "exc_info" not in logs[0]


def test_kinds_are_bounded_too() -> None:
    refusals = Refusals(Seconds())
    with capture_logs() as logs:
        for number in range(2 * MOST_KINDS):
            refusals.refused(str(number), None)
    assert len(logs) == MOST_KINDS
