"""Which replicas may take over: a real primary, real replicas, and programs that only store the log."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.support import engines, postgres
from tests.support.postgres import Server
from tests.support.standby_names import set_names

psycopg = pytest.importorskip("psycopg")
replicas = pytest.importorskip("agent.ledger.server.replicas")
pytestmark = pytest.mark.skipif(not postgres.is_here(), reason="PostgreSQL is not installed (make tools)")


@pytest.fixture(scope="module")
def primary() -> Iterator[Server]:
    with postgres.serving() as server:
        engines.make_role(server.url)
        yield server


@pytest.fixture
def seen(primary: Server) -> Iterator[Callable[..., Any]]:
    """Look with the daemon's role until what is seen is as the test waits for."""
    with psycopg.connect(engines.role_url(primary.url), autocommit=True) as raw:

        def look(is_reached: Callable[[Any], bool]) -> Any:
            for _ in range(2000):
                found = replicas.look(raw)
                if is_reached(found):
                    return found
            raise AssertionError(found)

        yield look


@contextlib.contextmanager
def administered(primary: Server) -> Iterator[Any]:
    with psycopg.connect(primary.url, autocommit=True) as raw:
        yield raw


def test_a_server_alone_is_no_danger_and_neither_is_a_program_that_stores_its_log(
    primary: Server, seen: Callable[..., Any]
) -> None:
    assert replicas.danger(seen(lambda found: not found.connected)) == ""
    with postgres.receiving(primary), administered(primary) as raw:
        while not raw.execute("SELECT 1 FROM pg_stat_replication").fetchall():
            """The program connects in a moment."""
        found = seen(lambda _: True)
    assert found.connected == ()
    assert replicas.danger(found) == ""


def test_a_replica_is_a_danger_until_it_confirms_commits(primary: Server, seen: Callable[..., Any]) -> None:
    with postgres.following(primary, "second"):
        found = seen(lambda each: each.connected)
        assert found.connected == ("second",)
        assert found.confirming is None, "the daemon's role may not see the states"
        assert "second follows asynchronously" in replicas.danger(found)
        command = replicas.danger(found).partition("commit: ")[2]
        with administered(primary) as raw:
            for statement in command.split("; "):
                raw.execute(statement)
            raw.execute(f"GRANT pg_monitor TO {engines.ROLE}")
        try:
            found = seen(lambda each: each.confirming)
            assert found.names == 'FIRST 1 ("second")', "the command of the sentence was run as it is"
            assert replicas.danger(found) == ""
        finally:
            with administered(primary) as raw:
                raw.execute(f"REVOKE pg_monitor FROM {engines.ROLE}")
            set_names(primary.url, "")


def test_a_replica_that_went_away_is_a_danger_still(primary: Server, seen: Callable[..., Any]) -> None:
    with postgres.following(primary, "third"):
        with_it = seen(lambda each: each.connected)
    gone = seen(lambda each: not each.connected)
    assert replicas.danger(gone) == "", "the server has forgotten it"
    remembered = replicas.after(with_it, gone)
    assert "the replica third is away while no commit waits for it" in replicas.danger(remembered)
    assert replicas.danger(replicas.after(remembered, gone)), "and goes on to be one"
    set_names(primary.url, "third")
    try:
        named = seen(lambda each: each.names)
        assert replicas.danger(replicas.after(remembered, named)) == ""
        followed = replace(named, connected=("third",))
        assert replicas.danger(replicas.after(followed, gone)), "it lacks what is committed without it"
        away = replicas.after(followed, named)
        assert not replicas.danger(away), "each commit waits for it"
        assert replicas.danger(replicas.after(away, gone)), "until the setting is emptied"
        promoted = replace(gone, since="a moment ago")
        assert not replicas.danger(replicas.after(followed, promoted)), "it may lead now"
    finally:
        set_names(primary.url, "")


def test_a_slot_that_nobody_reads_is_of_a_replica_that_is_away(primary: Server, seen: Callable[..., Any]) -> None:
    with postgres.following(primary, "fourth", slot=True):
        assert seen(lambda each: each.connected and not each.unread_slots).connected == ("fourth",)
    found = seen(lambda each: each.unread_slots)
    assert "the replica of slot fourth is away" in replicas.danger(found)
    with administered(primary) as raw:
        raw.execute(replicas.danger(found).partition("run ")[2].partition(";")[0])
    assert replicas.danger(seen(lambda each: not each.unread_slots)) == ""


def test_a_program_that_stores_the_log_does_not_confirm_for_a_replica() -> None:
    """`*` lets whatever has a slot confirm commits, also pg_receivewal."""
    found = replicas.Replicas(names="*", connected=("second",), confirming=(), has_confirming_receiver=True)
    assert "only a program that stores the log confirms commits" in replicas.danger(found)
    both = replicas.Replicas(names="*", connected=("second",), confirming=("second",), has_confirming_receiver=True)
    assert replicas.danger(both) == ""


@pytest.mark.parametrize(
    ("names", "confirming", "has_receiver", "waits"),
    [
        ("", (), False, False),
        ('FIRST 1 ("second")', (), False, True),
        ("second", (), False, True),
        ("*", ("second",), False, False),
        ("FIRST 2 (a, b)", ("a",), False, True),
        ("2 (a, b)", ("a", "b"), False, False),
        ("any 1 (a, b)", ("a",), False, False),
        ("ANY 1 (pg_receivewal)", (), True, False),
        ("second", None, False, False),
    ],
)
def test_commits_wait_while_fewer_replicas_are_connected_than_must_confirm(
    names: str, confirming: tuple[str, ...] | None, has_receiver: bool, waits: bool
) -> None:
    found = replicas.Replicas(names, confirming or (), confirming, has_confirming_receiver=has_receiver)
    assert replicas.lacks_confirmation(found) is waits
