"""Credit: how long it lasts, an unknown credit, and a drain by others. A crossed threshold is reported once."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide.facts import Alert, Marked
from agent.decide.limits import budget_alerts, credit_watch, limits
from agent.decide.limits.limits import Limits
from agent.domain.fleet import Fleet, Spend
from agent.domain.market.market_rules import MarketRules, Settlement
from agent.domain.money import Usd
from agent.domain.record import budget
from agent.domain.record.budget import EVERYTHING, Budget, Thresholds, Window
from agent.domain.record.event_kind import EventKind
from agent.domain.record.lease import LeaseState
from agent.domain.record.reported_crossing import ReportedCrossing
from tests.support import builders

VAST = budget.of_market("vast")
TRAIN = budget.of_workload("train")


def fleet(dollars: str | None = "50", spent: str = "0", minutes: int = 0, **changes: Any) -> Fleet:
    """Build the fleet of one lease at 0.224 an hour, so many minutes later."""
    now = builders.NOW + timedelta(minutes=minutes)
    view = builders.view(credit=None if dollars is None else builders.usd(dollars))
    amount = builders.usd(spent)
    spend = Spend(amount, amount, amount)
    values: dict[str, Any] = {
        "now": now,
        "markets": {"vast": view},
        "leases": (builders.lease(1, accrued_until=now),),
        "spend": spend,
        "spend_of": {VAST: spend, TRAIN: spend},
    }
    return builders.fleet(**{**values, **changes})


def codes(seen: Fleet, caps: Limits) -> list[str]:
    return [found.code for found in credit_watch.alerts(seen, caps)]


def test_the_forecast_is_credit_over_what_bills_now() -> None:
    [found] = credit_watch.outlooks(fleet("6.944"), Limits())
    assert found.lasts == timedelta(hours=31)
    assert found.sentence() == "credit of vast, $6.9440, lasts 1 day 7 h at the present rate of $0.2240/h"
    [idle] = credit_watch.outlooks(fleet(leases=()), Limits())
    assert idle.lasts is None
    [broke] = credit_watch.outlooks(fleet("-3"), Limits())
    assert broke.lasts == timedelta()


def test_each_market_s_credit_bears_its_own_leases_and_floor() -> None:
    there = builders.lease(2, market="runpod", gpu_rate=builders.per_hour("0.50"), disk_rate=builders.per_hour(0))
    gone = builders.lease(3, state=LeaseState.ENDED)
    markets = {name: builders.view(market=name) for name in ("vast", "runpod")}
    seen = fleet(markets=markets, leases=(builders.lease(1), there, gone))
    caps = Limits(min_credit=builders.usd(5), min_credit_of={"runpod": builders.usd(9)})
    found = {each.market: (each.rate, each.floor) for each in credit_watch.outlooks(seen, caps)}
    assert found == {
        "vast": (builders.per_hour("0.224"), builders.usd(5)),
        "runpod": (builders.per_hour("0.50"), builders.usd(9)),
    }


@pytest.mark.parametrize(
    ("hours", "span"),
    [
        (0.99, "59 min"),
        (1.99, "1 h 59 min"),
        (2, "2 h"),
        (71.9, "2 days 23 h"),
        (72, "3 days"),
        (95.9, "3 days 23 h"),
        (240, "10 days"),
    ],
)
def test_how_long_credit_lasts_is_told_in_minutes_hours_and_days(hours: float, span: str) -> None:
    found = credit_watch.Outlook("vast", builders.usd(hours), builders.per_hour(1), None)
    assert f"lasts {span} at" in found.sentence()


def test_less_than_a_day_is_told() -> None:
    assert codes(fleet("5.376"), Limits()) == []
    [found] = credit_watch.alerts(fleet("5.375"), Limits())
    assert (found.code, found.key) == ("credit_short", "vast")
    assert found.sentence.startswith("credit of vast, $5.3750, lasts 23 h")
    assert found.sentence.endswith(": top it up")


def test_a_floor_over_an_unknown_credit_is_said_to_be_beyond_keeping() -> None:
    assert codes(fleet(None), Limits()) == []
    [found] = credit_watch.alerts(fleet(None), Limits(min_credit=builders.usd(5)))
    assert (found.code, found.key) == ("credit_unknown", "vast")
    assert "cannot be kept" in found.sentence
    [unkept] = credit_watch.outlooks(fleet(None), Limits())
    assert unkept.sentence() == "the credit of vast is unknown"
    assert (
        codes(fleet(None, markets={"vast": builders.view(credit=None, account_id="")}), Limits(min_credit=Usd(1))) == []
    )


def test_a_market_that_is_paid_in_arrears_says_that_budgets_alone_stop_it() -> None:
    later = builders.view(credit=None, rules=MarketRules(settlement=Settlement.ARREARS))
    owing = fleet(None, markets={"vast": later})
    [found] = credit_watch.outlooks(owing, Limits())
    assert found.sentence() == "vast sends its bill later: no credit ends the spending there, only budgets do"
    [alert] = credit_watch.alerts(owing, Limits(min_credit=builders.usd(5)))
    assert "only budgets do, so the $5.0000 that should stay there cannot be kept" in alert.sentence


def watched(*steps: Fleet) -> list[Alert]:
    marks: Any = {}
    found: list[Alert] = []
    for step in steps:
        marks, alerts = credit_watch.watch(marks, step, limits.committed_by_fleet(step))
        found += alerts
    return found


def test_a_drain_that_our_leases_do_not_explain_is_told_under_one_key() -> None:
    quiet = watched(fleet("50", "1"), fleet("49.7", "1.2", 60), fleet("47", "4", 600))
    assert quiet == []
    loud = watched(fleet("50", "1"), fleet("49.0", "1.2", 60), fleet("48.0", "1.4", 120))
    assert [found.code for found in loud] == ["credit_drain", "credit_drain"]
    assert len({found.key for found in loud}) == 1
    assert "$1.0000 within 1 h" in loud[0].sentence


def test_a_drain_is_what_exceeds_a_quarter_an_hour_of_our_rate_and_a_tenth_of_our_count() -> None:
    """Each of the three alone keeps a small difference quiet."""
    idle: dict[str, Any] = {"leases": ()}
    assert watched(fleet("50", **idle), fleet("49.75", "0", 9, **idle)) == []
    assert len(watched(fleet("50", **idle), fleet("49.7499", "0", 9, **idle))) == 1
    dear: dict[str, Any] = {
        "leases": (builders.lease(1, gpu_rate=builders.per_hour("0.996"), accrued_until=builders.ago(hours=-1)),)
    }
    assert watched(fleet("50", **dear), fleet("49", "0", 9, **dear)) == []
    assert len(watched(fleet("50", **dear), fleet("48.9999", "0", 9, **dear))) == 1
    assert watched(fleet("50", **idle), fleet("39", "10", 9, **idle)) == []
    assert len(watched(fleet("50", **idle), fleet("38.9999", "10", 9, **idle))) == 1


def test_markets_are_watched_each_for_itself() -> None:
    """A market that reports no credit, or that begins anew, hides no drain of another, and one drain hides no other."""

    def both(runpod: str | None, vast: str) -> Fleet:
        told = {"runpod": runpod, "vast": vast}
        views = {
            name: builders.view(market=name, credit=None if credit is None else builders.usd(credit))
            for name, credit in told.items()
        }
        return fleet(markets=views, leases=())

    def keys(*steps: Fleet) -> list[str]:
        return [alert.key.split("@")[0] for alert in watched(*steps)]

    assert keys(both(None, "50"), both(None, "40")) == ["vast"]
    assert keys(both("5", "50"), both("9", "40")) == ["vast"]
    assert keys(both("50", "50"), both("40", "40")) == ["runpod", "vast"]
    [alert] = watched(both("50", "50"), both("50", "40"))
    assert alert.key == f"vast@{builders.NOW.isoformat()}"


def test_what_drains_slowly_is_seen_too_and_a_small_top_up_begins_anew() -> None:
    idle: dict[str, Any] = {"leases": ()}
    steps = [fleet(f"{50 - 0.1 * step:.1f}", "0", step, **idle) for step in range(4)]
    assert len(watched(*steps)) == 1
    same = [fleet(dollars, "0", at, **idle) for at, dollars in enumerate(["50", "49.8", "49.8", "49.7"])]
    assert len(watched(*same)) == 1
    risen = [fleet(dollars, "0", at, **idle) for at, dollars in enumerate(["50", "49.8", "49.9", "49.7"])]
    assert watched(*risen) == []


def test_a_top_up_and_a_new_day_begin_anew() -> None:
    assert watched(fleet("10"), fleet("20", "0", 10), fleet("19.8", "0", 20)) == []
    assert watched(fleet("10"), fleet("9", "0", 24 * 60)) == []
    assert watched(fleet("10"), fleet(None, "0", 10), fleet("9", "0", 20))[0].code == "credit_drain"


@given(st.lists(st.tuples(st.integers(0, 500_000), st.integers(0, 60)), max_size=12))
def test_what_we_count_ourselves_is_never_an_alarm(steps: list[tuple[int, int]]) -> None:
    micros, minutes, seen = 0, 0, [fleet("50", "1")]
    for more, later in steps:
        micros, minutes = micros + more, minutes + later
        step = fleet("50", "1", minutes)
        amount = Usd(1_000_000 + micros)
        spend = Spend(amount, amount, amount)
        view = msgspec.structs.replace(step.markets["vast"], credit=Usd(50_000_000 - micros))
        seen.append(msgspec.structs.replace(step, spend=spend, spend_of={VAST: spend}, markets={"vast": view}))
    assert watched(*seen) == []


def crossed(seen: Fleet, caps: Limits) -> list[str]:
    found = budget_alerts.crossings(seen, limits.committed_by_fleet(seen), caps)
    return [(one.kind or "") if isinstance(one, Marked) else one.code for one in found]


@pytest.mark.parametrize("window", ["per_day", "per_month", "total"])
def test_a_threshold_is_told_once_a_window_and_over_a_restart(window: str) -> None:
    changes: dict[str, Any] = {window: builders.usd(1)}
    soft = Thresholds(**changes)
    caps = Limits(soft=soft, budgets={TRAIN: Budget(soft=soft)})
    assert crossed(fleet(spent="0.99"), caps) == []
    seen = fleet(spent="1")
    marks = list(budget_alerts.crossings(seen, limits.committed_by_fleet(seen), caps))
    assert [mark.kind for mark in marks if isinstance(mark, Marked)] == ["budget.warned"] * 2
    rests = tuple(
        mark.record for mark in marks if isinstance(mark, Marked) and isinstance(mark.record, ReportedCrossing)
    )
    assert crossed(msgspec.structs.replace(seen, reported_crossings=rests), caps) == []
    ends = [rest.until or builders.ago(days=-50_000) for rest in rests]
    again = [] if window == "total" else ["budget.warned"] * 2
    assert crossed(msgspec.structs.replace(seen, now=max(ends), reported_crossings=rests), caps) == again


@pytest.mark.parametrize(
    ("window", "until", "span"),
    [
        ("per_day", datetime(2026, 11, 21, tzinfo=UTC), "today"),
        ("per_month", datetime(2026, 12, 1, tzinfo=UTC), "this month"),
        ("total", None, "altogether"),
    ],
)
def test_what_was_told_of_a_workload_says_whose_money_and_until_when(
    window: str, until: datetime | None, span: str
) -> None:
    one: dict[str, Any] = {window: builders.usd(1)}
    hard = Thresholds(**one)
    seen = fleet(spent="1.25", leases=())
    [mark] = budget_alerts.crossings(seen, limits.committed_by_fleet(seen), Limits(budgets={TRAIN: Budget(hard)}))
    assert isinstance(mark, Marked)
    assert (mark.workload, mark.kind, mark.record.until) == ("train", "budget.reached", until)
    assert mark.record.ground == "$1.2500 of $1.0000"
    assert mark.sentence == (
        f"workload train: $1.2500 is spent {span}, $1.0000 is the threshold: "
        "nothing more is rented there, and its leases are paused; to go on, raise the cap and type `gpubid reload`"
    )
    [of_market] = budget_alerts.crossings(
        seen, limits.committed_by_fleet(seen), Limits(budgets={VAST: Budget(soft=hard)})
    )
    assert isinstance(of_market, Marked)
    assert of_market.workload == ""
    assert of_market.sentence.endswith("the warning is set there; `gpubid spend` shows what was paid for")


def test_a_moved_threshold_is_another_one() -> None:
    rest = ReportedCrossing(
        EventKind.BUDGET_WARNED, EVERYTHING, Window.DAY, builders.usd(1), builders.NOW, "", builders.ago(days=-1)
    )
    seen = fleet(spent="2", reported_crossings=(rest,))
    assert crossed(seen, Limits(soft=Thresholds(per_day=builders.usd(1)))) == []
    assert crossed(seen, Limits(soft=Thresholds(per_day=builders.usd("1.5")))) == ["budget.warned"]
    assert crossed(seen, Limits(per_day=builders.usd("1.5"))) == ["budget.reached"]


def test_a_rate_is_told_while_it_is_above() -> None:
    assert crossed(fleet(), Limits(soft=Thresholds(per_hour=builders.per_hour("0.224")))) == ["rate_warned"]
    assert crossed(fleet(), Limits(soft=Thresholds(per_hour=builders.per_hour("0.225")))) == []


def test_what_is_used_of_each_threshold() -> None:
    caps = Limits(per_day=builders.usd(4), soft=Thresholds(per_hour=builders.per_hour("0.448")))
    seen = fleet(spent="1")
    assert dict(budget_alerts.used(limits.committed_by_fleet(seen), caps)) == {
        ("account", "", "per_hour", "soft"): 0.5,
        ("account", "", "per_day", "hard"): 0.25,
    }
