"""The errors of PostgreSQL in the ledger's words."""

import pytest

from agent.ledger.ledger_errors import Code

psycopg = pytest.importorskip("psycopg")
server_errors = pytest.importorskip("agent.ledger.server.server_errors")


@pytest.mark.parametrize(
    ("state", "code"),
    [
        ("XX000", Code.UNWRITABLE),
        ("0A000", Code.UNWRITABLE),
        ("26000", Code.UNWRITABLE),
        ("XX001", Code.CORRUPT),
        ("42P01", Code.CORRUPT),
        ("23505", Code.CONFLICT),
    ],
)
def test_only_a_known_damage_is_one(state: str, code: Code) -> None:
    """An unknown state ended a standby for good: nobody starts a daemon again whose ledger is damaged."""
    error = psycopg.errors.lookup(state)("x")
    assert server_errors.in_our_words(error, "db").code is code
