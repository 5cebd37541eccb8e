"""One message an incident, a summary after: pure, on events as the ledger gives them."""

import datetime as dt
from typing import Any

import pytest

from agent.config.notify_settings import Hook, Notify, Rule, Severity, Webhook, severity_of
from agent.domain.market.interruption import Cause
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.notify.incidents import MOST_LINES, Incidents

NOW = dt.datetime(2026, 11, 20, 12, 0, tzinfo=dt.UTC)
MINUTE = dt.timedelta(minutes=1)
POST = Webhook(url="http://127.0.0.1:1")


def event(number: int, kind: str = "lease.interrupted", **changes: Any) -> Event:
    plain: dict[str, Any] = {"workload": "train", "slot": 0, "host_id": "h1", "cause": Cause.OUTBID}
    return Event(at=NOW, kind=EventKind(kind), event_id=number, **(plain | changes))


def test_the_first_is_told_at_once_and_the_rest_in_one_summary() -> None:
    mine = Incidents(Notify(webhook=POST))
    first = mine.take([event(1)], NOW)
    more = mine.take([event(2), event(3)], NOW + MINUTE)
    (summary,) = mine.due(NOW + 15 * MINUTE)
    assert [each.key for each in first] == ["webhook/1"]
    assert "train/0 (outbid)" in first[0].title
    assert more == []
    assert summary.key == "webhook/1-3"
    assert "2 more" in summary.title
    assert mine.due(NOW + 60 * MINUTE) == []


def test_what_only_a_summary_will_tell_of_is_known() -> None:
    mine = Incidents(Notify(webhook=POST))
    mine.take([event(1), event(2), event(3)], NOW)
    assert mine.uncounted == [2]
    mine.due(NOW + 15 * MINUTE)
    assert mine.uncounted == []


def test_a_channel_that_is_removed_gets_no_summary() -> None:
    """Nobody could deliver it, so that after the next restart every event since was sent again elsewhere."""
    mine = Incidents(Notify(webhook=POST, apprise=("json://127.0.0.1:1",)))
    mine.take([event(1), event(2)], NOW)
    mine.use(Notify(webhook=POST))
    assert [each.channel for each in mine.due(NOW + 15 * MINUTE)] == ["webhook"]
    mine.use(Notify())
    assert mine.uncounted == []


def test_another_slot_is_another_incident() -> None:
    mine = Incidents(Notify(webhook=POST))
    assert len(mine.take([event(1), event(2, slot=1), event(3, kind="lease.failed")], NOW)) == 3


def test_an_incident_begins_anew_after_its_window() -> None:
    mine = Incidents(Notify(webhook=POST))
    mine.take([event(1)], NOW)
    assert [each.key for each in mine.take([event(2)], NOW + 15 * MINUTE)] == ["webhook/2"]


def test_a_hook_is_told_of_every_transition() -> None:
    rules = (Rule(severity=Severity.INFO, channels=("hook",)),)
    mine = Incidents(Notify(rules=rules, webhook=POST, hook=Hook(("/bin/true",))))
    told = mine.take([event(1), event(2), event(3, kind="lease.starting")], NOW)
    assert [(each.channel, each.key) for each in told] == [("hook", "hook/1"), ("hook", "hook/2"), ("hook", "hook/3")]


def test_a_long_summary_is_cut_and_says_so() -> None:
    mine = Incidents(Notify(webhook=POST))
    mine.take([event(number) for number in range(1, MOST_LINES + 10)], NOW)
    (summary,) = mine.due(NOW + 15 * MINUTE)
    assert len(summary.text.splitlines()) == MOST_LINES + 1
    assert "before these" in summary.text


@pytest.mark.parametrize(
    ("rule", "is_told"),
    [
        (Rule(), True),
        (Rule(event="lease.*", workload="tr*"), True),
        (Rule(event="orphan.*"), False),
        (Rule(workload="serve"), False),
        (Rule(severity=Severity.CRITICAL), False),
        (Rule(channels=("apprise",)), False),
    ],
)
def test_rules_choose_by_event_workload_severity_and_channel(rule: Rule, is_told: bool) -> None:
    assert bool(Incidents(Notify(rules=(rule,), webhook=POST)).take([event(1)], NOW)) is is_told


@pytest.mark.parametrize(
    ("kind", "severity"),
    [
        ("orphan.seen", Severity.CRITICAL),
        ("lease.interrupted", Severity.WARNING),
        ("alert.idle", Severity.WARNING),
        ("lease.resumed", Severity.NOTICE),
        ("lease.starting", Severity.INFO),
        ("something.new", Severity.INFO),
    ],
)
def test_each_kind_matters_so_much(kind: str, severity: Severity) -> None:
    assert severity_of(kind) is severity
