"""The samples that exist before the first cycle: every label set that is known at the start, at zero.

Invariant: where zero would be bad news, as for credit, there is no sample until a cycle knows better.
"""

from collections.abc import Sequence

from agent import __version__
from agent.domain.market.interruption import Cause
from agent.domain.market.tenure import Tenure
from agent.domain.record.intent import IntentKind, IntentState
from agent.domain.record.lease import LeaseState
from agent.telemetry import metric_families, recovery_metrics
from agent.telemetry.metric_families import Families

_TENURES = Tenure.INTERRUPTIBLE, Tenure.ON_DEMAND


def make(families: Families, markets: Sequence[str], workloads: Sequence[str]) -> None:
    """Make the samples of these markets and workloads, and of the program."""
    families.build.labels(__version__).set(1)
    for market in markets:
        _make_market(families, market)
    for workload in workloads:
        _make_workload(families, workload, markets)
    for kind in IntentKind:
        for state in (IntentState.CONFIRMED, IntentState.REJECTED, IntentState.DENIED, IntentState.VOID):
            families.intents.labels(kind.value, state.value)
    for limit in metric_families.LIMITS:
        families.limits_struck.labels(limit)
    _make_parts(families)


def _make_parts(families: Families) -> None:
    for name in metric_families.PROTECTIONS:
        families.protections.labels(name)
    for channel in metric_families.CHANNELS:
        for outcome in metric_families.DELIVERIES:
            families.notifications.labels(channel, outcome)
    for phase in recovery_metrics.PHASES:
        families.recovery.labels(phase)
    for window in metric_families.WINDOWS:
        families.spent.labels(window)
        families.budget.labels(window)


def _make_workload(families: Families, workload: str, markets: Sequence[str]) -> None:
    for gauge in families.by_workload:
        gauge.labels(workload)
    families.useful.labels(workload)
    for phase in metric_families.PAID:
        families.paid.labels(workload, phase)
    for market in markets:
        for tenure in _TENURES:
            families.spend.labels(workload, market, tenure.value)
        for cause in Cause:
            families.interruptions.labels(workload, market, cause.value)


def _make_market(families: Families, market: str) -> None:
    for gauge in (
        families.market_available,
        families.market_view_timestamp,
        families.clock_skew,
        families.rows_today,
        families.flapping,
        families.unaccounted,
        families.unaccounted_listings,
        families.market_fault,
    ):
        gauge.labels(market)
    for operation in metric_families.OPERATIONS:
        families.market_request_duration.labels(market, operation)
        for outcome in metric_families.OUTCOMES:
            families.market_requests.labels(market, operation, outcome)
    for state in LeaseState:
        for tenure in _TENURES:
            families.leases.labels(market, tenure.value, state.value)
