"""`gpubid check`: check the configuration, print a summary, and report its effect on open leases."""

import asyncio
import stat
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.cli.setup import bucket_claims
from agent.cli.shared import daemon_socket, exits, ledger_access, named_keys, session
from agent.config import exposure, problems
from agent.config.linting import lint, lint_finding
from agent.domain.market.gpu import GpuModel
from agent.domain.money import UsdPerHour

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from agent.cli.setup.doctor_checks import Line
    from agent.config.settings import Config
    from agent.decide.operators.reload import Finding
    from agent.domain.work.workload import Workload
    from agent.observe.reload_review import Holdings


PRICES_OF = timedelta(days=7)


def check(
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    against_running: Annotated[
        bool, typer.Option("--against-running", help="Report the effect of loading the file on the open leases.")
    ] = False,
    is_strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 if there is a warning, except of keys the unit may have.")
    ] = False,
    as_json: session.JsonOption = False,
) -> None:
    """Check the configuration and every strategy file. Report each mistake with file, line, key and fix."""
    settings, tuned = session.read(config)
    findings = _against(settings) if against_running else ()
    summary: dict[str, Any] = {
        "file": str(settings.file),
        "digest": settings.digest,
        "markets": {market.name: _market(market.simulated, spend=market.may_spend) for market in settings.markets},
        "workloads": {work.name: {"slots": work.slots, "strategy": work.strategy} for work in settings.workloads},
        "strategies": {name: one.digest for name, one in sorted(tuned.items())},
        "ledger": str(settings.ledger) if settings.ledger_server is None else settings.ledger_server.shown,
    }
    warnings = _warnings(settings)
    summary["warnings"] = [*warnings, *placed(settings, _unseen_keys(settings))]
    claimed = asyncio.run(bucket_claims.of_others(settings))
    summary["claimed"] = [{"place": each.name, "sentence": each.sentence, "fix": each.fix} for each in claimed]
    if against_running:
        summary["against_running"] = [
            {"key": each.key, "code": each.code, "sentence": each.sentence, "is_refused": each.is_refusal}
            for each in findings
        ]
    if as_json:
        session.print_json(summary)
        _end(findings, has_failed=bool(claimed) or (is_strict and bool(warnings)))
        return
    session.say(f"{settings.file}: good, digest {settings.digest[:12]}")
    for market in settings.markets:
        session.say(f"  market {market.name}: {_market(market.simulated, spend=market.may_spend)}")
    for work in settings.workloads:
        strategy = tuned[work.strategy]
        session.say(f"  workload {work.name}: {_slots(work)} slot(s) on {work.strategy} ({strategy.digest[:12]})")
    for sentence in (*(f"warning: {warning}" for warning in summary["warnings"]), *_judged(claimed, findings)):
        session.say(f"  {sentence}")
    if against_running and not findings:
        session.say("  loading the file would affect no open lease")
    _end(findings, has_failed=bool(claimed) or (is_strict and bool(warnings)))


def _judged(claimed: "Sequence[Line]", findings: "Sequence[Finding]") -> "Iterator[str]":
    """Yield the sentences on folders that others have claimed, and on the effects on open leases."""
    yield from (f"refused: {line.name}: {line.sentence}; {line.fix}" for line in claimed)
    for each in findings:
        yield f"{'refused' if each.is_refusal else 'noted'}: {each.key}: {each.sentence}"


def _end(findings: "tuple[Finding, ...]", *, has_failed: bool) -> None:
    if has_failed or any(each.is_refusal for each in findings):
        raise typer.Exit(exits.FAILED)


def _warnings(config: "Config") -> list[str]:
    """Return the exposures, then the other findings, each with its line and its fix."""
    odd = placed(config, (*_missing_keys(config), *lint.findings(config, facts(config))))
    return [*(f"{each.sentence}; {each.fix}" for each in exposure.exposures(config)), *odd]


def placed(config: "Config", findings: "Iterable[lint_finding.Finding]") -> "Iterator[str]":
    """Yield each finding with its file, its line and its fix."""
    from agent.config.files import layers

    read = layers.read(config.file)
    for each in findings:
        file, line = read.place(tuple(each.key.split(".")))
        yield f"{file}:{line}: {each.key}: {each.sentence}; {each.fix}"


def _missing_keys(config: "Config") -> "Iterator[lint_finding.Finding]":
    """Yield the key files without a key. The configuration is no worse for it, but no daemon runs on it."""
    for key in named_keys.of_start(config):
        if key.file is not None and (why := _why_without_key(key.file)):
            yield lint_finding.Finding(problems.dotted(key.path), why, "write the key into it, mode 600")


def _unseen_keys(config: "Config") -> "Iterator[lint_finding.Finding]":
    """Yield the named keys that this command does not see. The unit of the service may have them, so none fails."""
    from agent.systemd import STORE, CredentialError, variable_of

    for key in named_keys.of_start(config):
        if key.file is not None:
            continue
        try:
            session.looked_up(key.name, None)
        except CredentialError as error:
            sentence, _, fix = str(error).partition("; ")
            if error.code == "no_credential":
                sentence = f"this command sees no key named {key.name}, and it does not see those of the unit"
                ways = f"set the variable {variable_of(key.name)} or write {STORE / key.name}"
                fix = f"{ways}, unless the unit has LoadCredential={key.name}:FILE"
            yield lint_finding.Finding(problems.dotted(key.path), sentence, fix)


def _why_without_key(file: "Path") -> str:
    """Return why a file surely has no key; empty if it may have one, also if it is out of this user's sight."""
    try:
        found = file.stat()
    except OSError as error:
        return f"there is no file {file.absolute()}" if isinstance(error, FileNotFoundError) else ""
    if stat.S_ISDIR(found.st_mode):
        return f"{file.absolute()} is a directory and no file"
    return f"{file.absolute()} is empty" if stat.S_ISREG(found.st_mode) and not found.st_size else ""


def facts(config: "Config") -> lint.Known:
    """Return the time, the shipped lists of cards, and the ledger's facts if it can be read."""
    from agent.baselines import card_lists_loading
    from agent.clock import SystemClock
    from agent.ledger.ledger_errors import LedgerError

    known = lint.Known(SystemClock().now(), card_lists=card_lists_loading.load())
    if not ledger_access.may_read(config) or ledger_access.is_missing(config):
        return known
    try:
        return asyncio.run(_recorded(config, known))
    except LedgerError:
        # Other verbs report a bad ledger. The configuration is checked anyway.
        return known


async def _recorded(config: "Config", known: lint.Known) -> lint.Known:
    from agent.ledger.reader import open_reader

    now = known.now
    reader = await open_reader(ledger_access.place_of(config))
    try:
        hours = await reader.price_hours(since=now - PRICES_OF)
        samples = await reader.prices(since=now - PRICES_OF)
        accounts = (await reader.recollection(now)).credits
        regions = await reader.regions()
        seen = {(offer.market, offer.gpu) for offer in await reader.slices()}
    finally:
        await reader.close()
    spans = ((hour.gpu, hour.gpus, span.least) for hour in hours for span in (hour.ask, hour.floor) if span)
    rates = ((row.gpu, row.gpus, rate) for row in samples for rate in (row.ask, row.floor) if rate)
    lowest: dict[GpuModel, UsdPerHour] = {}
    for model, gpus, rate in (*spans, *rates):
        each = rate.scaled(1 / gpus)
        lowest[model] = min(each, lowest.get(model, each))
    credits_of = {name: kept.amount for name, kept in accounts.items() if kept.amount}
    return replace(known, prices=lowest, credits=credits_of, regions=regions, cards_seen=seen)


def _against(config: "Config") -> "tuple[Finding, ...]":
    """Return the effects of loading the file on the ledger's leases, under the caps of the running daemon."""
    from agent.ledger.ledger_errors import LedgerError

    if ledger_access.is_missing(config):
        return ()
    try:
        return asyncio.run(_found(config))
    except LedgerError as error:
        exits.refused(error)


async def _found(config: "Config") -> "tuple[Finding, ...]":
    from agent.observe import reload_review
    from agent.web.reading import caps

    running = await _of_daemon(config)
    present = await _holdings(config, from_daemon=running is not None)
    return reload_review.findings(config, present, caps.of(running["limits"]) if running else None)


async def _of_daemon(config: "Config") -> "dict[str, Any] | None":
    """Return the running daemon's settings; None if no daemon runs here or it stands by. Then the ledger is read."""
    try:
        return await daemon_socket.running(config)
    except daemon_socket.Refused as error:
        if error.code == "standby":
            return None
        exits.stop(error.exit_code, [str(error)])


async def _holdings(config: "Config", *, from_daemon: bool) -> "Holdings":
    """Return the holdings: from the daemon, or from the ledger if no daemon runs."""
    from agent.clock import SystemClock
    from agent.ledger.reader import open_reader
    from agent.observe import reload_review
    from agent.web.reading import holdings

    if from_daemon:
        return holdings.decoded(await daemon_socket.get(config, "/holdings"))
    reader = await open_reader(ledger_access.place_of(config))
    try:
        now = SystemClock().now()
        return reload_review.holdings(await reader.recollection(now), now)
    finally:
        await reader.close()


def _market(climate: str, *, spend: bool) -> str:
    if climate:
        return f"simulated ({climate}), costs nothing"
    return "live, may spend" if spend else "live, reads only (spend = false)"


def _slots(work: "Workload") -> str:
    return str(work.slots) if work.demand is None else f"{work.demand.least} to {work.slots}"
