"""The sessions of a lead and its epoch: what ends them, and what is none of them."""

from pathlib import Path

import pytest

from agent.clock import SteppedClock
from agent.ledger import storage
from agent.ledger.ledger_errors import Code, LedgerError
from agent.ledger.server_address import ServerAddress
from agent.ledger.store import Ledger
from agent.systemd import CredentialError
from tests.ledger.test_leadership import Box, _no_thread, address, box
from tests.ledger.test_server import record, refusal
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


async def test_a_password_that_cannot_be_read_any_more_leaves_the_ledger_unwritable_until_it_can(
    address: ServerAddress, path: Path, clock: SteppedClock
) -> None:
    """Its error passed by everything that handles an unwritable ledger: no kill and no hard cap ended a lease."""
    bare = ServerAddress(address.url.replace(f":{postgres.PASSWORD}", ""), address.schema, "ledger_password")
    is_there = True

    def password(*_: object) -> str:
        if is_there:
            return postgres.PASSWORD
        raise CredentialError("no_credential", "there is no key named ledger_password")

    ledger = await Ledger.open(storage.of(path, bare, password), clock=clock)
    is_there = False
    with psycopg.connect(address.url, autocommit=True) as raw:
        writer = session.holder(raw, address.schema)
        assert writer is not None
        session.end(raw, writer.process)
    assert (await refusal(ledger, 1)).code is Code.UNWRITABLE
    refused = await refusal(ledger, 2)
    assert refused.code is Code.UNWRITABLE
    assert "without its password (there is no key named ledger_password)" in refused.sentence
    assert not ledger.is_writable
    with pytest.raises(LedgerError, match="without its password"):
        await ledger.reader()
    is_there = True
    await record(ledger, 3)
    assert ledger.is_writable
    await ledger.close()
