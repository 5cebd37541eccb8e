"""`gpubid doctor`: check everything that the daemon needs, and print a fix for each problem."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from agent.cli.setup import doctor_buckets, doctor_checks, doctor_keys
from agent.cli.shared import exits, last_good, ledger_access, session

if TYPE_CHECKING:
    from agent.config.daemon_paths import DaemonPaths
    from agent.config.settings import Config
    from agent.ledger.ledger_errors import LedgerError
    from agent.ledger.reader import Reader

_SHOWN = {doctor_checks.Verdict.OK: " ok ", doctor_checks.Verdict.WARN: "warn", doctor_checks.Verdict.FAIL: "FAIL"}


def doctor(config: session.ConfigOption = session.DEFAULT_CONFIG, as_json: session.JsonOption = False) -> None:
    """Check keys, clocks, disk, ledger, markets, units and metrics. Exit 1 if a check fails."""
    session.log_quietly()
    with session.waiting("checking"):
        lines = look(config)
    is_good = all(line.verdict is not doctor_checks.Verdict.FAIL for line in lines)
    if as_json:
        session.print_json(as_document(lines))
    else:
        for line in lines:
            session.say(
                f"{_SHOWN[line.verdict]}  {line.name}: {line.sentence}" + (f" -> {line.fix}" if line.fix else "")
            )
    if not is_good:
        raise typer.Exit(exits.FAILED)


def as_document(lines: list[doctor_checks.Line]) -> dict[str, object]:
    """Return the lines as JSON."""
    return {
        "is_good": all(line.verdict is not doctor_checks.Verdict.FAIL for line in lines),
        "lines": [
            {"name": line.name, "verdict": line.verdict.value, "sentence": line.sentence, "fix": line.fix}
            for line in lines
        ],
    }


def look(file: Path) -> list[doctor_checks.Line]:
    """Return a line for each check. For a wrong configuration, return its mistakes and the checks that need none."""
    read = last_good.read(file)
    if isinstance(read, last_good.Broken):
        fix = "correct the file; `gpubid check` checks it again"
        bad = [
            doctor_checks.Line("configuration", doctor_checks.Verdict.FAIL, mistake, fix) for mistake in read.mistakes
        ]
        return [*doctor_checks.versions(), *bad, *_look_past(read.place)]
    settings, _ = read
    return [
        *doctor_checks.versions(),
        *doctor_checks.configuration(file),
        *doctor_checks.exposed(settings),
        *asyncio.run(_look(settings)),
    ]


def _look_past(place: "DaemonPaths") -> list[doctor_checks.Line]:
    """Run the checks that need no configuration, if there is a ledger."""
    from agent.clock import SystemClock

    if session.may_read(place.ledger) and not place.ledger.exists():
        return []
    return [
        *doctor_checks.disk(place),
        *doctor_checks.ledger(place, SystemClock().now()),
        *asyncio.run(doctor_checks.answers(place)),
    ]


async def _look(config: "Config") -> list[doctor_checks.Line]:
    from agent.clock import SystemClock
    from agent.outside import Outside

    outside = Outside(SystemClock(), session.secret, {})
    bound, refused = await _ledger_facts(config)
    lines: list[doctor_checks.Line] = []
    for one in config.markets:
        slots = sum(work.most_live for work in config.workloads if work.may_use(one.name))
        lines += await doctor_checks.market(one, outside, bound, slots)
    lines += [*doctor_checks.credentials(config), *await doctor_buckets.buckets(config), *doctor_checks.disk(config)]
    is_moved = any(line.name == "ledger" for line in refused)
    lines += refused
    lines += [] if is_moved else await asyncio.to_thread(doctor_checks.ledger, config, outside.clock.now())
    if config.ledger_server is not None:
        # Every verb reads this module.
        from agent.cli.setup import doctor_ledger_server

        found = await asyncio.to_thread(doctor_ledger_server.server, config, config.ledger_server)
        lines += [line for line in found if not (is_moved and line.name == "ledger")]
    lines += [*await doctor_keys.keys(config), *await doctor_checks.daemon(config)]
    if session.is_service(config.file):
        lines += await doctor_checks.units()
    return [*lines, *await doctor_checks.webhook(config.notify)]


async def _ledger_facts(config: "Config") -> tuple[dict[str, str], list[doctor_checks.Line]]:
    """Return the account to which the ledger is bound, by market, and lines on why no daemon can start with it.

    Both are empty if the ledger cannot be read: the other checks say why.
    """
    from agent.ledger.ledger_errors import LedgerError
    from agent.ledger.reader import open_reader
    from agent.systemd import CredentialError

    if not ledger_access.may_read(config):
        return {}, []
    try:
        reader = await open_reader(ledger_access.place_of(config))
        try:
            meta = await reader.meta()
            orphaned = _of_another_fleet(config, meta.get("fleet_id", "")) or await _orphaned(config, reader)
        finally:
            await reader.close()
    except LedgerError as error:
        return {}, _moved(error)
    except CredentialError:
        return {}, []
    return {key.removeprefix("account/"): value for key, value in meta.items() if key.startswith("account/")}, orphaned


async def _orphaned(config: "Config", reader: "Reader") -> list[doctor_checks.Line]:
    """Return a line for each open lease that forbids a start with these files, such as those of a standby's box."""
    from agent.clock import SystemClock
    from agent.observe import reload_review

    now = SystemClock().now()
    found = reload_review.at_start(config, reload_review.holdings(await reader.recollection(now), now))
    # Each sentence ends with an order that ends a lease. The file is more likely wrong than the lease.
    whys = (f"{each.key}: {each.sentence.partition('; ')[0]}" for each in found)
    fix = "correct the file, on a standby with the leader's file; `gpubid check --against-running` says more"
    return [doctor_checks.Line("start", doctor_checks.Verdict.FAIL, f"no daemon starts: {why}", fix) for why in whys]


def _of_another_fleet(config: "Config", fleet_id: str) -> list[doctor_checks.Line]:
    """Return a line if the small file beside the ledger's path is of another fleet than the ledger."""
    from agent.ledger.file import sidecar
    from agent.ledger.ledger_errors import LedgerError

    try:
        beside = sidecar.read_fleet_id(config.ledger)
    except LedgerError as error:
        return [doctor_checks.Line("start", doctor_checks.Verdict.FAIL, error.sentence, "see the message")]
    if beside in {None, fleet_id}:
        return []
    sentence = f"no daemon starts: the ledger is of fleet {fleet_id}, {config.ledger}.fleet has {beside}"
    fix = "name the ledger of this fleet under [ledger]; on a server also schema_name"
    return [doctor_checks.Line("start", doctor_checks.Verdict.FAIL, sentence, fix)]


def _moved(error: "LedgerError") -> list[doctor_checks.Line]:
    """Return a line if the error says that the ledger was moved elsewhere, so that no program opens it any more."""
    from agent.ledger.ledger_errors import Code

    sentence, _, fix = error.sentence.partition("; ")
    is_moved = error.code is Code.MOVED
    return [doctor_checks.Line("ledger", doctor_checks.Verdict.FAIL, sentence, fix)] if is_moved else []
