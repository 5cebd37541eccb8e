"""The lead over a real PostgreSQL server: who has it, when it can be shown, and how it passes on. Time is handed in."""

import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.cli.setup import doctor_ledger_server
from agent.cli.setup.doctor_checks import Verdict
from agent.ledger.file import sidecar
from agent.ledger.ledger_errors import Code, LedgerError
from agent.ledger.server_address import ServerAddress
from tests.support import engines, postgres
from tests.support.programs import PATIENCE_SECONDS
from tests.support.standby_names import administered, lacking_replica

psycopg = pytest.importorskip("psycopg")
pytestmark = pytest.mark.skipif(not postgres.is_here(), reason="PostgreSQL is not installed (make tools)")

from agent.ledger.server import beat_watch, campaign, leader_row, leadership, server_health, session  # noqa: E402 - needs the driver
from agent.ledger.server.beat_watch import BeatWatch  # noqa: E402
from agent.ledger.server.campaign import Campaign  # noqa: E402
from agent.ledger.server.server_storage import ServerStorage  # noqa: E402


class Boot:
    """Seconds since a machine's start, which a test moves."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


class Box:
    """A machine with a daemon's right to write. Its beats are written when the test says so."""

    def __init__(self, path: Path, address: ServerAddress) -> None:
        self.boot = Boot()
        self.storage = ServerStorage(path, address, lambda *_: "", self.boot)
        self.held = self.storage.lock()
        self.storage.prepare()
        self.lead = self.held.lead

    @property
    def code(self) -> Code | None:
        lost = self.held.lost()
        return None if lost is None else lost.code


@pytest.fixture(autouse=True)
def _no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leadership, "BEAT_SECONDS", threading.TIMEOUT_MAX)
    monkeypatch.setattr(session, "LOCK_PATIENCE_SECONDS", 0.0)


@pytest.fixture
def address(database: str, path: Path) -> ServerAddress:
    return ServerAddress(database, engines.schema(path))


@pytest.fixture
def box(path: Path, address: ServerAddress) -> Iterator[Box]:
    leader = Box(path, address)
    yield leader
    leader.held.release()


def epoch_of(box: Box) -> int:
    """Return the number of the epoch of a box."""
    assert box.lead._epoch is not None
    return box.lead._epoch.number


def end_session(box: Box) -> None:
    """End the session that leads, as an operator or another daemon would."""
    with psycopg.connect(box.storage.address.url, autocommit=True) as raw:
        session.end(raw, box.lead._process)


def test_the_lead_can_be_shown_for_eight_seconds_after_a_beat(box: Box) -> None:
    assert box.code is None
    box.boot.seconds += leader_row.SHOWN_SECONDS - 0.1
    assert box.code is None
    box.boot.seconds += 0.2
    assert box.code is Code.UNLED
    box.lead.beat()
    assert box.code is None


def test_eight_seconds_end_before_anybody_may_take_over() -> None:
    assert leader_row.SHOWN_SECONDS < beat_watch.FROZEN_SECONDS
    keepalive = session.KEEPALIVE
    noticed = (
        keepalive["tcp_keepalives_idle"] + keepalive["tcp_keepalives_interval"] * keepalive["tcp_keepalives_count"]
    )
    assert noticed > leader_row.SHOWN_SECONDS
    assert session.UNANSWERED_SECONDS > leader_row.SHOWN_SECONDS


def test_a_paying_request_leaves_within_five_seconds_of_its_record_and_an_ending_one_later(box: Box) -> None:
    pays, ends = box.held.permit(is_paying=True), box.held.permit(is_paying=False)
    assert (pays(), ends()) == ("", "")
    box.boot.seconds += leadership.SENT_SECONDS
    assert "another daemon may lead" in pays()
    assert not ends()
    box.boot.seconds += leader_row.SHOWN_SECONDS
    assert "cannot show that it leads" in ends()


def test_a_broken_session_shows_no_lead_until_it_has_the_lock_back(box: Box) -> None:
    end_session(box)
    box.lead.beat()
    assert box.code is Code.UNLED
    box.lead.beat()
    assert box.code is None


def test_a_second_box_is_refused_and_takes_over_a_lost_lead_with_the_next_epoch(
    box: Box, path: Path, address: ServerAddress
) -> None:
    with pytest.raises(LedgerError) as refused:
        Box(path.with_name("b"), address)
    assert refused.value.code is Code.LOCKED
    end_session(box)
    other = Box(path.with_name("b"), address)
    assert (other.code, epoch_of(other)) == (None, epoch_of(box) + 1)
    for _ in range(3):
        box.lead.beat()
    assert box.code is Code.DEPOSED
    other.held.release()
    box.lead.beat()
    assert box.code is Code.DEPOSED, "for good"


def test_a_beat_that_its_replica_did_not_confirm_is_none(box: Box) -> None:
    box.boot.seconds += leader_row.SHOWN_SECONDS
    trigger = "CREATE TRIGGER warn BEFORE UPDATE ON leader FOR EACH ROW EXECUTE FUNCTION warn()"
    function = (
        "CREATE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'x'; RETURN NEW; END $$"
    )
    with psycopg.connect(box.storage.address.url, autocommit=True) as raw:
        raw.execute(f"SET search_path TO {box.storage.address.schema}")
        raw.execute(function)
        raw.execute(trigger)
    box.lead.beat()
    assert box.code is Code.UNLED


def test_a_named_replica_that_is_away_ends_the_shown_lead_after_eight_seconds_and_doctor_says_so(box: Box) -> None:
    """The handbook said that releases go on for as long as it is away."""
    address = box.storage.address
    with lacking_replica(address) as raw:
        beating = threading.Thread(target=box.lead.beat)
        beating.start()
        while not raw.execute("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'").fetchall():
            """The beat is at the server in a moment."""
        box.boot.seconds += leader_row.SHOWN_SECONDS - 0.1
        assert box.code is None, "endings go on meanwhile"
        box.boot.seconds += 0.1
        assert box.code is Code.UNLED
        (line,) = (
            each for each in doctor_ledger_server.judged(server_health.look(address, "")) if each.name == "replicas"
        )
        assert (line.verdict, "no commit is confirmed" in line.sentence) == (Verdict.FAIL, True), line
        command = line.fix.partition(": ")[2]
        assert command.startswith("ALTER SYSTEM SET synchronous_standby_names = ''; ")
        for statement in command.split("; "):
            raw.execute(statement)
        beating.join()
    box.lead.beat()
    assert box.code is None, "the command that doctor prints lets commits end without it"


def standby(box: Box, path: Path, boot: Boot) -> Campaign:
    return Campaign(ServerStorage(path.with_name("b"), box.storage.address, lambda *_: ""), boot)


def test_a_standby_sees_who_leads_and_takes_a_free_lead(box: Box, path: Path) -> None:
    watching = standby(box, path, Boot())
    box.held.announce("http://a.example/")
    box.lead.beat()
    leader = watching.look()
    assert leader is not None
    assert (leader.epoch, leader.page, leader.is_shown, watching.has_won) == (
        epoch_of(box),
        "http://a.example/",
        True,
        False,
    )
    box.held.release()
    while not watching.has_won:
        """The server ends the session in a moment."""
        watching.look()
    held = watching.storage.lock()
    watching.storage.prepare()
    mine = held.leader()
    assert mine is not None
    assert mine.epoch == leader.epoch + 1
    held.release()


def test_a_standby_ends_the_session_of_a_frozen_leader_and_not_of_one_that_beats(box: Box, path: Path) -> None:
    boot = Boot()
    watching = standby(box, path, boot)
    for _ in range(40):
        watching.look()
        box.lead.beat()
        boot.seconds += 1.0
    assert watching.frozen is None
    for _ in range(round(beat_watch.FROZEN_SECONDS) + 2):
        watching.look()
        boot.seconds += 1.0
    assert watching.frozen is not None
    assert watching.frozen.epoch == epoch_of(box)
    while not watching.has_won:
        watching.look()
    watching.storage.lock().release()
    box.lead.beat()
    assert box.code is Code.UNLED


def test_a_leader_that_froze_before_the_standby_looked_is_replaced_as_soon(box: Box, path: Path) -> None:
    """A standby that had never seen its session beat waited three minutes."""
    box.lead.beat()
    boot = Boot()
    watching = standby(box, path, boot)
    for _ in range(round(beat_watch.FROZEN_SECONDS) + 2):
        watching.look()
        boot.seconds += 1.0
    assert watching.frozen is not None
    while not watching.has_won:
        watching.look()
    watching.storage.lock().release()


def test_a_leader_that_is_not_upgraded_yet_is_seen_to_lead(box: Box, path: Path) -> None:
    with psycopg.connect(box.storage.address.url, autocommit=True) as raw:
        raw.execute(f"ALTER TABLE {box.storage.address.schema}.leader DROP COLUMN session")
    watching = standby(box, path, Boot())
    leader = watching.look()
    watching.close()
    assert leader is not None
    assert (leader.epoch, leader.process) == (epoch_of(box), 0)


def test_a_leader_keeps_the_lead_when_its_replica_comes_back_within_a_look(
    box: Box, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look had read the old beat, then saw a session that waits no more, and took it for frozen."""
    boot, read = Boot(), leader_row.read
    watching = standby(box, path, boot)
    with lacking_replica(box.storage.address) as raw:
        beating = threading.Thread(target=box.lead.beat)
        beating.start()
        while not raw.execute("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'").fetchall():
            """The beat is at the server in a moment."""
        for _ in range(round(beat_watch.FROZEN_SECONDS) + 5):
            watching.look()
            boot.seconds += 1.0
        assert watching.frozen is None

        def read_before_the_end(link: Any) -> Any:
            row = read(link)
            raw.execute("ALTER SYSTEM SET synchronous_standby_names = ''")
            raw.execute("SELECT pg_reload_conf()")
            beating.join()
            return row

        with monkeypatch.context() as patched:
            patched.setattr(leader_row, "read", read_before_the_end)
            watching.look()
    assert watching.frozen is None
    watching.close()
    box.lead.beat()
    assert box.code is None


def test_a_backup_that_reads_the_ledger_delays_no_takeover(
    box: Box, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next leader waited for a table that it did not change, and ended after two minutes, again and again."""
    monkeypatch.setattr(session, "LOCK_PATIENCE_SECONDS", PATIENCE_SECONDS)
    address = box.storage.address
    with administered(address) as raw:
        raw.execute(f"CREATE ROLE auditor LOGIN PASSWORD '{postgres.PASSWORD}'")
    hasty = replace(address, url=f"{address.url}?options=-clock_timeout%3D2s", reader="auditor")
    with psycopg.connect(address.url) as backup:
        backup.execute(f"SET search_path TO {address.schema}")
        backup.execute("SELECT * FROM leader, meta, intents")
        box.held.release()
        other = Box(path.with_name("b"), hasty)
    assert epoch_of(other) == epoch_of(box) + 1
    other.held.release()


def test_a_leader_completes_the_table_of_an_older_one(box: Box, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "LOCK_PATIENCE_SECONDS", PATIENCE_SECONDS)
    address = box.storage.address
    with psycopg.connect(address.url, autocommit=True) as raw:
        raw.execute(f"ALTER TABLE {address.schema}.leader DROP COLUMN session, DROP COLUMN page, DROP COLUMN host")
    box.held.release()
    other = Box(path.with_name("b"), address)
    leader = other.held.leader()
    assert leader is not None
    assert (leader.epoch, leader.host) == (epoch_of(box) + 1, socket.gethostname())
    other.held.release()


def test_a_look_that_gets_no_answer_ends(box: Box, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It waited as long as the table was locked, and the standby showed an old answer meanwhile."""
    monkeypatch.setattr(campaign, "LOOK_SECONDS", 0.3)
    watching, codes = standby(box, path, Boot()), []

    def look() -> None:
        try:
            watching.look()
        except LedgerError as error:
            codes.append(error.code)

    with psycopg.connect(box.storage.address.url) as operator:
        operator.execute(f"LOCK TABLE {box.storage.address.schema}.leader IN ACCESS EXCLUSIVE MODE")
        looking = threading.Thread(target=look)
        looking.start()
        looking.join(PATIENCE_SECONDS)
        is_stuck = looking.is_alive()
    looking.join()
    assert (is_stuck, codes) == (False, [Code.UNWRITABLE])
    assert watching.look() is not None, "the next look has a session of its own"
    watching.close()


def test_a_standby_refuses_the_small_files_of_another_fleet(box: Box, path: Path) -> None:
    with psycopg.connect(box.storage.address.url, autocommit=True) as raw:
        raw.execute(f"SET search_path TO {box.storage.address.schema}")
        raw.execute("INSERT INTO meta VALUES ('fleet_id', '0123456789ab')")
    watching = standby(box, path, Boot())
    watching.look()
    assert sidecar.read_fleet_id(path.with_name("b")) == "0123456789ab", "for a kill by label from this box"
    sidecar.write_fleet_id(path.with_name("c"), "ba9876543210")
    other = Campaign(ServerStorage(path.with_name("c"), box.storage.address, lambda *_: ""), Boot())
    with pytest.raises(LedgerError) as refused:
        other.look()
    assert refused.value.code is Code.FLEET_MISMATCH
    for each in (watching, other):
        each.close()


def test_a_leader_is_frozen_after_fifteen_watched_seconds_without_a_beat() -> None:
    watch = BeatWatch().after(1, "first", -1.0)
    for now in range(15):
        watch = watch.after(1, "beat", float(now))
        assert not watch.is_frozen
    assert watch.after(1, "beat", 15.0).is_frozen
    assert not watch.after(1, "another", 15.0).is_frozen
    assert not watch.after(2, "beat", 15.0).is_frozen


def test_a_leader_that_never_beat_may_be_upgrading_the_tables() -> None:
    watch = BeatWatch()
    for now in range(round(beat_watch.UNBEGUN_SECONDS)):
        watch = watch.after(1, None, float(now))
        assert not watch.is_frozen
    assert watch.after(1, None, beat_watch.UNBEGUN_SECONDS).is_frozen


@pytest.mark.parametrize("gap", [3600.0, -3600.0])
def test_a_watcher_that_slept_itself_counts_no_silence_that_it_did_not_watch(gap: float) -> None:
    watch = BeatWatch().after(1, "first", -1.0).after(1, "beat", 0.0).after(1, "beat", gap)
    assert not watch.is_frozen


def test_the_begin_of_an_epoch_waits_for_a_commit_under_way_and_a_beat_does_not(box: Box) -> None:
    url, schema = box.storage.address.url, box.storage.address.schema

    def connected() -> Any:
        return psycopg.connect(url, options=f"-csearch_path={schema}", autocommit=True)

    with connected() as pending, connected() as other:
        pending.execute("BEGIN")
        pending.execute(leader_row.HELD, box.lead._epoch)
        box.boot.seconds += leader_row.SHOWN_SECONDS
        box.lead.beat()
        assert box.code is None, "the beat was committed"
        other.execute("SET lock_timeout = '200ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            leader_row.begin(other)
        pending.execute("COMMIT")
        assert leader_row.begin(other).epoch == epoch_of(box) + 1
