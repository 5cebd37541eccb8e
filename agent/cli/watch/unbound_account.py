"""`gpubid ledger unbind`: from the next start on, a market's account may be another one."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.shared import exits, ledger_access, session

if TYPE_CHECKING:
    from agent.config.settings import Config
    from agent.ledger.memory import Recollection


def unbind(
    market: Annotated[str, typer.Argument(help="The name of the market's table.")],
    config: session.ConfigOption = session.DEFAULT_CONFIG,
) -> None:
    """Forget a market's account while no daemon runs. The next start binds the ledger to the account of the key."""
    from agent.ledger.ledger_errors import LedgerError
    from agent.systemd import CredentialError

    settings, _ = session.read(config)
    if ledger_access.is_missing(settings):
        exits.stop(exits.FAILED, [f"there is no ledger at {settings.ledger}: nothing is bound"])
    ledger_access.must_own(settings)
    try:
        account = asyncio.run(_unbound(settings, market))
    except LedgerError as error:
        exits.refused(error)
    except CredentialError as error:
        exits.stop(exits.BAD_INPUT, [str(error)])
    session.say(f"the ledger belonged to account {account} of {market}; the next start takes the account of the key")


async def _unbound(settings: "Config", market: str) -> str:
    """Return the account that was forgotten. End with a message if nothing may be."""
    from agent.clock import SystemClock
    from agent.domain.record.event import Event
    from agent.domain.record.event_kind import EventKind
    from agent.ledger.store import Ledger

    clock = SystemClock()
    ledger = await Ledger.open(ledger_access.place_of(settings), clock=clock)
    try:
        known, now = ledger.recollection(clock.now()), clock.now()
        account = _forgettable(known, market)
        reason = f"the account {account} of {market} was forgotten by `gpubid ledger unbind`"
        ordered = Event(at=now, kind=EventKind.OPERATOR_ORDERED, market=market, reason_code="unbind", reason=reason)
        async with ledger.transaction() as tx:
            tx.unbind_account(market)
            tx.append_event(ordered)
        return account
    finally:
        await ledger.close()


def _forgettable(known: "Recollection", market: str) -> str:
    """Return the account to which a ledger is bound. End with a message without one, or while it may not be forgotten.

    Another account denies all instances of the first, and most markets' denial ends a lease (rule 4).
    """
    from agent.domain.record.intent import IntentKind
    from agent.domain.record.lease import Bills
    from agent.ledger.single_facts import NO_ACCOUNT_ID
    from agent.markets import registered_markets

    account = known.accounts.get(market, NO_ACCOUNT_ID)
    if account == NO_ACCOUNT_ID:
        exits.stop(exits.BAD_INPUT, [f"the ledger is bound to no account of {market}; name the market's table"])
    is_known = market in registered_markets.names()
    hides_ends = is_known and registered_markets.record(market).rules.proves_ends_within is not None
    # Where a denial proves no end of what bills, a lease that was proven ours counts on. What only a reply named, or
    # what has no machine yet, would be forgotten.
    mine = [lease for lease in known.leases if lease.market == market]
    kept = [lease for lease in mine if hides_ends and lease.is_proven and lease.bills is Bills.GPU_AND_DISK]
    here = [lease.lease_id for lease in mine if lease not in kept]
    rents = (intent for intent in known.intents if intent.market == market and intent.kind is IntentKind.RENT)
    here += [f"the rent {intent.intent_id} in doubt" for intent in rents]
    if here:
        why = f"{market} may still bill for {', '.join(here)}: end that with the old account first (`gpubid fleet`)"
        exits.stop(exits.FAILED, [why])
    return account
