"""`gpubid ssh` and `gpubid logs`: log in to a slot's container, and read its output."""

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.cli.shared import completion, daemon_socket, exits, last_good, ledger_access, login_keys, session
from agent.telemetry.plain_text import plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent.config.settings import Config
    from agent.domain.record.lease import Lease
    from agent.web.reading.log_answers import LogQuestion

SlotArgument = Annotated[
    str, typer.Argument(metavar="WORKLOAD[/SLOT]", help="The slot, or a lease's id.", autocompletion=completion.places)
]
FOLLOW_SECONDS = 5.0
"""Each request makes the market write a file."""


def ssh(
    slot: SlotArgument,
    command: Annotated[list[str] | None, typer.Argument(help="The command to run there; without it, a shell.")] = None,
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    *,
    is_printed: Annotated[bool, typer.Option("--print", help="Print the ssh command and do not run it.")] = False,
) -> None:
    """Log in to a slot's container with ssh."""
    from agent.cli.watch import fleet
    from agent.markets import registered_markets

    shown = fleet.shown(config)
    rows = [row for row in shown["leases"] if slot in {row["slot"], row["slot"].partition("/")[0], row["lease"]}]
    if not rows:
        exits.stop(exits.BAD_INPUT, [f"no open lease matches {plain(slot)!r}; `gpubid fleet` shows them"])
    running = [row for row in rows if row["state"] == "running"]
    row = (running or rows)[-1]
    line = row.get("ssh")
    if not line:
        state = row["state"]
        if shell_by := registered_markets.shell_by(row["market"]):
            said = shell_by.format(rent=row.get("rent") or "...")
            exits.stop(exits.FAILED, [f"{row['market']} gives {plain(slot)} no address: {said}"])
        exits.stop(exits.FAILED, [f"the address of {plain(slot)} is not known yet: it is {state}; try again later"])
    words = [*line.split(), *(command or [])]
    if is_printed:
        session.say(" ".join(words))
        return
    if _has_own_keys(config, row["slot"]):
        session.warn(login_keys.sentence(row["market"], row.get("keys_seen_at")))
    os.execvp(words[0], words)  # noqa: S606 - a fixed program, its host checked


def _has_own_keys(file: Path, slot: str) -> bool:
    """Return whether the workload of a slot names keys; False for a broken configuration."""
    read = last_good.read(file)
    works = () if isinstance(read, last_good.Broken) else read[0].workloads
    return any(work.name == slot.rpartition("/")[0] and bool(work.ssh_keys) for work in works)


def logs(
    slot: SlotArgument,
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    *,
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, max=5000, help="How many lines to print.")] = 100,
    is_followed: Annotated[bool, typer.Option("--follow", "-f", help="Keep printing new output.")] = False,
    lease: Annotated[str, typer.Option(metavar="ID", help="A lease of the slot, running or ended.")] = "",
    is_previous: Annotated[
        bool, typer.Option("--previous", "-p", help="Print the log that was kept when the last run ended.")
    ] = False,
    as_json: session.JsonOption = False,
) -> None:
    """Print the last output of a slot's container, or what was kept of an earlier one."""
    from agent.ledger.ledger_errors import LedgerError
    from agent.web.reading.log_answers import LogQuestion

    if is_followed and is_previous:
        exits.stop(exits.BAD_INPUT, ["--follow: a kept log has no new output; leave out --follow or --previous"])
    read = last_good.read(config)
    session.log_quietly()
    try:
        whom = read if isinstance(read, last_good.Broken) else read[0]
        asyncio.run(_logs(whom, LogQuestion(slot, lines, lease, is_previous), is_followed=is_followed, as_json=as_json))
    except LedgerError as error:
        exits.refused(error)
    except KeyboardInterrupt:
        return


async def _logs(
    config: "Config | last_good.Broken", question: "LogQuestion", *, is_followed: bool, as_json: bool
) -> None:
    from agent.clock import SystemClock
    from agent.decide.reconcile.probes import probing

    before: list[str] = []
    while True:
        said = await _read(config, question)
        if as_json:
            session.print_json(said)
        else:
            if not before:
                _say_kept(said)
                _say_empty(said)
            for line in probing.news(before, said["lines"]):
                session.say(line)
        # Without a flush, a pipe would show nothing until its buffer is full.
        sys.stdout.flush()
        if not is_followed:
            return
        before = said["lines"]
        await SystemClock().sleep(FOLLOW_SECONDS)


def _say_kept(said: dict[str, Any]) -> None:
    """Say on standard error which kept log this is."""
    if kept := said.get("kept"):
        session.warn(f"the log of {said['lease']} ({said['slot']}) as of {kept['at'][:19]}Z: {kept['moment']}")


def _say_empty(said: dict[str, Any]) -> None:
    """Say on standard error that a log has no output, which a blank line would not show."""
    if not any(line.strip() for line in said["lines"]):
        session.warn(f"{said['lease']} ({said['slot']}) has printed nothing yet; `gpubid fleet` shows its state")


async def _read(config: "Config | last_good.Broken", question: "LogQuestion") -> dict[str, Any]:
    """Return the log from the daemon; if no daemon runs, from the market or from the files beside the ledger."""
    query = question.query()
    if isinstance(config, last_good.Broken):
        return dict(config.answer_or_end(await daemon_socket.get(config.place, "/logs", query)))
    said: dict[str, Any] | None = await daemon_socket.get(config, "/logs", query)
    return said if said is not None else await _directly(config, question)


async def _directly(config: "Config", question: "LogQuestion") -> dict[str, Any]:
    from agent.clock import SystemClock
    from agent.ledger.reader import open_reader
    from agent.web.reading import log_answers

    clock = SystemClock()
    reader = await open_reader(ledger_access.place_of(config))
    try:
        now, meta = clock.now(), await reader.meta()
        place = (meta.get("fleet_id", ""), config.ledger, session.named, now)
        grounds = log_answers.Grounds(await reader.recollection(now), reader, config.workloads, *place)
        said = await log_answers.past(question, grounds)
    finally:
        await reader.close()
    return _or_end(said if said is not None else await _present(config, question, grounds.known.leases))


async def _present(config: "Config", question: "LogQuestion", leases: "Sequence[Lease]") -> dict[str, Any]:
    """Return the present output, from the market."""
    from agent.clock import SystemClock
    from agent.outside import Outside
    from agent.web.reading import container_logs

    if any(settings.is_simulated for settings in config.markets):
        exits.stop(exits.FAILED, ["a simulated market runs inside the daemon, and no daemon runs: start `gpubid run`"])
    outside = Outside(SystemClock(), session.secret, {})
    markets = {settings.name: outside.connect(settings) for settings in config.markets}
    try:
        return await container_logs.read(question.lease or question.slot, question.lines, leases, markets)
    finally:
        for market in markets.values():
            await market.close()


def _or_end(said: dict[str, Any]) -> dict[str, Any]:
    if "error" in said:
        exits.stop(exits.FAILED, [said["sentence"]])
    return said
