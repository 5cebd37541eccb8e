"""The accounts of the keys: read at each market and bound to the ledger, with the spend before the ledger."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import structlog

from agent.clock import SteadyClock
from agent.domain import money
from agent.domain.fleet import MarketView
from agent.domain.market.tenure import Tenure
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.ledger.ledger_errors import Code, LedgerError
from agent.ledger.single_facts import NO_ACCOUNT_ID
from agent.ledger.store import Ledger
from agent.ledger.tables.spend_rows import MONTH_SEED, SpendEntry
from agent.ledger.transaction import Transaction
from agent.markets import market_errors, port
from agent.observe import market_time

log = structlog.get_logger("gpubid.app")

OTHER_SECONDS = 120.0
"""How long a market must name another account than the ledger's while the daemon runs. Meanwhile nothing is paid."""


class Accounts:
    """Reads the account of each key, and compares it with the ledger's."""

    def __init__(self, ledger: Ledger, markets: Mapping[str, port.Market], clock: SteadyClock) -> None:
        """Ask `markets`, write to `ledger`; `clock` compares each market's time with ours."""
        self._ledger = ledger
        self._markets = markets
        self._clock = clock
        self._other_since: dict[str, float] = {}

    def bound(self, market: str) -> str:
        """Return the market's account that the ledger belongs to, or an empty text before it was read."""
        return self._ledger.recollection(self._clock.now()).accounts.get(market, "")

    def why_not(self, market: str, account_id: str) -> str:
        """Return why nothing may be paid by a key of this account; an empty text if it may."""
        bound = self.bound(market)
        if not bound:
            return f"the account of {market} has not been read yet"
        # A market that does not name the account proves it only by its listing.
        if account_id not in {"", bound} and bound != NO_ACCOUNT_ID:
            return f"the key of {market} is for account {account_id}, this ledger for {bound}: nothing is paid"
        if self._ledger.is_uncounted(market):
            return f"the ledger was lost or restored, and the bill of {market} for this month has not been read yet"
        return ""

    def unknown(self, views: Iterable[MarketView]) -> tuple[str, ...]:
        """Return the markets to ask again: the account is not bound or is another one, or the bill was not read."""

        def is_unknown(view: MarketView) -> bool:
            bound = self.bound(view.market)
            is_due = not bound or self._ledger.is_uncounted(view.market)
            return (view.is_fresh and is_due) or view.account_id not in {"", bound}

        unknown = tuple(view.market for view in views if is_unknown(view))
        # A market that names our account again has not named another one all the time.
        self._other_since = {name: at for name, at in self._other_since.items() if name in unknown}
        return unknown

    async def know(self, markets: Iterable[str] | None = None, patience: float | None = None) -> None:
        """Read the account of each key, several markets at once; the cycles ask a silent market again.

        Without `markets` all are asked, and another account is believed at once: the daemon starts.

        Raises:
            LedgerError: a key is of another account than the ledger, and was so in answers over `OTHER_SECONDS`.
        """
        names = tuple(self._markets if markets is None else markets)
        accounts = await asyncio.gather(*(self._account(name, patience) for name in names))
        for name, (account, charges) in zip(names, accounts, strict=True):
            if account is None:
                continue
            self._clock.heed(name, account.market_time)
            if markets is not None and self._is_other_for_now(name, account.account_id):
                continue
            if charges is None and not self.bound(name):
                # An unbound market pays for nothing: its spend of this month is not known yet.
                continue
            await self._bind(name, account.account_id, charges)

    def _is_other_for_now(self, name: str, account_id: str) -> bool:
        """Return whether a market names another account, but not for long: one wrong answer does not end the daemon."""
        if account_id in {"", self.bound(name)} or self.bound(name) in {"", NO_ACCOUNT_ID}:
            self._other_since.pop(name, None)
            return False
        now = self._clock.monotonic()
        return now - self._other_since.setdefault(name, now) < OTHER_SECONDS

    async def _account(
        self, name: str, patience: float | None
    ) -> tuple[port.Account | None, Sequence[port.Charge] | None]:
        """Return the key's account and, if the ledger does not know the month's spend there, that spend."""
        market = self._markets[name]
        account: port.Account | None = None
        try:
            async with asyncio.timeout(patience):
                answer = await market.account()
                believed = await market_time.believed(market, self._clock, answer.market_time)
                account = replace(answer, market_time=believed)
                if self.bound(name) and not self._ledger.is_uncounted(name):
                    return account, None
                # The machine's clock may be wrong: the bill is that of the market's month, too, and up to its time.
                times = [self._clock.now(), believed or self._clock.now()]
                first = min(times).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
                return account, await market.charges(first, max(times))
        except (market_errors.MarketError, TimeoutError) as error:
            what = "charges.unread" if account is not None else "account.unread"
            code = error.code if isinstance(error, market_errors.MarketError) else "silent"
            log.warning(what, market=name, code=code, reason=str(error)[:200])
            return account, None

    async def _bind(self, name: str, account_id: str, charges: Sequence[port.Charge] | None) -> None:
        """Bind the ledger to an account and count its charges of this month, if they were read: both or neither.

        Another account ends the daemon, so that is recorded first.
        """
        entries = await self._before_ledger(name, charges or ())
        try:
            async with self._ledger.transaction() as tx:
                tx.bind_account(name, account_id)
                for entry in entries:
                    tx.add_spend(entry)
                if charges is not None and self._ledger.was_lost:
                    self._settle(tx, name)
        except LedgerError as error:
            if error.code is Code.WRONG_ACCOUNT:
                now, code = self._clock.now(), error.code.value
                async with self._ledger.transaction() as tx:
                    tx.append_event(
                        Event(
                            at=now, kind=EventKind.DAEMON_REFUSED, market=name, reason_code=code, reason=error.sentence
                        )
                    )
            raise

    def _settle(self, tx: Transaction, name: str) -> None:
        tx.count_again(name)
        others = {*self._markets, *self._ledger.recollection(self._clock.now()).accounts} - {name}
        if not any(self._ledger.is_uncounted(other) for other in others):
            tx.settle_loss()

    async def _before_ledger(self, name: str, charges: Sequence[port.Charge]) -> Sequence[SpendEntry]:
        """Return this month's charges that the ledger does not know: it is new, or a backup."""
        known = await (await self._ledger.reader()).instances(name) if charges else frozenset()
        return [
            SpendEntry(
                MONTH_SEED, "", name, Tenure.INTERRUPTIBLE, charge.day.date(), gpu=max(money.ZERO, charge.amount)
            )
            for charge in charges
            if charge.instance_id not in known
        ]
