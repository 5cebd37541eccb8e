"""The figures of `gpubid status` as JSON: problems, running slots, and spend against the caps."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from agent.config.settings import Config
from agent.cycle import Pass
from agent.decide.facts import Alert
from agent.decide.limits import committed_spend, limits
from agent.decide.limits.committed_spend import CommittedSpend
from agent.decide.limits.limits import Limits
from agent.decide.operators import operator_holds
from agent.decide.operators.notices import LEADS, Notice, held_back
from agent.domain.fleet import MarketView
from agent.domain.record.budget import SUMS, Scope, Window
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.workload import Workload
from agent.ledger.memory import Recollection
from agent.ledger.tables.decisions import RecordedDecision
from agent.web.reading import slot_leases, verb_json

MOST_MISSING = 20
"""The most missing leases that are named one by one."""
LASTING = frozenset({"not_sold", "credit_unknown", "max_running"})
"""Alerts while nothing is broken: of features that a market does not offer, and of an end that the file names."""


@dataclass(frozen=True, slots=True)
class Daemon:
    """Facts that only the daemon knows: its last look at each market, open alerts, late jobs, a refused reload.

    `reading_only` are the markets with `spend = false`.
    """

    markets: Mapping[str, MarketView]
    alerts: Sequence[Alert] = ()
    late: Sequence[str] = ()
    refused: Sequence[str] = ()
    reading_only: frozenset[str] = frozenset()
    has_looked: bool = True


def shown(
    workloads: Sequence[Workload],
    known: Recollection,
    decided: Sequence[RecordedDecision],
    now: datetime,
    notices: Iterable[Notice],
    caps: Limits,
    daemon: Daemon | None = None,
) -> dict[str, Any]:
    """Return the state of the whole fleet. Without a `daemon` it is the ledger's last state, and not well."""
    fleet = verb_json.fleet(workloads, known, decided, now, (), caps)
    standing = committed_spend.committed(
        known.leases, known.intents, known.total, known.spend_of, now, volumes=known.volumes
    )
    notes, troubles = conditions(known, standing, notices, caps, now, daemon)
    places = {str(place): place for work in workloads for place in work.places}
    filled = slot_leases.filled(places.values(), known.leases).by_slot
    slots = [_slot(row, filled.get(places[row["slot"]], ())) for row in fleet["slots"]]
    return {
        "now": now.isoformat(),
        "is_well": not troubles,
        "is_running": daemon is not None,
        "troubles": [asdict(each) for each in troubles],
        "notes": [asdict(each) for each in notes],
        "markets": [_market(view, now) for _, view in sorted(daemon.markets.items())] if daemon else [],
        "wanted": len(slots),
        "running": sum(row["state"] == LeaseState.RUNNING.value for row in slots),
        "slots": slots,
        "in_doubt": len(fleet["in_doubt"]),
        "dollars_per_hour": fleet["dollars_per_hour"],
        "spent_today_dollars": fleet["spent_today_dollars"],
        "spent_month_dollars": fleet["spent_month_dollars"],
        "caps": cap_rows(standing, caps),
        "credit": fleet["credit"],
    }


def conditions(
    known: Recollection,
    standing: CommittedSpend,
    notices: Iterable[Notice],
    caps: Limits,
    now: datetime,
    daemon: Daemon | None,
) -> tuple[list[Notice], list[Notice]]:
    """Return the notes, and the problems.

    Problems are notices, alerts, held and missing leases, late jobs, a refused reload, reached caps and a kill.
    """
    notes, troubles = _sorted((*notices, *held_back(known.leases)), daemon)
    return notes, [*troubles, *_of_missing(known.leases), *_of_money(known, standing, caps, now)]


def cap_rows(standing: CommittedSpend, caps: Limits) -> list[dict[str, Any]]:
    """Return every cap with its committed spend."""
    return [row for scope in caps.scopes() for row in _caps(scope, standing, caps)]


def daemon_of(seen: Pass | None, config: Config, late: Sequence[str], refused: Sequence[str]) -> Daemon:
    """Return the facts that only the daemon knows, from its last cycle. Before the first cycle there are none."""
    return Daemon(
        seen.fleet.markets if seen is not None else {},
        seen.alerts if seen is not None else (),
        late,
        refused,
        frozenset(each.name for each in config.markets if not each.may_spend),
        has_looked=seen is not None,
    )


def _sorted(notices: Iterable[Notice], daemon: Daemon | None) -> tuple[list[Notice], list[Notice]]:
    """Return the notes, and the problems."""
    notes: list[Notice] = []
    troubles: list[Notice] = []
    for each in notices:
        is_meant = daemon is not None and each.code == "no_spend" and each.about in daemon.reading_only
        (notes if is_meant or each.code == LEADS else troubles).append(each)
    if daemon is not None:
        troubles += _of_daemon(daemon)
        for alert in daemon.alerts:
            notice = Notice(alert.key, alert.code, alert.sentence)
            (notes if alert.code in LASTING else troubles).append(notice)
    return notes, troubles


def _of_daemon(daemon: Daemon) -> Iterator[Notice]:
    if not daemon.has_looked:
        yield Notice("daemon", "starting", "no cycle has ended yet: ask again in a few seconds")
    for sentence in daemon.late:
        yield Notice("daemon", "late", f"{sentence}: its log says why (`journalctl -u gpubid`)")
    for problem in daemon.refused:
        yield Notice("configuration", "refused", f"the last reload was refused: {problem}")


def _of_missing(leases: Iterable[Lease]) -> Iterator[Notice]:
    """Yield the first missing leases one by one, and the number of the others."""
    missing = [lease for lease in leases if lease.state is LeaseState.MISSING]
    for lease in missing[:MOST_MISSING]:
        sentence = (
            f"{lease.market} has not listed {lease.lease_id} since {lease.state_since:%Y-%m-%d %H:%M} UTC; "
            f"it counts as spend, {lease.billing_rate}, until it is proven gone"
        )
        yield Notice(str(lease.slot), "missing", sentence)
    if len(missing) > MOST_MISSING:
        more = len(missing) - MOST_MISSING
        yield Notice("leases", "missing", f"{more} more leases are not listed: `gpubid fleet` shows them")


def _of_money(known: Recollection, standing: CommittedSpend, caps: Limits, now: datetime) -> Iterator[Notice]:
    if operator_holds.kill_of_everything(known.holds, now) is not None:
        yield Notice("daemon", "killed", "a kill is in force, nothing is rented: `gpubid kill --lift` ends it")
    for scope in caps.scopes():
        struck = limits.over_budget(standing, caps, scope)
        if struck is not None:
            yield Notice(str(scope), struck.limit, f"{struck.sentence}; raise it in [{scope.place}], or wait")


def _market(view: MarketView, now: datetime) -> dict[str, Any]:
    age = (now - view.listed_at).total_seconds() if view.listed_at is not None else None
    return {"market": view.market, "is_fresh": view.is_fresh, "listed_seconds_ago": age}


def _slot(row: Mapping[str, Any], mine: Sequence[Lease]) -> dict[str, Any]:
    """Return one slot with the host of its lease, and the rate of all leases of the slot together."""
    last = next((lease for lease in mine if lease.lease_id == row["lease"]), None)
    return {
        **row,
        "market": last.market if last else None,
        "host": last.host_id if last else None,
        "gpu": last.gpu if last else None,
        "gpus": last.gpus if last else None,
        "dollars_per_hour": sum(lease.billing_rate.dollars for lease in mine),
    }


def _caps(scope: Scope, standing: CommittedSpend, caps: Limits) -> Iterator[dict[str, Any]]:
    """Yield each cap of a scope with its committed spend."""
    part, hard = standing.of(scope), caps.hard(scope)
    if hard.per_hour is not None:
        yield _cap(scope, Window.HOUR, part.rate.dollars, hard.per_hour.dollars)
    for window in SUMS:
        amount = hard.amount(window)
        if amount is not None:
            yield _cap(scope, window, part.spent(window).dollars, amount.dollars)


def _cap(scope: Scope, window: Window, used: float, cap: float) -> dict[str, Any]:
    return {
        "scope": scope.kind.value,
        "name": scope.name,
        "window": window.value,
        "used_dollars": used,
        "cap_dollars": cap,
    }
