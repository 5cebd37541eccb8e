"""Shadows beside the live strategies: each sees a cycle's fleet, decides, and is recorded; nothing is ever sent.

Invariants:
1. There is no market, no journal and no executor here: a shadow ends in the ledger's own tables for it.
2. A failure of a shadow, its strategy included, is logged once and costs the cycle nothing but that shadow.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import structlog

from agent.decide.accounting import meter
from agent.decide.limits.limits import Limits
from agent.decide.paper import shadow
from agent.decide.paper.shadow import Shadow, Tally
from agent.decide.strategy import Tuned
from agent.domain.fleet import Fleet
from agent.domain.money import Usd
from agent.domain.record.shadow_account import Counted, ShadowAccount, ShadowDecision
from agent.domain.work import decision as decisions
from agent.domain.work.decision import Decision, Rent, slot_of
from agent.domain.work.workload import Workload
from agent.ledger.ledger_errors import LedgerError
from agent.ledger.store import Ledger

log = structlog.get_logger("gpubid.shadows")

STALE = timedelta(hours=1)
"""A position without a cycle for this long is dropped: what happened to it meanwhile is not known."""
KEEP_EVERY = timedelta(minutes=5)
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Seen:
    """What one cycle added to a shadow: money, useful time, losses, and new decisions."""

    workload: str
    strategy: str
    spent: Usd
    useful_seconds: float
    interruptions: int
    news: tuple[Decision, ...]


class Shadows:
    """All shadows of a daemon, and their records in the ledger."""

    def __init__(self, ledger: Ledger) -> None:
        """Keep them in `ledger`; records of earlier runs are read at the first fleet."""
        self._ledger = ledger
        self._known: dict[Key, tuple[Shadow, Counted, datetime]] | None = None
        self._broken: dict[Key, str] = {}

    async def look(self, fleet: Fleet, tuned: Mapping[str, Tuned], caps: Limits) -> tuple[Seen, ...]:
        """Show a fleet to every shadow that a workload names; return the results."""
        wanted = [(work, tuned[name]) for work in fleet.workloads for name in work.shadow if name in tuned]
        results = [await self._alone(work, chosen, fleet, caps) for work, chosen in wanted]
        return tuple(seen for seen in results if seen is not None)

    async def _alone(self, work: Workload, chosen: Tuned, fleet: Fleet, caps: Limits) -> Seen | None:
        """Show a fleet to one shadow; its failure affects no other."""
        key = work.name, chosen.name
        if self._broken.get(key) == chosen.digest:
            return None
        try:
            return await self._one(work, chosen, fleet, caps)
        except LedgerError as error:
            log.warning("shadow.unwritten", workload=work.name, strategy=chosen.name, code=error.code.value)
        except Exception as error:  # noqa: BLE001 - another's strategy may raise anything; the live one goes on
            self._broken[key] = chosen.digest
            log.error("shadow.broken", workload=work.name, strategy=chosen.name, error=type(error).__name__)
        return None

    async def _one(self, work: Workload, chosen: Tuned, fleet: Fleet, caps: Limits) -> Seen | None:
        key = work.name, chosen.name
        mine, live_before, kept_at = await self._taken_up(work, chosen, fleet)
        before = replace(mine.tally)
        done = shadow.step(mine, fleet, chosen, caps)
        if done is None:
            return None
        self._all[key] = mine, live_before, kept_at
        if done.news or done.facts or fleet.now - kept_at >= KEEP_EVERY:
            await self._keep(mine, live_before, fleet.now, done.news)
            self._all[key] = mine, live_before, fleet.now
        return _seen(mine, before, done.news)

    @property
    def _all(self) -> dict[Key, tuple[Shadow, Counted, datetime]]:
        self._known = self._known if self._known is not None else {}
        return self._known

    async def _taken_up(self, work: Workload, chosen: Tuned, fleet: Fleet) -> tuple[Shadow, Counted, datetime]:
        """Return a shadow as it was left, or one that begins with the present live position.

        Changed parameters begin anew: the hours and dollars of the old ones are not theirs.
        """
        if self._known is None:
            reader = await self._ledger.reader()
            for account in await reader.shadows():
                position = shadow.unpacked(account.position)
                if position is not None:
                    self._all[account.workload, account.strategy] = position, account.live_before, account.seen_at
        known = self._all.get((work.name, chosen.name))
        if known is not None and known[0].digest == chosen.digest and fleet.now - known[2] < STALE:
            return known
        log.info("shadow.begun", workload=work.name, strategy=chosen.name, digest=chosen.digest)
        return shadow.begun(work, chosen, fleet), await live(self._ledger, work.name, fleet), fleet.now - KEEP_EVERY

    async def _keep(self, mine: Shadow, live_before: Counted, now: datetime, news: Iterable[Decision]) -> None:
        account = ShadowAccount(
            workload=mine.workload,
            strategy=mine.strategy,
            since=mine.since,
            seen_at=now,
            counted=counted(mine, now),
            live_before=live_before,
            interruptions=mine.tally.interruptions,
            starts=mine.tally.starts,
            rents=mine.tally.rents,
            position=shadow.packed(mine),
        )
        async with self._ledger.transaction() as tx:
            tx.keep_shadow(account, [_shadow_decision(each, mine.strategy, now) for each in news])


async def live(ledger: Ledger, workload: str, fleet: Fleet) -> Counted:
    """Return a workload's real figures since the ledger began."""
    written = await (await ledger.reader()).sums(fleet.now.date(), of_leases_only=True)
    mine = (lease for lease in fleet.leases if lease.slot.workload == workload)
    return written.get(workload, Counted()).owing(meter.outstanding(mine, fleet.now))


def counted(mine: Shadow, now: datetime) -> Counted:
    """Return the figures of a shadow, with the cost of its paper leases since they were metered."""
    tally, owed = mine.tally, meter.outstanding(mine.book.open(), now)
    return Counted(Usd(tally.spent) + owed, tally.paid, max(tally.useful, 0), tally.lost)


def _seen(mine: Shadow, before: Tally, news: tuple[Decision, ...]) -> Seen:
    after = mine.tally
    return Seen(
        mine.workload,
        mine.strategy,
        Usd(after.spent - before.spent),
        (after.useful - before.useful) / 1e6,
        after.interruptions - before.interruptions,
        news,
    )


def _shadow_decision(decision: Decision, strategy: str, now: datetime) -> ShadowDecision:
    kind = decisions.KIND.get(type(decision))
    lease = getattr(decision, "lease", None)
    host_id = decision.offer.host_id if isinstance(decision, Rent) else lease.host_id if lease is not None else ""
    reason = decision.reason
    return ShadowDecision(
        now, strategy, slot_of(decision), kind.value if kind else "hold", reason.code, reason.sentence, host_id
    )
