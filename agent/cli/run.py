"""`gpubid run`: the daemon."""

import asyncio
import contextlib
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.shared import exits, session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from prometheus_client import CollectorRegistry

    from agent.app import App
    from agent.config.settings import Config
    from agent.daemon import Parts
    from agent.decide.strategy import Tuned
    from agent.ledger.storage_port import Storage
    from agent.systemd import Notifier
    from agent.telemetry.metric_updates import Metrics

NOT_STARTED = "not started"


def run(
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Do everything except write to a market; use a separate ledger file.")
    ] = False,
    level: Annotated[str, typer.Option(help="The lowest level to log: DEBUG, INFO, WARNING or ERROR.")] = "INFO",
    log: Annotated[
        str, typer.Option("--log", help="json, text, or auto: text at a terminal and JSON everywhere else.")
    ] = "auto",
) -> None:
    """Run the daemon until SIGTERM. SIGHUP reloads the files. Stopping never releases a lease."""
    import structlog

    from agent.clock import SystemClock
    from agent.config import exposure
    from agent.ledger.ledger_errors import LedgerError
    from agent.systemd import CredentialError
    from agent.telemetry import logging

    if level.upper() not in {"DEBUG", "INFO", "WARNING", "ERROR"}:
        exits.stop(exits.BAD_INPUT, [f"--level: {level!r} is none of DEBUG, INFO, WARNING, ERROR"])
    if log not in logging.FORMS:
        exits.stop(exits.BAD_INPUT, [f"--log: {log!r} is none of {', '.join(logging.FORMS)}"])
    # Ignore a reload until the daemon is ready. Without a handler, SIGHUP would end the process.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    logging.configure(session.REDACTOR, SystemClock().now, level=level, form=log)
    settings, tuned = session.read(config)
    for each in exposure.exposures(settings):
        structlog.get_logger("gpubid.run").warning("exposed", about=each.about, reason=each.sentence, fix=each.fix)
    try:
        asyncio.run(_run_until_signal(settings, tuned, config, is_dry=dry_run))
    except CredentialError as error:
        exits.stop(exits.BAD_INPUT, [str(error)])
    except LedgerError as error:
        exits.refused(error)


async def _run_until_signal(settings: "Config", tuned: "Mapping[str, Tuned]", config: Path, *, is_dry: bool) -> None:
    """Run the daemon. A stop before the daemon handles signals ends it cleanly, because nothing has begun."""
    loop, mine = asyncio.get_running_loop(), asyncio.current_task()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, mine.cancel if mine is not None else sys.exit)
    try:
        await _run_with_good_files(settings, tuned, config, is_dry=is_dry)
    except asyncio.CancelledError:
        _print_line("stopped before it was ready; nothing was sent")


async def _run_with_good_files(settings: "Config", tuned: "Mapping[str, Tuned]", file: Path, *, is_dry: bool) -> None:
    """Run the daemon. A standby whose new files name an address or folder that it cannot use goes back to the last."""
    from agent.web.web_server import ListenError

    last: tuple[Config, Mapping[str, Tuned]] | None = None
    while True:
        try:
            if await _run(settings, tuned, file, is_dry=is_dry):
                return
        except ListenError as error:
            if last is None:
                exits.stop(exits.BAD_INPUT, [str(error)])
            _refuse([str(error)])
            (settings, tuned), last = last, None
        else:
            last = settings, tuned
            settings, tuned = _read_again(file, *last)


def _refuse(problems: "Iterable[object]") -> None:
    import structlog

    from agent.domain.record.event_kind import LoggedKind

    for problem in problems:
        structlog.get_logger("gpubid.run").error(LoggedKind.CONFIG_REFUSED, problem=str(problem))


def _read_again(file: Path, settings: "Config", tuned: "Mapping[str, Tuned]") -> "tuple[Config, Mapping[str, Tuned]]":
    """Return the files as they are now, or the last good ones. SIGHUP makes a standby read them again."""
    from agent.cli.shared import named_keys
    from agent.config.problems import ConfigError

    try:
        return named_keys.read_for_start(file)
    except ConfigError as error:
        _refuse(error.problems)
        return settings, tuned


async def _won(config: "Config", notifier: "Notifier", file: Path) -> "Storage | None":
    """Stand by until this daemon leads; return its ledger's place, or None if the files are to be read again.

    Raises:
        ListenError: the standby's page or its operators' socket cannot be served.
    """
    from agent.ledger import storage

    if config.ledger_server is None:
        return storage.of(config.ledger)
    # Nothing of a standby is imported where the ledger is a file.
    from agent.cli.shared import named_keys
    from agent.clock import SystemClock
    from agent.standby import Standby
    from agent.telemetry import metric_families

    campaign = storage.campaign(config.ledger, config.ledger_server, session.ledger_password)
    registry = metric_families.registry()
    standby = Standby(config, campaign, registry, notifier, SystemClock(), lambda: named_keys.read_for_start(file)[0])
    return campaign.storage if await standby.run() else None


async def _run(config: "Config", tuned: "Mapping[str, Tuned]", file: Path, *, is_dry: bool) -> bool:
    """Run the daemon until it is stopped. Return False if the files are to be read again before it leads."""
    from agent import schedule, systemd
    from agent.app import App
    from agent.telemetry import metric_families, metric_updates

    registry = metric_families.registry()
    figures = metric_updates.Metrics(
        registry, [market.name for market in config.markets], [work.name for work in config.workloads]
    )
    async with session.outside(config, keeps=not is_dry) as outside:
        notifier = systemd.Notifier(os.environ)
        place = None if is_dry else await _won(config, notifier, file)
        if place is None and not is_dry:
            return False
        there = replace(outside, observer=figures.observer, ledger_place=place)
        with schedule.opening(notifier.watchdog, notifier.watchdog_seconds):
            app = await App.open(config, tuned, there, is_dry=is_dry)
        figures.lead.of(app.ledger.fleet_id)
        unfit = app.findings(config, is_start=True)
        if unfit:
            await app.close()
            exits.stop(exits.BAD_INPUT, [f"{config.file}: {each.key}: {each.sentence}" for each in unfit])
        await _serve(app, _parts(app, config, file, figures, registry, notifier))
    return True


def _parts(
    app: "App",
    config: "Config",
    file: Path,
    figures: "Metrics",
    registry: "CollectorRegistry",
    notifier: "Notifier",
) -> "Parts":
    """Return the parts of the daemon around an App.

    Raises:
        CredentialError: a credential of [web] cannot be read.
    """
    from agent import daemon
    from agent.cli.shared import named_keys

    return daemon.Parts(
        figures,
        registry,
        notifier,
        lambda: named_keys.read_for_reload(file, app.config.workloads),
        lambda url: _announce(app, url),
        credential=session.named,
        webhook_secret=_named(config.listen.webhook_credential),
        token=_named(config.listen.credential),
    )


async def _serve(app: "App", parts: "Parts") -> None:
    """Run the daemon until it is stopped, and print what goes on billing; or end if it cannot listen."""
    from agent import daemon
    from agent.web.web_server import ListenError

    end = "stopped"
    try:
        await daemon.Daemon(app, parts).run()
    except ListenError as error:
        end = NOT_STARTED
        exits.stop(exits.BAD_INPUT, [str(error)])
    finally:
        _print_billing(app, end)
        await app.close()


def _announce(app: "App", url: str) -> None:
    """Print where the daemon listens, and tell the standbys."""
    _print_line(f"page at {url}/, metrics at {url}/metrics; ledger {app.ledger.place.shown}")
    app.ledger.announce(url)


def _named(name: str) -> "Callable[[], str] | None":
    """Return a function that reads a credential at each use, so that it may be replaced; None if none is named.

    Raises:
        CredentialError: the named credential cannot be read.
    """
    if not name:
        return None
    session.named(name)
    return lambda: session.named(name)


def _print_billing(app: "App", end: str) -> None:
    """Print the leases that still bill, because stopping the daemon never releases a lease.

    A daemon that was not started says nothing of a fleet without leases: it has read no market.
    """
    from agent.domain.work import sign_of_life

    leases, rate = app.billing()
    for intent in app.doubts():
        _print_line(f"in doubt: {intent.kind.value} {intent.intent_id} for {intent.slot} may bill {intent.rate}")
    if not leases:
        if end != NOT_STARTED:
            _print_line(f"{end}; no lease is open")
        return
    most = f", up to {app.most_rate()} once all of them run" if app.most_rate() > rate else ""
    _print_line(f"{end}; {len(leases)} lease(s) go on billing {rate}{most}:")
    for lease in leases:
        _print_line(f"  {lease.slot} {lease.lease_id} {lease.state.value}: {lease.billing_rate}")
    for slot, at, ending in app.signs.fires():
        _print_line(f"  {slot}: its guard {ending} it {sign_of_life.spoken(at)}, unless a daemon runs again")
    _print_line("`gpubid run` continues with them; `gpubid kill` ends them")


def _print_line(line: str) -> None:
    """Print a line on standard output, because standard error is for logs. A closed output is no error."""
    with contextlib.suppress(OSError):
        sys.stdout.write(f"gpubid: {line}\n")
        sys.stdout.flush()
