"""`gpubid doctor`: whether all that the daemon needs is well, each line with what to do where it is not."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from agent.cli import checks, exits, lastgood, session

if TYPE_CHECKING:
    from agent.config.market_place import Place
    from agent.config.settings import Config

_SHOWN = {checks.Verdict.OK: " ok ", checks.Verdict.WARN: "warn", checks.Verdict.FAIL: "FAIL"}


def doctor(config: session.ConfigOption = session.DEFAULT_CONFIG, as_json: session.JsonOption = False) -> None:
    """Look at keys, clocks, disk, ledger, markets, units and metrics; ends with 1 where something fails."""
    session.log_quietly()
    with session.waiting("looking around"):
        lines = look(config)
    is_good = all(line.verdict is not checks.Verdict.FAIL for line in lines)
    if as_json:
        session.print_json(as_document(lines))
    else:
        for line in lines:
            session.say(
                f"{_SHOWN[line.verdict]}  {line.name}: {line.sentence}" + (f" -> {line.mend}" if line.mend else "")
            )
    if not is_good:
        raise typer.Exit(exits.FAILED)


def as_document(lines: list[checks.Line]) -> dict[str, object]:
    """Return the lines as JSON."""
    return {
        "is_good": all(line.verdict is not checks.Verdict.FAIL for line in lines),
        "lines": [
            {"name": line.name, "verdict": line.verdict.value, "sentence": line.sentence, "mend": line.mend}
            for line in lines
        ],
    }


def look(file: Path) -> list[checks.Line]:
    """Return a line for each thing; of a configuration that is wrong its mistakes, and what needs none."""
    read = lastgood.read(file)
    if isinstance(read, lastgood.Broken):
        mend = "mend the file; `gpubid check` reads it again"
        bad = [checks.Line("configuration", checks.Verdict.FAIL, mistake, mend) for mistake in read.mistakes]
        return [*checks.versions(), *bad, *_look_past(read.place)]
    settings, _ = read
    return [*checks.versions(), *checks.configuration(file), *checks.exposed(settings), *asyncio.run(_look(settings))]


def _look_past(place: "Place") -> list[checks.Line]:
    """Look at what is there without a configuration, where there is a ledger at all."""
    from agent.clock import SystemClock

    if session.may_read(place.ledger) and not place.ledger.exists():
        return []
    return [*checks.disk(place), *checks.ledger(place, SystemClock().now()), *asyncio.run(checks.answers(place))]


async def _look(config: "Config") -> list[checks.Line]:
    from agent.app import Outside
    from agent.clock import SystemClock

    outside = Outside(SystemClock(), session.secret, {})
    bound = await _accounts(config)
    lines = [line for one in config.markets for line in await checks.market(one, outside, bound)]
    lines += [*checks.credentials(config), *checks.disk(config)]
    lines += await asyncio.to_thread(checks.ledger, config, outside.clock.now())
    lines += await checks.daemon(config)
    if session.is_service(config.file):
        lines += await checks.units()
    return [*lines, *await checks.webhook(config.notify)]


async def _accounts(config: "Config") -> dict[str, str]:
    """Return the account of each market that the ledger is bound to; nothing where it cannot be read."""
    from agent.ledger.ledger_errors import LedgerError
    from agent.ledger.reader import open_reader

    if not session.may_read(config.ledger):
        return {}
    try:
        reader = await open_reader(config.ledger)
    except LedgerError:
        return {}
    try:
        meta = await reader.meta()
    finally:
        await reader.close()
    return {key.removeprefix("account/"): value for key, value in meta.items() if key.startswith("account/")}
