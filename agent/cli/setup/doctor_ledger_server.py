"""Doctor's checks of a ledger on a PostgreSQL server."""

from typing import TYPE_CHECKING

from agent.cli.setup.doctor_checks import Line, Verdict

if TYPE_CHECKING:
    from agent.config.settings import Config
    from agent.ledger.server.server_health import ServerHealth
    from agent.ledger.server_address import ServerAddress
    from agent.ledger.storage_port import Storage

SLOW_SECONDS = 0.05
"""A round trip this long slows every cycle noticeably, because a cycle commits some ten times."""
MOST_KEEPALIVE_SECONDS = 30


def server(config: "Config", address: "ServerAddress") -> list[Line]:
    """Check the server: role, keepalives, replicas, pooler, latency, takeover, and the rules between the rows."""
    from agent.cli.shared import ledger_access, session
    from agent.ledger.ledger_errors import LedgerError
    from agent.systemd import CredentialError

    try:
        place = ledger_access.place_of(config)
        from agent.ledger.server import server_health

        has_password = address.credential or address.credential_file is not None
        password = session.ledger_password(address.credential, address.credential_file) if has_password else ""
        found = server_health.look(address, password)
        return [_reached(found, address.shown), *judged(found), *_rows(place)]
    except (LedgerError, CredentialError) as error:
        # Without `url` a daemon here would begin a second ledger of the fleet, beside the leader's.
        fix = "make the server answer; until then `gpubid kill --by-label` ends instances without the ledger"
        return [Line("ledger", Verdict.FAIL, str(error), fix)]


def _reached(found: "ServerHealth", shown: str) -> Line:
    milliseconds = f"{found.latency_seconds * 1000:.1f} ms"
    sentence = f"{shown}: PostgreSQL {found.version}, a round trip takes {milliseconds}"
    if found.latency_seconds > SLOW_SECONDS:
        return Line("server", Verdict.WARN, sentence, "run the daemon nearer to its database")
    return Line("server", Verdict.OK, sentence)


def judged(found: "ServerHealth") -> list[Line]:
    """Return the verdict on each fact."""
    return [_role(found), _keepalive(found), _replicas(found), _pooler(found), _durable(found), _takeover(found)]


def _role(found: "ServerHealth") -> Line:
    if found.is_in_recovery:
        return Line("role", Verdict.FAIL, "the server is a read-only replica", "name the primary in [ledger] url")
    if not found.may_write:
        fix = f"GRANT CREATE ON DATABASE ... TO {found.role}, or give it the schema"
        return Line("role", Verdict.FAIL, f"{found.role} may not write the ledger's schema", fix)
    if found.is_superuser:
        fix = "make a role of its own that owns the ledger's schema only"
        return Line("role", Verdict.WARN, f"{found.role} is a superuser: it may do more than gpubid needs", fix)
    return Line("role", Verdict.OK, f"{found.role} may write the ledger's schema and is no superuser")


def _keepalive(found: "ServerHealth") -> Line:
    seconds = found.keepalive_seconds
    if seconds is None:
        return Line("keepalives", Verdict.OK, "a local socket needs none")
    sentence = f"the server ends the session of a client that is gone within {seconds} s"
    if seconds > MOST_KEEPALIVE_SECONDS:
        return Line("keepalives", Verdict.WARN, sentence, "let the server accept tcp_keepalives_* of a session")
    return Line("keepalives", Verdict.OK, sentence)


def _replicas(found: "ServerHealth") -> Line:
    from agent.ledger.server import replicas

    seen = found.replicas
    danger = replicas.danger(seen)
    if danger:
        fix = "run that on the primary as its superuser"
        return Line("replicas", Verdict.FAIL, f"nothing is paid for: {danger}", fix)
    if replicas.lacks_confirmation(seen):
        why = f"synchronous_standby_names is {seen.names!r} and too few of these replicas are connected"
        ends = "no commit is confirmed, so nothing is paid for and, from 8 s on, nothing ends"
        fix = "start the replica; until it is back, let commits end without it: ALTER SYSTEM SET "
        fix += "synchronous_standby_names = ''; SELECT pg_reload_conf()"
        return Line("replicas", Verdict.FAIL, f"{why}: {ends}", fix)
    if not seen.connected:
        return Line("replicas", Verdict.OK, "no replica follows this server")
    sentence = f"synchronous_standby_names is {seen.names!r}, replicas that follow: {len(seen.connected)}"
    if seen.confirming is None:
        fix = f"GRANT pg_monitor TO {found.role}"
        return Line(
            "replicas", Verdict.WARN, f"{sentence}; {found.role} may not see which of them confirm commits", fix
        )
    lacking = sorted(set(seen.connected) - set(seen.confirming))
    if lacking:
        fix = "never let it take over, or let it confirm too: FIRST N with each replica's name"
        return Line("replicas", Verdict.WARN, f"{sentence}; {', '.join(lacking)} confirms no commit", fix)
    return Line("replicas", Verdict.OK, f"{sentence}, and each confirms every commit")


def _pooler(found: "ServerHealth") -> Line:
    if found.keeps_session:
        return Line("pooler", Verdict.OK, "statements stay in one session")
    sentence = "two statements reached two sessions: a pooler by transaction loses the lock of the one writer"
    return Line("pooler", Verdict.FAIL, sentence, "name the server itself, or use a pooler by session")


def _durable(found: "ServerHealth") -> Line:
    if found.is_durable:
        return Line("durability", Verdict.OK, "fsync and full_page_writes are on")
    fix = "set fsync and full_page_writes to on"
    return Line("durability", Verdict.FAIL, "fsync or full_page_writes is off: a power loss forgets orders", fix)


def _takeover(found: "ServerHealth") -> Line:
    """Judge whether a standby with this role could end the session of a frozen leader."""
    leader = found.leader_role
    if leader is None:
        return Line("takeover", Verdict.OK, "nobody leads; with two boxes, run this on the standby's while one leads")
    if leader.may_be_ended and leader.may_be_seen:
        return Line("takeover", Verdict.OK, f"{found.role} may end the session of a frozen leader ({leader.name})")
    fix = "name one role in [ledger] url on both boxes"
    if leader.outranks:
        sentence = f"a standby as {found.role} may not end a frozen leader's session: {leader.name} is a superuser"
        return Line("takeover", Verdict.FAIL, sentence, fix)
    lacks = "see whether a commit of" if leader.may_be_ended else "end"
    sentence = f"a standby as {found.role} may not {lacks} a frozen leader's session, which is {leader.name}'s"
    return Line("takeover", Verdict.FAIL, sentence, f'{fix}, or GRANT "{leader.name}" TO "{found.role}"')


def _rows(place: "Storage") -> list[Line]:
    from agent.ledger.ledger_errors import Code, LedgerError

    try:
        place.check_readable()
        verification = place.verify()
    except LedgerError as error:
        if error.code is Code.MISSING:
            return [Line("ledger", Verdict.WARN, error.sentence, "start the daemon once (`gpubid run`)")]
        if error.code is Code.NEWER_SCHEMA:
            sentence, _, fix = error.sentence.partition(": ")
            return [Line("ledger", Verdict.FAIL, f"no daemon starts: {sentence}", fix)]
        return [Line("ledger", Verdict.FAIL, error.sentence, "see the message")]
    wrong = (*verification.findings, *verification.inconsistencies)
    if wrong:
        fix = "gpubid ledger verify shows all; restore the database if rows are damaged"
        return [Line("ledger", Verdict.FAIL, "; ".join(wrong[:3]), fix)]
    rows = sum(verification.counted.values())
    return [Line("ledger", Verdict.OK, f"its rows are sound: schema {verification.revision}, {rows} rows")]
