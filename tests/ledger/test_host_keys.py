"""Rests of before, whose keys had no market, are carried to the markets they may be about."""

import sqlite3
from contextlib import closing
from pathlib import Path

from agent.ledger.file import migrate

BEFORE, SINCE = "0012", "0015"
UNTIL = 1_800_000_000_000_000


def test_old_keys_go_to_the_market_that_has_the_host_and_to_all_where_none_has(path: Path) -> None:
    path.touch()
    migrate.upgrade_to(path, BEFORE)
    with closing(sqlite3.connect(path)) as raw, raw:
        columns = [row[1] for row in raw.execute("PRAGMA table_info(hosts)")]
        given = {"market": "runpod", "host_id": "777", "owner_id": "12", "updated_at": None, "outbids": "[]"}
        values = [given.get(name, 0) for name in columns]
        raw.execute(f"INSERT INTO hosts VALUES ({','.join('?' * len(values))})", values)  # noqa: S608 - our own names
        raw.executemany(
            "INSERT INTO cooldowns VALUES (?, ?, ?, ?)",
            [
                ("host", "777", UNTIL, "a failed start"),
                ("lock", "host:777", UNTIL, "ops"),
                ("owner", "12", UNTIL, "lost"),
                ("fast_exit", "train@888", UNTIL, "3 s"),
                ("offer", "1", UNTIL, "taken"),
                ("lock", "workload:train", UNTIL, "ops"),
                ("slot", "train/0", UNTIL, "rented"),
            ],
        )
    migrate.upgrade_to(path, SINCE)
    with closing(sqlite3.connect(path)) as raw:
        found = set(raw.execute("SELECT scope, key FROM cooldowns"))
        assert set(raw.execute("SELECT DISTINCT until FROM cooldowns")) == {(UNTIL,)}
    assert found == {
        ("host", "runpod/777"),
        ("lock", "host:runpod/777"),
        ("owner", "runpod/12"),
        ("fast_exit", "train@vast/888"),
        ("fast_exit", "train@runpod/888"),
        ("offer", "vast/1"),
        ("offer", "runpod/1"),
        ("lock", "workload:train"),
        ("slot", "train/0"),
    }
