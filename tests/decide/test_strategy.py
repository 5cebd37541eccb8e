"""Durations as operators write them, and numbers that cannot be changed."""

from datetime import timedelta

import pydantic
import pytest

from agent.decide.strategy import NEVER, Params, duration


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("90s", timedelta(seconds=90)),
        ("15m", timedelta(minutes=15)),
        ("1h30m", timedelta(hours=1, minutes=30)),
        ("2d", timedelta(days=2)),
        ("1d2h3m4s", timedelta(days=1, hours=2, minutes=3, seconds=4)),
        ("0s", timedelta()),
        ("never", NEVER),
        (timedelta(seconds=5), timedelta(seconds=5)),
    ],
)
def test_durations(text: object, span: timedelta) -> None:
    assert duration(text) == span


@pytest.mark.parametrize("text", ["", "15", "m", "-5m", "1.5h", "5m1h", "1h ", "Never", 90, None, True, "1" * 40 + "s"])
def test_what_is_no_duration_says_how_to_write_one(text: object) -> None:
    with pytest.raises(ValueError, match="write a duration such as"):
        duration(text)


@pytest.mark.parametrize("text", ["36526d", "876601h", "9" * 20 + "d"])
def test_longer_than_a_century_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="century"):
        duration(text)


def test_numbers_are_frozen_and_closed() -> None:
    class Numbers(Params):
        share: float = 0.5

    with pytest.raises(pydantic.ValidationError):
        Numbers.model_validate({"shere": 0.1})
    with pytest.raises(pydantic.ValidationError):
        Numbers.model_validate({"share": float("nan")})
    with pytest.raises(pydantic.ValidationError):
        Numbers().share = 0.1  # type: ignore[misc]
