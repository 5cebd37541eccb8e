"""Doctor says whether a standby's role may end the session of a frozen leader, over roles of a real server."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from agent.cli.setup import doctor_ledger_server
from agent.cli.setup.doctor_checks import Line, Verdict
from agent.ledger.server_address import ServerAddress
from tests.support import engines, postgres

psycopg = pytest.importorskip("psycopg")
pytestmark = pytest.mark.skipif(not postgres.is_here(), reason="PostgreSQL is not installed (make tools)")

from agent.ledger.server import server_health, session  # noqa: E402 - needs the driver

SCHEMA = "gpubid"
SECOND = "Second-box"


@pytest.fixture(scope="module")
def superuser() -> Iterator[str]:
    with postgres.serving() as server:
        engines.make_role(server.url)
        for role in (SECOND, "third"):
            order(server.url, f"CREATE ROLE \"{role}\" LOGIN PASSWORD '{postgres.PASSWORD}'")
        order(server.url, "GRANT pg_signal_backend, pg_read_all_stats TO third")
        yield server.url


def order(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as raw:
        raw.execute(statement.encode())


def leading(url: str) -> closing[Any]:
    """Return a session that leads, as a daemon at this address has it."""
    address = ServerAddress(url, SCHEMA)
    raw = session.connect(address, "", reads=False)
    session.take_lock(raw, address, session.LOCK_PATIENCE_SECONDS, session.LEADER)
    return closing(raw)


def said(url: str) -> Line:
    """Return doctor's line for a box whose daemon has this address."""
    found = server_health.look(ServerAddress(url, SCHEMA), "")
    (line,) = (each for each in doctor_ledger_server.judged(found) if each.name == "takeover")
    return line


def end_as(url: str) -> None:
    """End the leader's session as a standby at this address does."""
    with closing(session.connect(ServerAddress(url, SCHEMA), "", reads=False)) as raw:
        holder = session.holder(raw, SCHEMA, session.LEADER)
        assert holder is not None
        session.end(raw, holder.process)
        assert session.holder(raw, SCHEMA, session.LEADER) is None


def second(url: str) -> str:
    return url.replace("lab:", f"{SECOND}:")


def test_one_role_on_both_boxes_may_take_over_and_nobody_leads_before(superuser: str) -> None:
    fleet = engines.role_url(superuser)
    assert (said(fleet).verdict, "nobody leads" in said(fleet).sentence) == (Verdict.OK, True)
    with leading(fleet):
        assert (said(fleet).verdict, "may end the session" in said(fleet).sentence) == (Verdict.OK, True)
        end_as(fleet)


def test_another_role_fails_until_the_command_that_doctor_prints_was_run(superuser: str) -> None:
    with leading(engines.role_url(superuser)):
        refused = said(second(superuser))
        assert (refused.verdict, "may not end a frozen leader" in refused.sentence) == (Verdict.FAIL, True)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            end_as(second(superuser))
        order(superuser, f'GRANT pg_signal_backend TO "{SECOND}"')
        blind = said(second(superuser))
        assert (blind.verdict, "may not see whether a commit" in blind.sentence) == (Verdict.FAIL, True)
        order(superuser, f'REVOKE pg_signal_backend FROM "{SECOND}"')
        order(superuser, blind.fix.partition(", or ")[2])
        assert said(second(superuser)).verdict is Verdict.OK
        end_as(second(superuser))


def test_nobody_but_a_superuser_may_end_the_session_of_one(superuser: str) -> None:
    third = superuser.replace("lab:", "third:")
    with leading(superuser):
        refused = said(third)
        assert (refused.verdict, "lab is a superuser" in refused.sentence) == (Verdict.FAIL, True)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            end_as(third)
        assert said(superuser).verdict is Verdict.OK
