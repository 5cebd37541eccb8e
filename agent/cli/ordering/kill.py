"""`gpubid kill`: a person stops all spending, or the spending on one target.

The daemon does it if it runs, else this process with the ledger, else this process by label without a ledger.
Where another box may lead, only `--by-label` ends by label.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.cli.ordering import confirmation, kill_by_label, kill_progress, named_markets, order_sending, own_program
from agent.cli.shared import completion, daemon_socket, exits, last_good, ledger_access, order_text, session
from agent.domain.record.hold import EVERYTHING
from agent.domain.work.order import Order

if TYPE_CHECKING:
    from agent.config.settings import Config
    from agent.decide.strategy import Tuned
    from agent.ledger.ledger_errors import LedgerError

LOOKS = 2
"""Listings after a kill without a daemon. An instance that the ledger lacks is believed only at the second listing."""
LOCKED_LOOKS = 20
"""How often a kill asks again for the daemon of a ledger that is in use. A daemon that starts listens soon after."""
LOCKED_SECONDS = 1.0
"""Time between two of these questions."""
Answer = dict[str, Any]
TO_DAEMON = "the daemon keeps trying to end them; `gpubid fleet` shows them, `gpubid kill --lift` ends the kill"
TO_NOBODY = "no daemon runs, so nobody tries again: give `gpubid kill` again, or start `gpubid run`"
RECORDED = "nothing is rented until `gpubid kill --lift`"
UNRECORDED = "this kill is not recorded: a daemon that starts rents again, until you give it `gpubid kill`"
INTERNAL = ("is_daemons", "is_recorded")
"""Keys of an answer that are not printed."""
FleetOption = Annotated[
    str, typer.Option(metavar="ID", help="Without a usable ledger: end the instances of this fleet id.")
]
MarketOption = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME[=URL]", help="Without a readable configuration: the market, by the name of its table."),
]
CredentialOption = Annotated[
    list[str] | None, typer.Option(metavar="NAME|FILE", help="The key of each --market, in the same order.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="A key of a --market that limits its listing, such as project=NAME; may repeat.",
    ),
]
ByLabelOption = Annotated[
    bool,
    typer.Option(
        "--by-label",
        help="End instances by our label, without daemon and ledger. Only at a terminal, which asks twice.",
    ),
]
LIFT = Order("resume", str(EVERYTHING))


def kill(  # noqa: PLR0913 - one parameter per option
    target: Annotated[
        str | None,
        typer.Argument(
            help="NAME, NAME/SLOT, a lease or instance id, host:MARKET/ID, owner:MARKET/ID or market:NAME; else all.",
            autocompletion=completion.places,
        ),
    ] = None,
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    keep_disks: Annotated[
        bool, typer.Option("--keep-disks", help="Pause instead of release; disks still bill.")
    ] = False,
    lift: Annotated[bool, typer.Option("--lift", help="End an earlier kill: let the daemon rent again.")] = False,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Give the order and return; without this, wait until nothing of it bills.")
    ] = False,
    fleet: FleetOption = "",
    market: MarketOption = None,
    credential: CredentialOption = None,
    key: SetOption = None,
    by_label: ByLabelOption = False,
    yes: confirmation.YesOption = False,
    as_json: session.JsonOption = False,
) -> None:
    """Stop spending now: release every lease, and rent nothing until `kill --lift`; with a target, only there.

    `kill --lift TARGET` ends the kill of a target.
    """
    if lift and keep_disks:
        exits.stop(exits.BAD_INPUT, ["--lift ends a kill, --keep-disks gives one; give one of them"])
    named = named_markets.Named(fleet, tuple(market or ()), tuple(credential or ()), tuple(key or ()))
    named_markets.check(named)
    if by_label:
        if lift or target is not None:
            exits.stop(exits.BAD_INPUT, ["--by-label ends everything; leave the target and --lift out"])
        _kill_by_label(config, named, keep_disks=keep_disks, wait=not no_wait, as_json=as_json)
        return
    if target is not None and target != str(EVERYTHING):
        order = Order("lift" if lift else "pause" if keep_disks else "kill", target)
        _give(order, config, named, wait=not no_wait, as_json=as_json, yes=yes)
        return
    read = last_good.read(config)
    progress = kill_progress.Progress(keep_disks=keep_disks, to_error=as_json)
    if lift:
        _refuse_missing(config, "a kill", lift=True)
        said = _lifted(read)
        _print(_shown(said), said["said"], as_json=as_json)
        return
    confirmation.ask_all(_kill(progress), read, yes=yes)
    _print_killed(_killed(read, named, progress, wait=not no_wait), progress, wait=not no_wait, as_json=as_json)


def _give(order: Order, file: Path, named: named_markets.Named, *, wait: bool, as_json: bool, yes: bool) -> None:
    """Give an order on one target. A pause is not waited for: a market that cannot pause would never end the wait."""
    if named != named_markets.Named():
        sentence = "--fleet, --market, --credential and --set end everything by label: leave the target out"
        exits.stop(exits.BAD_INPUT, [sentence])
    is_lift = order.verb == "lift"
    _refuse_missing(file, order.target, lift=is_lift)
    waits = wait and order.verb == "kill"
    order_sending.give([order], file, as_json=as_json, yes=yes or is_lift, waits=waits)


def _kill_by_label(file: Path, named: named_markets.Named, *, keep_disks: bool, wait: bool, as_json: bool) -> None:
    """End everything by label after a person at a terminal has confirmed it twice. No daemon and no ledger is asked."""
    from agent.ledger.ledger_errors import Code, LedgerError

    confirmation.ask_twice(
        "kill by label: every instance of the fleet ends, and neither daemon nor ledger is asked",
        "a leading daemon does not know of it and may rent again: stop that daemon first, or kill through it",
    )
    session.log_quietly()
    read, progress = last_good.read(file), kill_progress.Progress(keep_disks=keep_disks, to_error=as_json)
    if isinstance(read, last_good.Broken):
        said = kill_by_label.without_configuration(read, named, progress, wait=wait)
    else:
        why = LedgerError(Code.UNLED, "ended by label, as ordered")
        said = kill_by_label.without_ledger(read[0], named, progress, why, wait=wait)
    _print_killed(said, progress, wait=wait, as_json=as_json)


def _print_killed(said: Answer, progress: kill_progress.Progress, *, wait: bool, as_json: bool) -> None:
    end, unlisted = RECORDED if said["is_recorded"] else UNRECORDED, said.get("unlisted", ())
    left = progress.left(said)
    if wait and not said["in_doubt"] and not unlisted and not left:
        end = f"{'no GPU bills' if progress.keep_disks else 'nothing bills'} any more; {end}"
    if left and not as_json:
        session.say(f"{len(left)} lease(s) still bill: {TO_DAEMON if said['is_daemons'] else TO_NOBODY}")
    if unlisted and not as_json:
        session.say(f"not listed, so instances there may still bill: {', '.join(unlisted)}; {TO_NOBODY}")
    shown = {key: said[key] for key in said if key not in INTERNAL}
    _print(shown, end, as_json=as_json, is_over=not left and not unlisted)


def _lifted(read: "tuple[Config, Mapping[str, Tuned]] | last_good.Broken") -> Answer:
    if isinstance(read, last_good.Broken):
        answer: Answer = read.answer_or_end(asyncio.run(order_sending.answer_of_daemon(LIFT, read.place)))
        return answer
    from agent.ledger.ledger_errors import LedgerError
    from agent.systemd import CredentialError

    session.log_quietly()
    try:
        with session.waiting("giving the order"):
            return asyncio.run(_lift(*read))
    except LedgerError as error:
        exits.refused(error)
    except CredentialError as error:
        exits.stop(exits.BAD_INPUT, [str(error)])


async def _lift(config: "Config", tuned: "Mapping[str, Tuned]") -> Answer:
    from agent.web import operator_socket

    answer = await order_sending.answer_of_daemon(LIFT, config)
    if answer is not None:
        return answer
    ledger_access.must_own(config)
    async with own_program.opened(config, tuned) as mine:
        said, done = await mine.app.say(LIFT, order_sending.who())
        return {"said": said, **operator_socket.answer(done, mine.app.doubts())}


def _killed(
    read: "tuple[Config, Mapping[str, Tuned]] | last_good.Broken",
    named: named_markets.Named,
    progress: kill_progress.Progress,
    *,
    wait: bool,
) -> Answer:
    """Give the order to the daemon, or carry it out here. Return the result.

    While another process has the ledger, the socket is asked again: a daemon that starts, or a standby that takes the
    lead, does not listen yet.
    """
    from agent.ledger.ledger_errors import LedgerError

    session.log_quietly()
    for left in range(LOCKED_LOOKS, -1, -1):
        said = _by_daemon(read, progress, wait=wait)
        if said is not None:
            return said
        if isinstance(read, last_good.Broken):
            if read.place.is_on_server:
                why = f"{read.file} cannot be used, no daemon answers here, and the ledger is on a server"
                kill_by_label.refuse_beside_leader(why, progress, read.mistakes)
            return kill_by_label.without_configuration(read, named, progress, wait=wait)
        try:
            return _here(*read, named, progress, wait=wait)
        except LedgerError as error:
            is_led = ledger_access.is_led_elsewhere(read[0], is_first_look=left == LOCKED_LOOKS)
            _wait_for_lock(error, progress, is_over=not left or is_led)
    raise AssertionError("the last look returns or ends")


def _by_daemon(
    read: "tuple[Config, Mapping[str, Tuned]] | last_good.Broken", progress: kill_progress.Progress, *, wait: bool
) -> Answer | None:
    """Return the result of the daemon's kill, or None if no daemon listens."""
    place = read.place if isinstance(read, last_good.Broken) else read[0]
    try:
        with session.waiting("giving the order"):
            answer = asyncio.run(order_sending.answer_of_daemon(_kill(progress), place))
    except KeyboardInterrupt:
        exits.stop(
            exits.FAILED,
            ["interrupted while waiting for the daemon's answer: check with `gpubid fleet`, or kill again"],
        )
    if answer is None:
        return None
    if isinstance(read, last_good.Broken):
        read.answer_or_end(answer)
    progress.say_done(answer["done"])
    shown = kill_progress.interruptible(kill_progress.of_daemon(place, progress, wait=wait), TO_DAEMON, progress)
    return {**_shown(answer), **shown, "is_daemons": True, "is_recorded": True}


def _wait_for_lock(error: "LedgerError", progress: kill_progress.Progress, *, is_over: bool) -> None:
    """Wait a moment for the process that has the ledger; end if `is_over`, since its daemon would rent again."""
    if is_over:
        hint = "nothing was ended; `gpubid kill --by-label` ends instances without that daemon"
        exits.stop(exits.FAILED, [f"{error.sentence}; {hint}"])
    progress.warn_once("the ledger is in use by a process that does not listen yet: asking it again")
    try:
        asyncio.run(asyncio.sleep(LOCKED_SECONDS))
    except KeyboardInterrupt:
        exits.stop(exits.FAILED, ["interrupted before the kill was given: give it again"])


def _here(
    config: "Config",
    tuned: "Mapping[str, Tuned]",
    named: named_markets.Named,
    progress: kill_progress.Progress,
    *,
    wait: bool,
) -> Answer:
    """Carry the kill out in this process.

    Raises:
        LedgerError: LOCKED, another process has the ledger. Nothing was done.
    """
    from agent.ledger.ledger_errors import Code, LedgerError
    from agent.systemd import CredentialError

    try:
        if ledger_access.is_missing(config):
            return kill_by_label.without_ledger(config, named, progress, _missing(config), wait=wait)
        if config.ledger_server is None and not session.may_write(config.ledger):
            return kill_by_label.without_ledger(config, named, progress, _locked_away(config), wait=wait)
        return kill_progress.interruptible(_order(config, tuned, progress, wait=wait), TO_NOBODY, progress)
    except LedgerError as error:
        if error.code is Code.LOCKED:
            raise
        return _by_label(config, named, progress, error, wait=wait)
    except CredentialError as error:
        if named.markets:
            # The ledger is carried out with the configuration's keys. A person has given others.
            return _by_label(config, named, progress, LedgerError(Code.UNREACHABLE, str(error)), wait=wait)
        exits.stop(exits.BAD_INPUT, [str(error)])


def _by_label(
    config: "Config", named: named_markets.Named, progress: kill_progress.Progress, error: "LedgerError", *, wait: bool
) -> Answer:
    """End by label after an error of the ledger. End with its message if another box may lead, or a fix is at hand.

    A ledger on a server may be led by another box whatever is wrong with it here, and one that was moved is led there.
    """
    from agent.ledger.ledger_errors import Code

    if error.code not in kill_by_label.UNUSABLE:
        exits.refused(error)
    if config.ledger_server is not None or error.code is Code.MOVED:
        kill_by_label.refuse_beside_leader(error.sentence, progress)
    return kill_by_label.without_ledger(config, named, progress, error, wait=wait)


def _refuse_missing(file: Path, target: str, *, lift: bool) -> None:
    """End if there is neither a daemon nor a ledger, because a kill must not create a ledger."""
    read = last_good.read(file)
    if isinstance(read, last_good.Broken):
        return
    config = read[0]
    if ledger_access.is_missing(config) and not daemon_socket.may_ask(config):
        names = ", ".join(work.name for work in config.workloads)
        why = f"nothing holds {target!r}" if lift else f"no lease of {target!r} is known; workloads: {names}"
        exits.stop(exits.BAD_INPUT, [f"{_missing(config).sentence}, so {why}"])


def _missing(config: "Config") -> "LedgerError":
    from agent.ledger.ledger_errors import Code, LedgerError

    return LedgerError(Code.MISSING, f"no daemon runs, and there is no ledger at {config.ledger}")


def _locked_away(config: "Config") -> "LedgerError":
    from agent.ledger.ledger_errors import Code, LedgerError

    return LedgerError(Code.UNREADABLE, f"no daemon runs, and {config.ledger} is not yours to write")


async def _order(
    config: "Config", tuned: "Mapping[str, Tuned]", progress: kill_progress.Progress, *, wait: bool
) -> Answer:
    """Lock the ledger and carry out the kill, cycle by cycle."""
    from agent.web import operator_socket

    async with own_program.opened(config, tuned) as mine:
        app, unlisted = mine.app, sorted(mine.unreached)
        progress.is_given, progress.unlisted = True, frozenset(unlisted)
        _, done = await app.say(_kill(progress), order_sending.who())
        # A cycle under a kill pays for nothing. It also stops instances that the ledger does not know.
        shown = await kill_progress.of_cycles(app, progress, done, LOOKS, wait=wait)
        answer = {**operator_socket.answer(done, app.doubts()), **shown}
        return {**answer, "unlisted": unlisted, "is_daemons": False, "is_recorded": True}


def _kill(progress: kill_progress.Progress) -> Order:
    return Order("kill", str(EVERYTHING), keep_disks=progress.keep_disks)


def _shown(answer: Answer) -> Answer:
    """Return the part of a daemon's answer that `gpubid kill` shows."""
    return {key: answer[key] for key in ("done", "in_doubt")}


def _print(said: Answer, end: str, *, as_json: bool, is_over: bool = True) -> None:
    if as_json:
        session.print_json(said)
    else:
        _print_answer(said, end)
    # Once nothing bills, an earlier refused attempt does not matter.
    if said["in_doubt"] or not (is_over if "billing" in said else not _unconfirmed(said["done"])):
        raise typer.Exit(exits.FAILED)


def _print_answer(said: Answer, end: str) -> None:
    for row in said["in_doubt"]:
        session.say(order_text.doubt(row))
    confirmed = sum(row["state"] == "confirmed" for row in said["done"])
    session.say(f"{confirmed} of {len(said['done'])} order(s) confirmed; {end}" if said["done"] else end)


def _unconfirmed(done: list[dict[str, Any]]) -> bool:
    """Return whether the last order for a lease was not confirmed. A refused order before it does not matter."""
    last = {row["lease"]: row["state"] for row in done}
    return any(state != "confirmed" for state in last.values())
