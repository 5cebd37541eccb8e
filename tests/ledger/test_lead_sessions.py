"""The sessions of a lead and its epoch: what ends them, and what is none of them."""

from pathlib import Path

import pytest

from agent.ledger.ledger_errors import Code, LedgerError
from agent.ledger.server_address import ServerAddress
from tests.ledger.test_leadership import Box, _no_thread, address, box
from tests.support import postgres
from tests.support.standby_names import administered

psycopg = pytest.importorskip("psycopg")
pytestmark = pytest.mark.skipif(not postgres.is_here(), reason="PostgreSQL is not installed (make tools)")

from agent.ledger.server import session  # noqa: E402 - needs the driver
from agent.ledger.server.server_storage import ServerStorage  # noqa: E402

__all__ = ["_no_thread", "address", "box"]


def test_the_server_gives_an_unanswered_session_up_as_soon_as_a_silent_one(box: Box) -> None:
    shown = box.lead._raw.execute("SHOW tcp_user_timeout").fetchone()
    assert shown == (str(session.UNANSWERED_SECONDS * 1000),), "in milliseconds"


def test_a_number_that_a_server_of_yesterday_gives_again_is_another_epoch(box: Box, address: ServerAddress) -> None:
    """A leader whose epoch never reached the promoted replica went on with its old memory after the next one."""
    with administered(address) as raw:
        raw.execute(f"SET search_path TO {address.schema}")
        raw.execute("UPDATE leader SET since = since + interval '1 second'")
    box.lead.beat()
    assert box.code is Code.DEPOSED


def test_who_slept_since_it_won_does_not_end_the_session_of_who_leads_now(
    box: Box, path: Path, address: ServerAddress
) -> None:
    """It ended that leader's session, perhaps in a commit, and began an epoch without the lead."""
    storage = ServerStorage(path.with_name("b"), address, lambda *_: "")
    slept = storage.connected()
    storage.win(slept)
    with psycopg.connect(address.url, autocommit=True) as raw:
        session.end(raw, slept.info.backend_pid)
        writes = session.holder(raw, address.schema)
        with pytest.raises(LedgerError, match="another daemon may lead") as refused:
            storage.lock()
        assert (refused.value.code, session.holder(raw, address.schema)) == (Code.UNWRITABLE, writes)
    assert writes is not None
    assert box.code is None
