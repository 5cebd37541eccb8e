"""The review of new files against the leases, before a start, a reload or `gpubid check` accepts the files (rule 9)."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from agent.config.run_times import run_calendar
from agent.config.settings import Config
from agent.decide.limits.limits import Limits
from agent.decide.operators import reload
from agent.domain.fleet import Spend
from agent.domain.money import Usd
from agent.domain.record.budget import Scope
from agent.domain.record.intent import Intent
from agent.domain.record.lease import Lease
from agent.domain.work.workload import Workload
from agent.ledger.memory import Recollection
from agent.observe import snapshot


@dataclass(frozen=True, slots=True)
class Holdings:
    """Leases, open intents and spend at `now`."""

    now: datetime
    leases: tuple[Lease, ...]
    intents: tuple[Intent, ...]
    total: Spend
    spend_of: tuple[tuple[Scope, Spend], ...]
    ran_micros: tuple[tuple[str, int], ...] = ()
    """How long ended leases ran since they first were ready, by workload."""
    credits: tuple[tuple[str, Usd], ...] = ()
    """The last credit of each market's account that reports one."""


def holdings(known: Recollection, now: datetime) -> Holdings:
    """Return the ledger's holdings."""
    spend_of, ran_micros = tuple(known.spend_of.items()), tuple(known.ran_micros.items())
    amounts = tuple((market, last.amount) for market, last in known.credits.items() if last.amount is not None)
    return Holdings(now, known.leases, known.intents, known.total, spend_of, ran_micros, amounts)


def findings(
    config: Config, held: Holdings, before: Limits | None, works: Iterable[Workload] = ()
) -> tuple[reload.Finding, ...]:
    """Return the effects of new files on the leases, with the findings that refuse the files.

    `before` are the present caps, None if unknown. `works` are the present workloads, empty if unknown.
    """
    spend_of = snapshot.renamed(dict(held.spend_of), config.workloads)
    standing = reload.present(held.leases, held.intents, held.total, held.now, spend_of)
    return reload.findings(_after(config, held), held.leases, standing, before, works, held.intents)


def at_start(config: Config, held: Holdings) -> tuple[reload.Finding, ...]:
    """Return the findings that forbid a start: only those that would orphan a lease or a rent.

    At a start the earlier caps are not known, and a cap that is reached is no reason to look after nothing.
    """
    return reload.orphaning(_after(config, held), held.leases, held.intents)


def _after(config: Config, held: Holdings) -> reload.After:
    """Return a configuration, as far as it concerns leases, with the ledger's running time of ended leases."""
    markets, works = frozenset(market.name for market in config.markets), config.workloads
    windows = {work.name: run_calendar.now(work.windows, held.now) for work in works if work.windows}
    return reload.After(works, markets, config.limits, dict(held.ran_micros), held.now, windows, dict(held.credits))
