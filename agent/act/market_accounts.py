"""Whose account the keys are of: read at each market, bound to the ledger; and what it spent before the ledger was."""

import asyncio
from collections.abc import Mapping, Sequence

import structlog

from agent.clock import SteadyClock
from agent.domain import money
from agent.domain.market.tenure import Tenure
from agent.domain.record.event import Event
from agent.ledger.ledger_errors import Code, LedgerError
from agent.ledger.store import Ledger
from agent.ledger.tables.spend_rows import MONTH_SEED
from agent.markets import market_errors, port

log = structlog.get_logger("gpubid.app")


class Accounts:
    """Learns whose the keys are, and holds the ledger to it."""

    def __init__(self, ledger: Ledger, markets: Mapping[str, port.Market], clock: SteadyClock) -> None:
        """Ask `markets`, write to `ledger`; `clock` heeds what each market says the time is."""
        self._ledger = ledger
        self._markets = markets
        self._clock = clock

    def bound(self, market: str) -> str:
        """Return the account of a market that the ledger belongs to, or an empty text while nobody has read it."""
        return self._ledger.recollection(self._clock.now()).accounts.get(market, "")

    async def know(self, patience: float | None = None) -> None:
        """Learn whose account each key is of, all markets at once; one that is silent longer is asked by the cycles.

        Raises:
            LedgerError: a key is of another account than the ledger.
        """
        names = tuple(self._markets)
        found = await asyncio.gather(*(self._account(name, patience) for name in names))
        for name, (account, charges) in zip(names, found, strict=True):
            if account is None:
                continue
            self._clock.heed(name, account.market_time)
            if charges is None and not self.bound(name):
                # Unbound it pays for nothing: what this month has cost is not known yet.
                continue
            await self._bind(name, account.account_id)
            if charges is not None:
                await self._seed_month(name, charges)

    async def _account(
        self, name: str, patience: float | None
    ) -> tuple[port.Account | None, Sequence[port.Charge] | None]:
        """Return whose the key is and, where the ledger knows no spend of it, what this month has cost there."""
        now, market = self._clock.now(), self._markets[name]
        first = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        account: port.Account | None = None
        try:
            async with asyncio.timeout(patience):
                account = await market.account()
                if self.bound(name) and not self._ledger.was_lost:
                    return account, None
                return account, await market.charges(first, now)
        except (market_errors.MarketError, TimeoutError) as error:
            what = "charges.unread" if account is not None else "account.unread"
            code = error.code if isinstance(error, market_errors.MarketError) else "silent"
            log.warning(what, market=name, code=code, reason=str(error)[:200])
            return account, None

    async def _bind(self, name: str, account_id: str) -> None:
        """Bind the ledger to an account; that it is another's is the last word of a daemon, so it is written down."""
        try:
            await self._ledger.bind_account(name, account_id)
        except LedgerError as error:
            if error.code is Code.WRONG_ACCOUNT:
                now, code = self._clock.now(), error.code.value
                async with self._ledger.transaction() as tx:
                    tx.append_event(
                        Event(at=now, kind="daemon.refused", market=name, reason_code=code, reason=error.sentence)
                    )
            raise

    async def _seed_month(self, name: str, charges: Sequence[port.Charge]) -> None:
        """Count what the market charged this month and this ledger knows nothing of: it is new, or a backup's."""
        named = {charge.instance_id for charge in charges}
        leases = await (await self._ledger.reader()).leases(len(named) or 1, named)
        known = {lease.instance_id for lease in leases if lease.market == name}
        async with self._ledger.transaction() as tx:
            for charge in charges:
                if charge.instance_id in known:
                    continue
                day = charge.day.date()
                tx.add_spend(MONTH_SEED, "", name, Tenure.INTERRUPTIBLE, day, gpu=max(money.ZERO, charge.amount))
            tx.settle_loss()
