"""`gpubid ledger`: events, prices, export, backup and verify read; restore, mark-restored, move and unbind write."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from agent.cli.shared import (
    completion,
    exits,
    instants,
    last_good,
    ledger_access,
    ledger_questions,
    session,
    side_by_side,
)
from agent.cli.watch import export, moved_ledger, unbound_account

if TYPE_CHECKING:
    from datetime import datetime

    from agent.config.daemon_paths import DaemonPaths
    from agent.config.settings import Config
    from agent.domain.market.gpu import GpuModel
    from agent.ledger.file.ledger_check import Verification
    from agent.ledger.file.restore import Restored
    from agent.ledger.reader import Reader
    from agent.ledger.storage_port import Storage

T = TypeVar("T")
Since = Annotated[
    str | None, typer.Option(metavar="TIME", help="Begin at this time: 2h (ago), 2026-11-20 or 2026-11-20T08:00Z.")
]
Limit = Annotated[int, typer.Option(min=1, max=100_000, help="At most this many rows, newest first.")]

_OWN_TOOLS = "is backed up and restored by its own tools, for example pg_dump --schema and pg_restore"
_AFTER_RESTORE = "before a daemon starts on a restored one, give `gpubid ledger mark-restored`"

app = typer.Typer(no_args_is_help=True, help="Read, export, back up and verify the ledger.")
app.command()(export.export)
app.command()(moved_ledger.move)
app.command()(unbound_account.unbind)


@app.command()
def events(
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    workload: Annotated[
        str | None,
        typer.Option(help="Only this workload, or this slot of it: NAME/SLOT.", autocompletion=completion.places),
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(help="Only this kind, such as lease.interrupted; may repeat.", autocompletion=completion.kinds),
    ] = None,
    since: Since = None,
    limit: Limit = 100,
    as_json: session.JsonOption = False,
) -> None:
    """Show every pause, resume, rent and release with its cause, evidence and money."""
    from agent.domain import money
    from agent.domain.market.interruption import announced
    from agent.web.reading import verb_json

    start = instants.instant("--since", since)
    asked = {"since": start.isoformat() if start else None, "workload": workload, "limit": str(limit)}
    query = [(key, value) for key, value in asked.items() if value is not None]
    shown = _shown(
        config, "/events", [*query, *(("kind", one) for one in kind or ())],
        lambda reader: reader.events(start, None, workload, kind or (), limit), verb_json.events,
    )  # fmt: skip
    _refuse_unknown(config, workload, kind or (), shown)
    if as_json:
        session.print_json(shown)
        return
    table = session.table(
        "at", "slot", "what", "host", "cause", "price", "money", "evidence or reason", folded="evidence or reason"
    )
    for row in reversed(shown):
        slot = row["workload"] if row["slot"] is None else f"{row['workload']}/{row['slot']}"
        amount = str(money.usd(row["amount"])) if row["amount"] else ""
        price = str(money.per_hour(row["bid"])) if row["bid"] is not None else ""
        when = instants.shown(row["at"])
        why = row["evidence"] + announced(instants.told(row.get("notice_at"))) or row["reason"]
        session.add(table, when, slot, row["kind"], row["host_id"], row["cause"] or "", price, amount, why)
    side_by_side.show_two_lined(table, ("evidence or reason", "cause", "money", "price", "host"))


@app.command()
def prices(
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    gpu: Annotated[str | None, typer.Option(help="Only this GPU model, by its whole name.")] = None,
    host: Annotated[str | None, typer.Option(help="Only this host.")] = None,
    since: Since = None,
    limit: Limit = 100,
    as_json: session.JsonOption = False,
) -> None:
    """Show changes of asks and floors."""
    from agent.domain import money
    from agent.domain.market import gpu as gpus
    from agent.web.reading import verb_json

    model = gpus.model(gpu) if gpu is not None else None
    start = instants.instant("--since", since)
    asked = {"since": start.isoformat() if start else None, "gpu": gpu, "host": host, "limit": str(limit)}
    shown = _shown(
        config, "/prices", [(key, value) for key, value in asked.items() if value],
        lambda reader: reader.prices(None, model, host, start, None, limit), verb_json.prices,
    )  # fmt: skip
    if not shown:
        _refuse_unrecorded(config, gpu, host)
    if as_json:
        session.print_json(shown)
        return
    if not shown:
        session.say("no price is recorded for this question: leave out a filter, or begin earlier with --since")
        return
    table = session.table("at", "host", "GPU", "ask", "floor")
    for row in reversed(shown):
        ledger_questions, floor = (str(money.per_hour(row[key])) if row[key] else "-" for key in ("ask", "floor"))
        session.add(
            table, instants.shown(row["at"]), row["host_id"], f"{row['gpus']}x {row['gpu']}", ledger_questions, floor
        )
    session.show(table)


def _refuse_unrecorded(config: Path, gpu: str | None, host: str | None) -> None:
    """End if a filter names a card that neither gpubid nor any price knows, or a host that no price knows."""
    from agent.config import unknown_names
    from agent.domain.market import gpu as gpus
    from agent.web.reading import verb_json

    def is_recorded(key: str, value: str, model: "GpuModel | None", of: str | None) -> bool:
        query = [(key, value), ("limit", "1")]
        return bool(
            _shown(config, "/prices", query, lambda each: each.prices(None, model, of, None, None, 1), verb_json.prices)
        )

    sentence = None if gpu is None else unknown_names.no_card(gpus.model(gpu))
    if gpu is not None and sentence is not None and not is_recorded("gpu", gpu, gpus.model(gpu), None):
        exits.stop(exits.BAD_INPUT, [f"--gpu: {sentence}"])
    if host is not None and not is_recorded("host", host, None, host):
        hint = "`gpubid ledger prices` shows the hosts"
        exits.stop(exits.BAD_INPUT, [f"--host: no price of a host {host!r} is recorded; {hint}"])


def _refuse_unknown(file: Path, workload: str | None, kinds: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    """End if a filter names a kind or a workload that neither gpubid nor any event knows."""
    from agent.config import problems
    from agent.domain.record.event_kind import EventKind

    known = {each.value for each in EventKind}
    seen = {row["kind"] for row in rows}
    for kind in kinds:
        if kind not in known and kind not in seen:
            exits.stop(exits.BAD_INPUT, [problems.no_kind("--kind", kind, known)])
    read = last_good.read(file)
    if workload is not None and not rows and not isinstance(read, last_good.Broken):
        ledger_questions.name_of(read[0], workload)


def _shown(
    config: Path,
    route: str,
    query: list[tuple[str, str]],
    question: "Callable[[Reader], Awaitable[T]]",
    view: Callable[[T], list[dict[str, Any]]],
) -> list[dict[str, Any]]:
    """Return rows of the ledger."""

    async def rows(_: "Config", reader: "Reader") -> list[dict[str, Any]]:
        return view(await question(reader))

    return list(ledger_questions.ask(config, route, rows, query))


@app.command()
def backup(
    to: Annotated[Path, typer.Argument(help="A file that does not exist yet, or a folder for a new file.")],
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    keep: Annotated[
        int, typer.Option(min=0, max=10_000, help="In a folder, keep this many copies, the newest ones; 0 keeps all.")
    ] = 0,
    if_file: Annotated[
        bool, typer.Option("--if-file", help="With a ledger on a server, do nothing and end with 0, as a timer needs.")
    ] = False,
) -> None:
    """Write a complete, checked copy of the ledger."""
    from agent.act.kept_logs import kept_log
    from agent.clock import SystemClock
    from agent.ledger.file import backup as copies

    settings = last_good.place(config)
    if if_file and settings.ledger_server is not None:
        session.say(f"nothing is copied: {settings.ledger_server.shown} {_OWN_TOOLS}")
        return
    _refuse_on_server(settings)
    at = SystemClock().now()
    folder = to if os.path.isdir(to) else None  # noqa: PTH112 - Path.is_dir raises where the user may not look
    if keep and folder is None:
        exits.stop(exits.BAD_INPUT, [f"--keep: {to} is not a folder; name one, or leave --keep out"])
    file = to if folder is None else folder / copies.name(at)
    exits.must_be_new(file)
    ledger_questions.ledger(settings, lambda reader: reader.backup(file, at=at))
    session.say(f"{settings.ledger} is backed up to {file}")
    logs = kept_log.folder_of(settings.ledger)
    if not session.is_missing(logs):
        session.say(f"the backup has no logs of containers: to keep them, copy {logs} too")
    for old in _drop_old(file, keep, at) if folder is not None and keep else ():
        session.say(f"{old} is deleted: {keep} copies are kept")


def _refuse_on_server(settings: "Config | DaemonPaths") -> None:
    """End if the tables are on a server: its own tools back it up and restore it."""
    if settings.ledger_server is not None:
        exits.stop(exits.FAILED, [f"{settings.ledger_server.shown} {_OWN_TOOLS}; {_AFTER_RESTORE}"])


def _drop_old(made: Path, keep: int, at: "datetime") -> list[Path]:
    from agent.ledger.file import backup as copies
    from agent.ledger.ledger_errors import LedgerError

    try:
        return copies.drop_old(made, keep, at)
    except LedgerError as error:
        exits.refused(error)


@app.command()
def restore(
    backup_file: Annotated[Path, typer.Argument(metavar="BACKUP", help="A copy that `gpubid ledger backup` wrote.")],
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    replace: Annotated[bool, typer.Option("--replace", help="Rename an existing ledger; it is kept.")] = False,
) -> None:
    """Put a backup in the ledger's place while no daemon runs. The next start asks the market for newer facts."""
    from agent.act.kept_logs import kept_log
    from agent.clock import SystemClock
    from agent.ledger.file import restore as restoring
    from agent.ledger.ledger_errors import LedgerError

    settings, _ = session.read(config)
    _refuse_on_server(settings)
    try:
        settings.ledger.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        restored = restoring.restore(backup_file, settings.ledger, SystemClock().now(), replaces=replace)
    except LedgerError as error:
        exits.refused(error)
    except OSError as error:
        exits.stop(exits.FAILED, [f"{settings.ledger.parent} cannot be made ({error.strerror}); run this as root"])
    session.say(f"{settings.ledger} is restored from {backup_file}")
    if restored.aside is not None:
        session.say(f"the previous ledger is now {restored.aside}")
    logs = kept_log.folder_of(settings.ledger)
    if not session.is_missing(logs):
        session.say(f"the logs of containers in {logs} are unchanged: a backup has no logs")
    session.say("the next start continues with the running leases, and counts what the market charged since the backup")
    _say_unbilled(settings)
    _say_holds(restored)


def _say_unbilled(settings: "Config") -> None:
    """Warn of each market that shows no bill: what was spent there since the backup stays unknown."""
    from agent.markets import registered_markets

    records = (registered_markets.record(market.name) for market in settings.markets)
    for name in (record.name for record in records if not record.rules.has_bill):
        session.warn(f"{name} shows no bill: what its leases cost since then is not counted, unless they still run")
        session.warn(f"lower max_per_month, and the budget of {name}, by that sum until the month ends")


def _say_holds(restored: "Restored") -> None:
    """Print the number of holds that stay in force, and warn if holds since the backup may be missing."""
    holds = restored.holds
    if holds is not None:
        counts = ", ".join(f"{count} {word}" for word, count in sorted(holds.counts.items()))
        session.say(f"holds of the previous ledger that stay in force: {counts or 'none'}; `gpubid fleet` shows them")
    if holds is None or not holds.is_whole:
        other = "other orders" if holds is not None else "orders"
        session.warn(f"{other} since the backup are lost: kill, pause, drain, lock and done")
        session.warn("give them again before the daemon starts; `gpubid kill` ends every lease and rents nothing")
        session.warn("a slot that was done since the backup is rented again, unless you give `gpubid done NAME/SLOT`")


@app.command("mark-restored")
def mark_restored(config: session.ConfigOption = session.DEFAULT_CONFIG) -> None:
    """Record, while no daemon runs, that another tool took the ledger back in time, as from a dump or a snapshot."""
    from agent.clock import SystemClock
    from agent.ledger import offline
    from agent.ledger.ledger_errors import LedgerError
    from agent.systemd import CredentialError

    settings, _ = session.read(config)
    if ledger_access.is_missing(settings):
        exits.stop(exits.FAILED, [f"there is no ledger at {settings.ledger}: nothing is marked"])
    ledger_access.must_own(settings)
    try:
        place = ledger_access.place_of(settings)
        offline.mark_restored(place, SystemClock().now())
        asyncio.run(_note_mark(place))
    except LedgerError as error:
        exits.refused(error)
    except CredentialError as error:
        exits.stop(exits.BAD_INPUT, [str(error)])
    session.say(f"{place.shown} is marked as restored: what was spent and what ran since then is unknown")
    session.say(
        "the next start pays a market only once it has read its bill of this month; what is missing is counted from it"
    )
    session.say("orders since then are lost: give kill, pause, drain, lock and done again before the daemon starts")
    _say_unbilled(settings)


async def _note_mark(place: "Storage") -> None:
    from agent.clock import SystemClock
    from agent.domain.record.event import Event
    from agent.domain.record.event_kind import EventKind
    from agent.ledger.store import Ledger

    clock = SystemClock()
    reason = "the ledger was marked as restored by `gpubid ledger mark-restored`"
    ledger = await Ledger.open(place, clock=clock)
    try:
        async with ledger.transaction() as tx:
            tx.append_event(
                Event(at=clock.now(), kind=EventKind.OPERATOR_ORDERED, reason_code="mark-restored", reason=reason)
            )
    finally:
        await ledger.close()


@app.command()
def verify(config: session.ConfigOption = session.DEFAULT_CONFIG, as_json: session.JsonOption = False) -> None:
    """Check the file, its references and its sums. Exit 3 if it is damaged, 1 if sums differ or it was moved."""
    from agent.ledger.file import ledger_check as verifying
    from agent.ledger.ledger_errors import LedgerError
    from agent.systemd import CredentialError
    from agent.web.reading import verb_json

    settings = last_good.place(config)
    try:
        verifying.refuse_unreadable(settings.ledger)
    except LedgerError as error:
        exits.refused(error)
    if settings.ledger_server is None and not settings.ledger.exists():
        exits.stop(exits.FAILED, [f"there is no ledger at {settings.ledger}: start the daemon once (`gpubid run`)"])
    try:
        with session.waiting("checking the ledger"):
            verification = ledger_access.place_of(settings).verify()
    except LedgerError as error:
        exits.refused(error)
    except CredentialError as error:
        exits.stop(exits.BAD_INPUT, [str(error)])
    if as_json:
        session.print_json(verb_json.plain(asdict(verification)) | {"is_sound": verification.is_sound})
    else:
        _say_verified(verification)
    if not verification.is_sound or verification.moved:
        raise typer.Exit(exits.DAMAGED if verification.is_damaged else exits.FAILED)


def _say_verified(verification: "Verification") -> None:
    session.say(f"{verification.path}, schema {verification.revision or 'unknown'}")
    for table, rows in verification.counted.items():
        session.say(f"  {table}: {rows} row(s)")
    for finding in verification.findings:
        session.say(f"wrong: {finding}")
    for finding in verification.inconsistencies:
        session.say(f"inconsistent: {finding}")
    if verification.moved:
        session.say(f"moved: {verification.moved}")
    if verification.is_damaged:
        session.say(
            f"damaged, {len(verification.findings)} finding(s): restore the newest backup with `gpubid ledger restore "
            "BACKUP --replace`"
        )
    elif verification.inconsistencies:
        session.say(
            f"not damaged, but {len(verification.inconsistencies)} sum(s) contradict each other: keep this ledger, "
            "a backup knows less; compare `gpubid spend --by lease` with the market's bill and send "
            "`gpubid bug-report` with a bug report"
        )
    else:
        session.say("its rows are sound" if verification.moved else "sound")
