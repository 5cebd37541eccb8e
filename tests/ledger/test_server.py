"""A ledger on a real PostgreSQL server: one writer, certain commits, refusals in our words, and the reading role."""

import asyncio
import importlib.util
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agent.clock import SteppedClock
from agent.ledger import storage, store
from agent.ledger.ledger_errors import Code, LedgerError
from agent.ledger.reader import open_reader
from agent.ledger.server import server_tables, session
from agent.ledger.server_address import ServerAddress
from agent.ledger.store import Ledger
from tests.ledger.values import intent, lease
from tests.support import engines, postgres
from tests.support.standby_names import administered, lacking_replica

psycopg = pytest.importorskip("psycopg")
FIRST_LEADER = """
    CREATE TABLE leader (one BIGINT PRIMARY KEY CHECK (one = 1), epoch BIGINT NOT NULL,
        since TIMESTAMPTZ NOT NULL DEFAULT now(), beat_at TIMESTAMPTZ NOT NULL DEFAULT now())
"""
"""Table `leader` as the first schema on a server had it."""
pytestmark = pytest.mark.skipif(not postgres.is_here(), reason="PostgreSQL is not installed (make tools)")


@pytest.fixture
def address(database: str, path: Path) -> ServerAddress:
    return ServerAddress(database, engines.schema(path))


@pytest.fixture
async def served(address: ServerAddress, path: Path, clock: SteppedClock) -> AsyncIterator[Ledger]:
    opened = await Ledger.open(storage.of(path, address), clock=clock)
    yield opened
    await opened.close()


def end_sessions(address: ServerAddress) -> None:
    with administered(address) as raw:
        raw.execute("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = %s", (engines.ROLE,))


async def record(ledger: Ledger, number: int) -> None:
    async with ledger.transaction() as tx:
        tx.record_intent(intent(number))


async def refusal(ledger: Ledger, number: int) -> LedgerError:
    with pytest.raises(LedgerError) as refused:
        await record(ledger, number)
    return refused.value


def known(ledger: Ledger) -> set[str]:
    return {each.intent_id for each in ledger.recollection().intents}


async def test_a_second_daemon_is_refused_while_the_first_one_runs(
    served: Ledger, address: ServerAddress, path: Path, clock: SteppedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.ledger.server.session.LOCK_PATIENCE_SECONDS", 0.0)
    with pytest.raises(LedgerError, match="stop that daemon first") as refused:
        await Ledger.open(storage.of(path.with_name("other.sqlite"), address), clock=clock)
    assert refused.value.code is Code.LOCKED
    await record(served, 1)


async def test_a_lost_session_pays_for_nothing_once_and_then_goes_on(served: Ledger, address: ServerAddress) -> None:
    await record(served, 1)
    end_sessions(address)
    refused = await refusal(served, 2)
    assert refused.code is Code.UNWRITABLE
    assert "doctor" in refused.sentence
    assert served.why_unwritable == refused.sentence
    assert "disk" not in refused.sentence
    assert known(served) == {"n1"}, "what was committed is still known"
    await record(served, 2)
    assert served.is_writable
    assert known(served) == {"n1", "n2"}


async def test_a_session_whose_lock_was_confirmed_to_nobody_is_no_other_daemon(
    served: Ledger, address: ServerAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line broke before the answer. The daemon ended, and forgot what it owed the ledger, a person's kill too."""
    lost: list[Any] = []
    locked, closed = session.take_lock, psycopg.Connection.close

    def cut(raw: Any, *words: Any, **more: Any) -> None:
        locked(raw, *words, **more)
        if not lost:
            lost.append(raw)
            raise psycopg.OperationalError("the line broke")

    monkeypatch.setattr(session, "take_lock", cut)
    # The server has not noticed that nobody is there any more.
    monkeypatch.setattr(psycopg.Connection, "close", lambda raw: None if raw in lost else closed(raw))
    end_sessions(address)
    codes = [(await refusal(served, number)).code for number in (1, 2, 3)]
    assert codes == [Code.UNWRITABLE] * 3
    closed(lost.pop())
    lost.append(None)
    await record(served, 4)
    assert known(served) == {"n4"}


async def test_a_deposed_daemon_writes_nothing_any_more(
    served: Ledger, address: ServerAddress, path: Path, clock: SteppedClock
) -> None:
    await record(served, 1)
    end_sessions(address)
    other = await Ledger.open(
        storage.of(path.with_name("other.sqlite"), address), clock=clock, fleet_id=served.fleet_id
    )
    await record(other, 2)
    # The first refusal is the lost session. From the second one on the daemon has seen that another one leads.
    codes = [(await refusal(served, number)).code for number in (3, 4, 5)]
    assert codes[-1] is Code.DEPOSED
    await other.close()
    assert (await refusal(served, 6)).code is Code.DEPOSED, (
        "the other one has written: this memory is out of date for good"
    )
    assert {row[0] for row in engines.rows(path, "SELECT intent_id FROM intents", on=address)} == {"n1", "n2"}


@pytest.mark.parametrize(
    "statement",
    ["UPDATE leader SET epoch = epoch + 1", "UPDATE leader SET since = since + interval '1 second'"],
    ids=["next", "again"],
)
async def test_an_epoch_that_is_over_stops_even_a_session_that_has_the_lock(
    served: Ledger, address: ServerAddress, statement: str
) -> None:
    """So does a pooler that gives sessions to whoever asks: the lock is of no use there, the number is.

    A server that went back in time gives a number again.
    """
    with administered(address) as raw:
        raw.execute(f"SET search_path TO {address.schema}")
        raw.execute(statement)
    assert (await refusal(served, 1)).code is Code.DEPOSED


async def test_a_commit_that_waits_for_its_replica_counts_as_unwritable(
    served: Ledger, address: ServerAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    await record(served, 1)
    monkeypatch.setattr(store, "COMMIT_SECONDS", 0.3)
    with lacking_replica(address) as raw:
        assert (await refusal(served, 2)).code is Code.UNWRITABLE
        waiting = raw.execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'").fetchone()[0]
        assert waiting == 1, "the commit was not cancelled: it still waits at the server"
        # Its session has the lock until its fate is known, so nobody reads a state that may still change.
        assert (await refusal(served, 3)).code is Code.UNWRITABLE
        assert known(served) == {"n1"}
    refused: list[LedgerError] = []
    for number in range(4, 400):
        try:
            await record(served, number)
            break
        except LedgerError as error:
            refused.append(error)
            await asyncio.sleep(0.02)
    assert {each.code for each in refused} <= {Code.UNWRITABLE}
    assert {"n1", "n2"} < known(served), "the commit was confirmed at last, and is known"


async def test_a_commit_with_a_warning_is_not_believed(served: Ledger, address: ServerAddress) -> None:
    """A commit whose wait was cancelled ends without an error, and is gone if the replica takes over."""
    with lacking_replica(address) as raw:
        waiting = asyncio.create_task(refusal(served, 1))
        query = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        for _ in range(1000):
            if raw.execute(query).fetchall():
                break
            await asyncio.sleep(0.01)
        refused = await waiting
    assert refused.code is Code.UNWRITABLE
    assert "did not confirm" in refused.sentence


async def test_a_full_disk_and_a_broken_rule_have_their_codes(served: Ledger, address: ServerAddress) -> None:
    await record(served, 1)
    with administered(address) as raw:
        raw.execute(f"SET search_path TO {address.schema}")
        raw.execute(
            "CREATE FUNCTION out_of_room() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE disk_full; END $$"
        )
        raw.execute("CREATE TRIGGER out_of_room BEFORE INSERT ON intents EXECUTE FUNCTION out_of_room()")
    assert (await refusal(served, 2)).code is Code.UNWRITABLE
    with administered(address) as raw:
        raw.execute(f"DROP FUNCTION {address.schema}.out_of_room() CASCADE")
    async with served.transaction() as tx:
        tx.open_lease(lease(1, instance_id="same"))

    async def open_twice() -> None:
        async with served.transaction() as tx:
            tx.open_lease(lease(2, instance_id="same"))

    with pytest.raises(LedgerError) as refused:
        await open_twice()
    assert refused.value.code is Code.CONFLICT


async def test_a_server_that_does_not_answer_or_refuses_the_password_is_named_without_it(
    address: ServerAddress, path: Path, clock: SteppedClock
) -> None:
    wrong = address.url.replace(postgres.PASSWORD, "wr0ng-and-s3cret")
    nowhere = "postgresql://somebody@127.0.0.1:1/nothing"
    for url in (wrong, nowhere):
        with pytest.raises(LedgerError) as refused:
            await Ledger.open(storage.of(path, ServerAddress(url)), clock=clock)
        assert refused.value.code is Code.UNREACHABLE
        assert "wr0ng" not in refused.value.sentence
        assert "127.0.0.1" in refused.value.sentence


async def test_the_password_comes_from_its_credential(address: ServerAddress, path: Path, clock: SteppedClock) -> None:
    bare = ServerAddress(address.url.replace(f":{postgres.PASSWORD}", ""), address.schema, "ledger_password")
    asked: list[tuple[str, Path | None]] = []

    def password(name: str, file: Path | None) -> str:
        asked.append((name, file))
        return postgres.PASSWORD

    ledger = await Ledger.open(storage.of(path, bare, password), clock=clock)
    assert set(asked) == {("ledger_password", None)}
    await ledger.close()


async def test_the_reading_role_reads_and_may_not_write(
    address: ServerAddress, path: Path, clock: SteppedClock
) -> None:
    with administered(address) as raw:
        raw.execute(f"CREATE ROLE onlooker LOGIN PASSWORD '{postgres.PASSWORD}'")
    shown = ServerAddress(address.url, address.schema, reader="onlooker")
    ledger = await Ledger.open(storage.of(path, shown), clock=clock)
    await record(ledger, 1)
    reader = await open_reader(storage.of(path, shown))
    assert [each.intent_id for each in await reader.intents()] == ["n1"]
    await reader.close()
    url = address.url.replace(f"{engines.ROLE}:", "onlooker:")
    with psycopg.connect(url, autocommit=True) as raw, pytest.raises(psycopg.errors.InsufficientPrivilege):
        raw.execute(f"TRUNCATE {address.schema}.intents")
    await ledger.close()


async def test_a_reading_role_without_a_right_is_no_damaged_ledger(
    address: ServerAddress, path: Path, clock: SteppedClock
) -> None:
    """It said that the database is damaged and is to be restored."""
    absent = ServerAddress(address.url, address.schema, reader="nobody_here")
    await (await Ledger.open(storage.of(path, address), clock=clock)).close()
    with pytest.raises(LedgerError) as refused:
        await Ledger.open(storage.of(path, absent), clock=clock)
    assert (refused.value.code, "CREATE ROLE nobody_here" in refused.value.sentence) == (Code.UNREADABLE, True)
    with administered(address) as raw:
        raw.execute(f"CREATE ROLE stranger LOGIN PASSWORD '{postgres.PASSWORD}'")
    shown = ServerAddress(address.url, address.schema, reader="stranger")
    with pytest.raises(LedgerError) as refused:
        await open_reader(storage.of(path, shown))
    assert refused.value.code is Code.UNREADABLE
    assert "stranger may not read" in refused.value.sentence
    assert "names that role as reader" in refused.value.sentence


async def test_two_fleets_of_one_server_do_not_see_each_other(
    served: Ledger, address: ServerAddress, path: Path, clock: SteppedClock
) -> None:
    beside = ServerAddress(address.url, address.schema + "_b")
    other = await Ledger.open(storage.of(path.with_name("b.sqlite"), beside), clock=clock)
    await record(served, 1)
    await record(other, 2)
    assert (known(served), known(other)) == ({"n1"}, {"n2"})
    assert served.fleet_id != other.fleet_id
    await other.close()


async def test_what_is_no_ledger_of_this_release_is_refused(
    address: ServerAddress, path: Path, clock: SteppedClock
) -> None:
    await (await Ledger.open(storage.of(path, address), clock=clock)).close()
    for version, code in (("9999", Code.NEWER_SCHEMA), ("0001", Code.UNRELEASED_SCHEMA)):
        with administered(address) as raw:
            raw.execute(f"SET search_path TO {address.schema}")
            raw.execute("UPDATE alembic_version SET version_num = %s", (version,))
        with pytest.raises(LedgerError) as refused:
            await Ledger.open(storage.of(path, address), clock=clock)
        assert refused.value.code is code
    with administered(address) as raw:
        raw.execute(f"DROP TABLE {address.schema}.meta")
    with pytest.raises(LedgerError) as refused:
        await Ledger.open(storage.of(path, address), clock=clock)
    assert refused.value.code is Code.CORRUPT


async def test_the_check_finds_what_contradicts_itself(served: Ledger, address: ServerAddress) -> None:
    await record(served, 1)
    reader = await served.reader()
    assert (await reader.verify()).is_sound
    with administered(address) as raw:
        raw.execute(f"SET search_path TO {address.schema}")
        raw.execute("UPDATE intents SET state = 'sent'")
    found = await reader.verify()
    assert found.findings == ("intent sent without a time: n1",)
    assert found.counted["intents"] == 1


ONLY_ASKED = (
    "psycopg",
    "sqlalchemy.dialects.postgresql",
    "agent.ledger.server",
    "agent.ledger.ledger_move",
    "agent.ledger.table_copy",
    "agent.ledger.file.restore",
    "agent.standby",
    "agent.web.standby_site",
    "agent.cli.setup.doctor_ledger_server",
)
"""Modules, with all in them, for which a server, a standby or a move must have been asked."""


def test_a_default_daemon_imports_nothing_of_it(path: Path) -> None:
    program = (
        "import asyncio, sys; from pathlib import Path; import agent.cli.main, agent.app, agent.daemon\n"
        "from agent.clock import SystemClock; from agent.ledger import storage; from agent.ledger.store import Ledger\n"
        "async def main():\n"
        "    ledger = await Ledger.open(storage.of(Path(sys.argv[1])), clock=SystemClock())\n"
        "    await ledger.close()\n"
        "asyncio.run(main()); print(*sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True)
    loaded = set(said.stdout.split())
    for name in ONLY_ASKED:
        assert importlib.util.find_spec(name) is not None, "it is a module"
        assert not {each for each in loaded if each == name or each.startswith(f"{name}.")}


def test_a_missing_driver_is_named_with_its_extra() -> None:
    program = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from pathlib import Path; from agent.ledger import storage\n"
        "from agent.ledger.server_address import ServerAddress\n"
        "storage.of(Path('x'), ServerAddress('postgresql://h/d'))"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "install gpubid[postgresql]" in said.stderr


def shape(raw: Any, name: str) -> list[tuple[Any, ...]]:
    """Return the columns, constraints and indexes of a schema."""
    columns = (
        "SELECT table_name, column_name, data_type, collation_name, is_nullable, is_identity, column_default "
        "FROM information_schema.columns WHERE table_schema = %s ORDER BY table_name, column_name"
    )
    rules = (
        "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(pg_constraint.oid) FROM pg_constraint "
        "JOIN pg_namespace ON pg_namespace.oid = connamespace WHERE nspname = %s ORDER BY 1, 2"
    )
    indexes = "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = %s ORDER BY 1, 2"
    raw.execute(f"SET search_path TO {name}")
    rows = [row for query in (columns, rules, indexes) for row in raw.execute(query, (name,)).fetchall()]
    return [tuple(str(value).replace(f"{name}.", "") for value in row) for row in rows]


async def test_upgrades_from_the_first_tables_lead_to_the_present_ones(
    address: ServerAddress, path: Path, clock: SteppedClock
) -> None:
    """A migration runs on both engines; one with words of SQLite alone fails here."""
    first = ServerAddress(address.url, address.schema + "_first")
    text = Path(__file__).with_name(f"server_{server_tables.FIRST}.sql").read_text()
    with psycopg.connect(address.url, autocommit=True) as raw:
        raw.execute(f"CREATE SCHEMA {first.schema}")
        raw.execute(f"SET search_path TO {first.schema}")
        raw.execute(f"{text}; {FIRST_LEADER}; {server_tables.VERSION}")
        raw.execute("INSERT INTO alembic_version VALUES (%s)", (server_tables.FIRST,))
        server_tables.upgrade(raw)
    for place in (first, address):
        await (await Ledger.open(storage.of(path.with_name(place.schema), place), clock=clock)).close()
    with administered(address) as raw:
        assert shape(raw, first.schema) == shape(raw, address.schema)
        assert len(shape(raw, first.schema)) > 300
