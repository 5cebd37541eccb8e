"""Findings about limits on spending that stop work, or stop nothing."""

from collections.abc import Iterator, Mapping
from datetime import timedelta

from agent.config import problems
from agent.config.linting.lint_finding import Finding
from agent.config.settings import Config
from agent.domain import span_text
from agent.domain.money import Usd
from agent.domain.record import budget
from agent.domain.record.budget import EVERYTHING, Kind, Scope, Window

CREDIT_TIMES = 3
"""A daily budget of more than this many times the accounts' credit does not limit spend."""

KEYS = {
    Window.HOUR: "max_per_hour",
    Window.DAY: "max_per_day",
    Window.MONTH: "max_per_month",
    Window.TOTAL: "max_total",
}


def findings(config: Config, credit_of: Mapping[str, Usd]) -> Iterator[Finding]:
    """Find such limits; `credit_of` has the last known credit of each market's account, by market."""
    yield from _caps(config)
    yield from _nothing(config)
    yield from _credit(config, credit_of)
    yield from _windows(config)
    yield from _reserve(config)


def _caps(config: Config) -> Iterator[Finding]:
    caps = config.limits
    slots = sum(work.most_live for work in config.workloads)
    if caps.instances is not None and slots > caps.instances:
        sentence = (
            f"the workloads may have {slots} slots at once, and max_instances is {caps.instances}: the others never run"
        )
        yield Finding("limits.max_instances", sentence, f"write max_instances = {slots}, or fewer slots")
    if caps.per_hour is None or caps.per_instance_hour is None or caps.per_hour >= caps.per_instance_hour:
        return
    sentence = f"{caps.per_hour} for everything is under the {caps.per_instance_hour} that one instance may cost"
    yield Finding("limits.max_fleet_per_hour", sentence, "raise it, or lower max_price_per_instance_hour")


def _nothing(config: Config) -> Iterator[Finding]:
    """Find budgets of no dollar at all, under which nothing is ever rented."""
    for scope in config.limits.scopes():
        hard = config.limits.hard(scope)
        amounts = {window: hard.amount(window) for window in budget.SUMS} | {Window.HOUR: hard.per_hour}
        for window, amount in amounts.items():
            if amount is None or amount.micros:
                continue
            is_fleet = scope == EVERYTHING and window is Window.HOUR
            key = "max_fleet_per_hour" if is_fleet else KEYS[window]
            whose = {Kind.MARKET: f" on {scope.name}", Kind.WORKLOAD: f" for {scope.name}"}.get(scope.kind, "")
            sentence = f"a limit of 0 dollars forbids every rent{whose}"
            yield Finding(f"{_table(scope)}.{key}", sentence, "write the dollars that may be spent")


def _credit(config: Config, credit_of: Mapping[str, Usd]) -> Iterator[Finding]:
    paying = [market.name for market in config.markets if market.spend and not market.is_simulated]
    per_day = config.limits.per_day
    # All paying accounts share the budget, so the comparison needs the credit of each.
    if per_day is None or not paying or any(name not in credit_of for name in paying):
        return
    credit = sum(credit_of[name].micros for name in paying)
    if not credit or per_day.micros <= CREDIT_TIMES * credit:
        return
    accounts = " and ".join(paying)
    sentence = f"{per_day} a day is more than {CREDIT_TIMES} times the credit of {Usd(credit)} on {accounts}"
    yield Finding("limits.max_per_day", sentence, "write what a day may really cost, or top the account up")


def _windows(config: Config) -> Iterator[Finding]:
    """Find a day that may cost more than its month."""
    for scope in config.limits.scopes():
        hard = config.limits.hard(scope)
        if hard.per_day is not None and hard.per_month is not None and hard.per_day > hard.per_month:
            sentence = f"{hard.per_day} a day never stops anything: the {hard.per_month} of max_per_month stop it first"
            yield Finding(f"{_table(scope)}.max_per_day", sentence, "write less than max_per_month, or raise that")


def _reserve(config: Config) -> Iterator[Finding]:
    """Find a price that a budget has no room for: what is rented must fit it for the time of `reserve`."""
    reserve, most = config.limits.reserve, config.limits.per_instance_hour
    for work in config.workloads:
        price = min(work.max_price, most if most is not None else work.max_price)
        kept = price.over(reserve.total_seconds())
        # A budget of an array counts by its tasks.
        for scope in (EVERYTHING, *([budget.of_workload(work.name)] if work.array is None else ())):
            for window in budget.SUMS:
                cap = config.limits.hard(scope).amount(window)
                if cap is None or not cap.micros or cap >= kept:
                    continue
                last = span_text.of(timedelta(hours=cap.micros / price.micros))
                span = window.value.removeprefix("per_")
                when = "" if window is Window.TOTAL else f" before the last {last} of a {span}"
                sentence = (
                    f"an instance of {work.name} at {price} costs {kept} in the {span_text.of(reserve)} of "
                    f"limits.reserve, so none is rented at that price{when}"
                )
                key = f"{_table(scope)}.{KEYS[window]}"
                yield Finding(key, sentence, f"write at least {kept.dollars:g}, a shorter reserve or a lower max_price")


def _table(scope: Scope) -> str:
    """Return the table of a scope's budget, as the file names it."""
    places = {Kind.MARKET: "markets", Kind.WORKLOAD: "workloads"}
    return problems.dotted((places[scope.kind], scope.name, "budget")) if scope.kind in places else "limits"
