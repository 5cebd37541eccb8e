"""An alert is told once while it lasts; a forecast that comes and goes is told once an hour."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide.facts import Alert
from agent.decide.operators.told_alerts import FORECASTS, QUIET, ToldAlerts
from agent.domain.record.event_kind import EventKind
from tests.support import builders

NOW = builders.NOW
MINUTE = timedelta(minutes=1)
LATE = Alert(EventKind.ALERT_DEADLINE_AT_RISK, "train/time", "the deadline of train cannot be met")
DEAR = Alert(EventKind.ALERT_DEADLINE_AT_RISK, "train/max_price", "on-demand is too dear")
LOST = Alert(EventKind.ALERT_LABEL_LOST, "vast-1", "somebody changed the label")


@pytest.mark.parametrize("alert", [LATE, LOST])
def test_it_is_told_once_while_it_lasts(alert: Alert) -> None:
    told = ToldAlerts()
    assert told.is_new(alert)
    for minute in range(120):
        told = told.after([alert], NOW + minute * MINUTE)
        assert not told.is_new(alert)
    assert told.is_new(DEAR), "another subject is told by itself"


def test_what_happens_again_is_news_at_once() -> None:
    assert LOST.kind not in FORECASTS
    told = ToldAlerts().after([LOST], NOW).after([], NOW + MINUTE)
    assert told.is_new(LOST)


@given(absent=st.lists(st.integers(0, 180), min_size=1, max_size=10))
def test_a_forecast_is_told_again_after_an_hour_of_absence(absent: list[int]) -> None:
    told, now = ToldAlerts(), NOW
    for minutes in absent:
        told = told.after([LATE], now)
        for _ in range(minutes):
            now += MINUTE
            told = told.after([], now)
        assert told.is_new(LATE) == (minutes * MINUTE >= QUIET)
