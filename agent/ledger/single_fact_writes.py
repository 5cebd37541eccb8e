"""The part of a transaction that writes single facts: texts in one table, each under its own key."""

import datetime as dt
from typing import Any

import sqlalchemy as sa

from agent.domain import warm_time
from agent.domain.market.credit import Credit
from agent.domain.market.gpu import GpuModel
from agent.domain.record import metered_volume
from agent.domain.slot_demand import HandDemand
from agent.domain.work.sign_of_life import Absence, ShortStarts
from agent.ledger import portable, single_facts
from agent.ledger.changes import Changes
from agent.ledger.ledger_errors import Code, LedgerError
from agent.ledger.memory import Memory
from agent.ledger.tables import credit_marks as credits_
from agent.ledger.tables import (
    schema,
)

_META_STORED = portable.stored(schema.meta)
_META_FORGOTTEN = sa.delete(schema.meta).where(schema.meta.c.key == sa.bindparam("this_key"))


class SingleFactWrites:
    """The changes of one commit, and the single facts among them."""

    def __init__(self, memory: Memory) -> None:
        self._news = Changes(memory)
        self.work: list[tuple[sa.Executable, list[dict[str, Any]]]] = []

    def bind_account(self, market: str, account_id: str) -> None:
        """Bind this ledger to an account of a market; the id is empty if the market names no account.

        Raises:
            LedgerError: WRONG_ACCOUNT, the ledger belongs to another account.
        """
        known = self._news.account(market)
        if known == account_id or (known is not None and not account_id):
            return
        account_id = account_id or single_facts.NO_ACCOUNT_ID
        if known not in {None, single_facts.NO_ACCOUNT_ID, account_id}:
            raise LedgerError(
                Code.WRONG_ACCOUNT,
                f"this ledger belongs to account {known} of {market}, the key to account {account_id}: "
                "use the key of that account, or another [ledger] path for this one; if the account was replaced, "
                f"`gpubid ledger unbind {market}`",
            )
        self._news.accounts[market] = account_id
        self._write(_META_STORED, {"key": single_facts.ACCOUNT + market, "value": account_id})

    def unbind_account(self, market: str) -> None:
        """Forget to which account of a market this ledger is bound: the next one that is seen is taken."""
        self._news.accounts[market] = single_facts.NO_ACCOUNT_ID
        self._write(_META_STORED, {"key": single_facts.ACCOUNT + market, "value": single_facts.NO_ACCOUNT_ID})

    def note_credit(self, market: str, credit: Credit) -> None:
        """Store a market's credit if it changed."""
        known = self._news.credit(market)
        if known is None or known.amount != credit.amount:
            self._news.credits[market] = credit
            self._write(_META_STORED, {"key": credits_.KEY + market, "value": credits_.text(credit)})

    def keep_absence(self, absence: Absence) -> None:
        """Store the end of the daemon's absence, or that it is not away."""
        self._news.absence = absence
        if absence.until is None:
            self._write(_META_FORGOTTEN, {"this_key": single_facts.ABSENT_UNTIL})
        else:
            self._write(_META_STORED, {"key": single_facts.ABSENT_UNTIL, "value": absence.until.isoformat()})

    def keep_rehearsal_end(self, at: dt.datetime) -> None:
        """Store the end of the rehearsal that wrote this ledger."""
        self._write(_META_STORED, {"key": single_facts.REHEARSED_UNTIL, "value": at.isoformat()})

    def keep_hand_demand(self, demand: HandDemand) -> None:
        """Store a person's demand of a workload; one that is over already ends the one before."""
        self._news.hand_demands[demand.workload] = demand
        value = f"{demand.slots} {demand.until.isoformat()}"
        self._write(_META_STORED, {"key": single_facts.HAND_DEMAND + demand.workload, "value": value})

    def keep_short_starts(self, starts: ShortStarts) -> None:
        """Store the count of starts that ended before their second pass."""
        self._news.short_starts = starts
        value = f"{starts.count}{single_facts.ALERTED * starts.is_alerted}"
        self._write(_META_STORED, {"key": single_facts.SHORT_STARTS, "value": value})

    def keep_notified(self, event_id: int) -> None:
        """Store the last event whose notifications were sent."""
        self._write(_META_STORED, {"key": single_facts.NOTIFIED, "value": single_facts.notified_text(event_id)})

    def keep_volume(self, volume: metered_volume.MeteredVolume) -> None:
        """Store up to when a network volume is metered, and who pays for it."""
        self._news.volumes[volume.name] = volume
        self._write(_META_STORED, {"key": metered_volume.KEY + volume.name, "value": metered_volume.encoded(volume)})

    def keep_warm(self, time: warm_time.WarmTime) -> None:
        """Store the warm time of a service in place of the earlier record."""
        self._news.warm[time.workload] = time
        self._write(_META_STORED, {"key": warm_time.KEY + time.workload, "value": warm_time.encoded(time)})

    def keep_dlperf(self, slice_: tuple[GpuModel, int], dlperf: float) -> None:
        """Store the DLPerf of a slice, named by its model and number of GPUs, in place of the earlier figure."""
        self._news.dlperf[slice_] = dlperf
        model, gpus = slice_
        self._write(_META_STORED, {"key": f"{single_facts.REFERENCE_DLPERF}{gpus}/{model}", "value": repr(dlperf)})

    def keep_first_sight(self, workload: str, at: dt.datetime | None) -> None:
        """Store when a configuration first had a workload, or forget it with None."""
        self._news.first_seen[workload] = at
        key = single_facts.FIRST_SEEN + workload
        if at is None:
            self._write(_META_FORGOTTEN, {"this_key": key})
        else:
            self._write(_META_STORED, {"key": key, "value": at.isoformat()})

    def count_again(self, market: str) -> None:
        """Mark the loss of an earlier ledger as settled on one market, whose spend has been counted again."""
        self._news.counted_again.add(market)
        self._write(_META_STORED, {"key": single_facts.COUNTED_AGAIN + market, "value": "1"})

    def settle_loss(self) -> None:
        """Mark the loss of an earlier ledger as settled: its spend has been counted again."""
        self._news.settles_loss = True
        self._write(_META_FORGOTTEN, {"this_key": single_facts.WAS_LOST})

    def _write(self, statement: sa.Executable, row: dict[str, Any]) -> None:
        self.work.append((statement, [row]))
