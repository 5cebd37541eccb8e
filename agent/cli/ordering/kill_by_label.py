"""`gpubid kill` without a usable ledger or a readable configuration: end instances by our fleet's label.

Such a kill cannot be recorded. The fleet id comes from the ledger if it can be read, else from its second file, else
from --fleet. Without a fleet id nothing is ended, and the fleets in the markets' listings are shown.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from agent.cli.ordering import kill_progress, named_markets
from agent.cli.shared import exits, last_good, session
from agent.ledger.ledger_errors import Code, LedgerError

if TYPE_CHECKING:
    from agent.act.orders.ending_by_label import EndingByLabel, Round
    from agent.config.settings import Config, MarketSettings
    from agent.markets.port import Market
    from agent.outside import Outside

UNUSABLE = frozenset(
    {
        Code.CORRUPT,
        Code.NEWER_SCHEMA,
        Code.UNRELEASED_SCHEMA,
        Code.UNREADABLE,
        Code.UNWRITABLE,
        Code.FLEET_MISMATCH,
        Code.CONFLICT,
        Code.BAD_TRANSITION,
        Code.UNREACHABLE,
        Code.NO_DRIVER,
        Code.MOVED,
        Code.REHEARSED,
        Code.UNLED,
        Code.DEPOSED,
    }
)
"""Errors of a ledger that must not prevent a kill. LOCKED is none: a daemon that has the ledger would rent again."""
ROUND_SECONDS = 5.0
FOR_A_PERSON = (
    "no call ends what is left: its market calls it over, and nobody can prove that. Look at the console of its cloud, "
    "and end the machine there; once the ledger can be used again, say `gpubid release LEASE --gone`"
)
UNWRITTEN = (
    "none of this is recorded: give `gpubid kill` to the daemon's ledger before the daemon starts again, or it rents"
)


def refuse_beside_leader(why: str, progress: kill_progress.Progress, mistakes: Sequence[str] = ()) -> NoReturn:
    """End because another box may lead: only a person at a terminal ends by label beside it."""
    ended = "not everything was ended" if progress.is_given else "nothing was ended"
    hint = "give `gpubid kill` there, or `gpubid kill --by-label` at a terminal here"
    sentence = f"{why}; {ended}, because another box may lead and would rent again: {hint}"
    exits.stop(exits.FAILED, [*mistakes, sentence])


def without_ledger(
    config: "Config", named: named_markets.Named, progress: kill_progress.Progress, why: LedgerError, *, wait: bool
) -> dict[str, Any]:
    """End by label the instances that the configuration's ledger would have ended."""
    from agent.ledger.file import fleet_ids

    ids = fleet_ids.of(config.ledger)
    if named.fleet and ids.agreed and named.fleet != ids.agreed:
        sentence = (
            f"the ledger {config.ledger} belongs to fleet {ids.agreed}, but --fleet says {named.fleet}: "
            "leave --fleet out"
        )
        exits.stop(exits.BAD_INPUT, [why.sentence, sentence])
    settings = named_markets.settings(named, config.markets)
    return _run(settings, config, named.fleet or ids.agreed, progress, [why.sentence], _code(why), wait=wait)


def without_configuration(
    broken: last_good.Broken, named: named_markets.Named, progress: kill_progress.Progress, *, wait: bool
) -> dict[str, Any]:
    """End by label without a readable configuration; --market and --credential replace it."""
    from agent.ledger.file import fleet_ids

    settings = named_markets.settings(named)
    if not settings:
        words = "kill --by-label" if broken.place.is_on_server else "kill"
        hint = f"to end by label without it: gpubid {words} --market NAME --credential NAME_OR_FILE [--fleet ID]"
        exits.stop(exits.BAD_INPUT, [*broken.mistakes, f"{broken.place.no_daemon()}, so nothing was ended; {hint}"])
    ids = fleet_ids.of(broken.place.ledger)
    if named.fleet and ids.agreed and named.fleet != ids.agreed:
        sentence = f"the ledger {broken.place.ledger} belongs to fleet {ids.agreed}, but --fleet says {named.fleet}"
        exits.stop(exits.BAD_INPUT, [f"{sentence}: run this in another folder, or leave --fleet out"])
    why = f"{broken.file} cannot be used, and {broken.place.no_daemon()}"
    return _run(settings, None, named.fleet or ids.agreed, progress, [why], exits.BAD_INPUT, wait=wait)


def _code(why: LedgerError) -> int:
    return exits.DAMAGED if why.code is Code.CORRUPT else exits.BAD_INPUT


def _run(
    settings: "tuple[MarketSettings, ...]",
    config: "Config | None",
    fleet_id: str,
    progress: kill_progress.Progress,
    why: list[str],
    code: int,
    *,
    wait: bool,
) -> dict[str, Any]:
    from agent.systemd import CredentialError

    try:
        reach = named_markets.reach(settings)
        for sentence in why:
            progress.warn(sentence)
        for name, missing in reach.unlisted.items():
            progress.warn(f"{name} is not looked at, so instances there may still bill: {missing}")
        if not fleet_id:
            asyncio.run(_show_fleets(reach.markets, config))
            exits.stop(code, ["no fleet id is known, so nothing was ended: give `gpubid kill --fleet ID`"])
        progress.warn(f"the ledger is not used: instances with the label of fleet {fleet_id} are ended")
        left_to = "nobody tries again: give the same command again"
        return kill_progress.interruptible(_end(reach, config, fleet_id, progress, wait=wait), left_to, progress)
    except CredentialError as error:
        exits.stop(exits.BAD_INPUT, [str(error)])


@contextlib.asynccontextmanager
async def _markets(
    settings: "tuple[MarketSettings, ...]", config: "Config | None"
) -> "AsyncIterator[Mapping[str, Market]]":
    async with _outside(settings, config) as outside:
        markets = {each.name: outside.connect(each) for each in settings}
        try:
            yield markets
        finally:
            for market in markets.values():
                await market.close()


def _outside(
    settings: "tuple[MarketSettings, ...]", config: "Config | None"
) -> "contextlib.AbstractAsyncContextManager[Outside]":
    return _bare(settings) if config is None else session.outside_of_markets(replace(config, markets=settings))


@contextlib.asynccontextmanager
async def _bare(settings: "tuple[MarketSettings, ...]") -> "AsyncIterator[Outside]":
    from agent.clock import SystemClock
    from agent.outside import Outside

    for each in settings:
        session.secret(each)
    yield Outside(SystemClock(), session.secret, {})


async def _show_fleets(settings: "tuple[MarketSettings, ...]", config: "Config | None") -> None:
    from agent.act.orders import ending_by_label

    async with _markets(settings, config) as markets:
        fleets, trouble = await ending_by_label.fleets(markets)
    for name, why in trouble.items():
        session.say(f"{name} cannot be listed: {why}")
    table = session.table("FLEET", "MARKET", "INSTANCES", "$/H")
    for each in fleets:
        session.add(table, each.fleet_id, each.market, str(each.instances), f"{each.rate.dollars:.4f}")
    if fleets:
        session.show(table)
    else:
        session.say("the listing has no instance with a label of gpubid")


async def _end(
    reach: named_markets.Reach,
    config: "Config | None",
    fleet_id: str,
    progress: kill_progress.Progress,
    *,
    wait: bool,
) -> dict[str, Any]:
    from agent.act.orders.ending_by_label import EndingByLabel

    async with _markets(reach.markets, config) as markets:
        ending = EndingByLabel(markets, fleet_id, keep_disks=progress.keep_disks)
        progress.is_given = True
        shown = await _rounds(ending, progress, wait=wait)
    progress.warn(UNWRITTEN)
    unlisted = sorted({*reach.unlisted, *shown.pop("unlisted")})
    return {"done": [], "in_doubt": [], **shown, "unlisted": unlisted, "is_daemons": False, "is_recorded": False}


async def _rounds(ending: "EndingByLabel", progress: kill_progress.Progress, *, wait: bool) -> dict[str, Any]:
    said: dict[str, str] = {}
    while True:
        seen = await ending.round()
        for name, why in seen.trouble.items():
            if said.get(name) != why:
                progress.say(f"{name} cannot be listed, so instances there may still bill: {why}")
        said = seen.trouble
        shown = _shown(seen)
        progress.show(shown)
        if ending.is_done or not wait:
            return shown
        if ending.is_for_a_person:
            progress.say(FOR_A_PERSON)
            return shown
        await asyncio.sleep(ROUND_SECONDS if seen.rows or seen.trouble else 1.0)


def _shown(seen: "Round") -> dict[str, Any]:
    return {
        "billing": [
            {
                "lease": f"{market}-{instance_id}",
                "slot": seen.slots[market, instance_id],
                "market": market,
                # A start that waits will bill its GPU.
                "is_gpu": row.bills_gpu or row.is_wanted_running,
                "dollars_per_hour": row.billing_rate.dollars,
                "tried": list(seen.tried[market, instance_id]),
            }
            for (market, instance_id), row in seen.rows.items()
        ],
        "may_bill": [],
        "unlisted": list(seen.trouble),
    }
