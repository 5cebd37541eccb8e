"""Rests of hosts, owners and offers name their market: "vast/777" instead of "777".

An old key goes to every market whose leases or records have that host or owner; where none has, to every market: a
host that rests in vain costs a choice, one that is rented in vain costs money.
"""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0012"
branch_labels = None
depends_on = None

EVERY_MARKET = ("vast", "runpod")
"""Those that could be configured when keys had no market."""
WORDS = ("lock", "drain", "pause", "done", "kill", "held")
SEEN = {
    "host": "SELECT market FROM leases WHERE host_id = :id UNION SELECT market FROM hosts WHERE host_id = :id",
    "owner": "SELECT market FROM leases WHERE owner_id = :id UNION SELECT market FROM hosts WHERE owner_id = :id",
    "offer": "SELECT market FROM leases WHERE offer_id = :id UNION SELECT market FROM intents WHERE offer_id = :id",
}
KINDS = {"host": "host", "owner": "owner", "offer": "offer", "underbid": "offer"}


def upgrade() -> None:
    bind = op.get_bind()
    for scope, key, until, code in bind.execute(sa.text('SELECT scope, "key", "until", code FROM cooldowns')).all():
        found = _parts(scope, key)
        if found is None:
            continue
        kind, before, name = found
        markets = bind.execute(sa.text(SEEN[kind]), {"id": name}).scalars().all() or EVERY_MARKET
        bind.execute(sa.text('DELETE FROM cooldowns WHERE scope = :s AND "key" = :k'), {"s": scope, "k": key})
        for market in markets:
            bind.execute(
                sa.text('INSERT OR REPLACE INTO cooldowns (scope, "key", "until", code) VALUES (:s, :k, :u, :c)'),
                {"s": scope, "k": f"{before}{market}/{name}", "u": until, "c": code},
            )


def _parts(scope: str, key: str) -> tuple[str, str, str] | None:
    """Return (kind, what stands before the id, id) of a key that wants a market, else None."""
    if scope in KINDS:
        return KINDS[scope], "", key
    kind, colon, name = key.partition(":")
    if scope in WORDS and kind in {"host", "owner"}:
        return kind, f"{kind}{colon}", name
    work, at, host = key.rpartition("@")
    if scope == "fast_exit":
        return "host", f"{work}{at}", host
    return None
