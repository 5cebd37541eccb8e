"""The replicas of a server, and whether one of them could take over without an order that was committed.

PostgreSQL calls them standbys. Here a standby is a daemon.

1. Only a replica that confirms each commit is sure to have it. Without `synchronous_standby_names` none does.
2. A replica that is away lacks what was committed since. So a slot that nobody reads counts as a replica, and so does
   one that followed a moment ago, once no commit waits for it.
3. Programs that only store the log, such as pg_receivewal, are listed like replicas; they cannot take over.
"""

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    import psycopg

RECEIVERS = frozenset(
    {"pg_basebackup", "pg_receivewal", "pg_recvlogical", "barman_receive_wal", "barman_streaming_backup"}
)
"""The names that programs which store the log or a backup have by default (PostgreSQL 15; Barman's documentation)."""
_NUMBER = re.compile(r"(?:(?:FIRST|ANY)\s+)?(\d+)\s*\(", re.IGNORECASE)
"""The number of replicas that must confirm, in `synchronous_standby_names`; one if there is none."""
_CONFIRMING = ("sync", "quorum")
_FOLLOWERS = """
    SELECT coalesce(application_name, ''), sync_state FROM pg_stat_replication AS sender
    WHERE NOT EXISTS (SELECT 1 FROM pg_replication_slots WHERE slot_type = 'logical' AND active_pid = sender.pid)
    ORDER BY 1
"""
"""All followers except subscribers of single tables. A role without pg_monitor sees names but no states."""
_UNREAD_SLOTS = """
    SELECT slot_name FROM pg_replication_slots
    WHERE slot_type = 'physical' AND NOT temporary AND NOT active ORDER BY 1
"""


@dataclass(frozen=True, slots=True)
class Replicas:
    """The replicas of one server at one instant.

    `names` is the server's `synchronous_standby_names`. `connected` has the application name of each replica,
    `confirming` those of them that confirm commits, None where the role may not see that. `unread_slots` are physical
    slots that nobody reads. `left` has the replicas that followed when last seen and are gone.
    `has_confirming_receiver` says that a program that only stores the log confirms commits. `since` is when the server
    was started, which tells it from one that took over.
    """

    names: str = ""
    connected: tuple[str, ...] = ()
    confirming: tuple[str, ...] | None = ()
    unread_slots: tuple[str, ...] = ()
    left: tuple[str, ...] = field(default=())
    has_confirming_receiver: bool = False
    since: str = ""


def look(raw: "psycopg.Connection[Any]") -> Replicas:
    """Return the replicas of the server of a session.

    Raises:
        psycopg.Error: the server failed.
    """
    followers = raw.execute(_FOLLOWERS.encode()).fetchall()
    replicas = [(name, state) for name, state in followers if name not in RECEIVERS]
    is_shown = all(state is not None for _, state in followers)
    names = raw.execute("SHOW synchronous_standby_names").fetchone()
    since = raw.execute("SELECT pg_postmaster_start_time()::text").fetchone()
    return Replicas(
        names="" if names is None else names[0].strip(),
        connected=tuple(name for name, _ in replicas),
        confirming=tuple(name for name, state in replicas if state in _CONFIRMING) if is_shown else None,
        unread_slots=tuple(slot for (slot,) in raw.execute(_UNREAD_SLOTS.encode())),
        has_confirming_receiver=any(name in RECEIVERS and state in _CONFIRMING for name, state in followers),
        since="" if since is None else since[0],
    )


def after(before: Replicas, seen: Replicas) -> Replicas:
    """Return what was seen now, with the replicas that followed before and have left.

    One that confirmed commits has all of them only up to when `synchronous_standby_names` was emptied. After a takeover
    it may be the server itself.
    """
    if before.names and before.since != seen.since:
        return seen
    left = {*before.left, *before.connected} - set(seen.connected)
    return replace(seen, left=tuple(sorted(left)))


def lacks_confirmation(seen: Replicas) -> bool:
    """Return whether every commit waits, as too few named replicas are connected; False if the role may not see it."""
    if not seen.names or seen.confirming is None:
        return False
    asked = _NUMBER.match(seen.names)
    return len(seen.confirming) + seen.has_confirming_receiver < (int(asked[1]) if asked else 1)


def danger(seen: Replicas) -> str:
    """Return why a replica could take over without a committed order, and the command that prevents it; or nothing."""
    if seen.names:
        if seen.connected and seen.has_confirming_receiver and seen.confirming == ():
            who = ", ".join(sorted(set(seen.connected)))
            return (
                f"only a program that stores the log confirms commits, not the replica {who}, which would forget paid "
                f"orders if it took over: {_command(seen.connected)}"
            )
        return ""
    if seen.connected:
        who = ", ".join(sorted(set(seen.connected)))
        return (
            f"the replica {who} follows asynchronously and would forget paid orders if it took over: "
            f"{_command(seen.connected)}"
        )
    if seen.unread_slots:
        slot = seen.unread_slots[0]
        return (
            f"the replica of slot {slot} is away and would forget paid orders if it took over: if it is gone for good, "
            f"run SELECT pg_drop_replication_slot('{slot}'); if not, {_command(())}"
        )
    if seen.left:
        return (
            f"the replica {', '.join(seen.left)} is away while no commit waits for it, and would forget paid orders "
            f"if it took over: if it is gone for good, restart gpubid (`systemctl restart gpubid`); if not, "
            f"{_command(seen.left)}"
        )
    return ""


def _command(replicas: tuple[str, ...]) -> str:
    """Return the command that lets each of these replicas confirm every commit: then any of them may take over."""
    quoted = ", ".join(sorted({f'"{name}"' for name in replicas}))
    value = f"FIRST {len(replicas)} ({quoted})" if replicas else "*"
    return (
        f"let it confirm each commit: ALTER SYSTEM SET synchronous_standby_names = '{value}'; SELECT pg_reload_conf()"
    )
