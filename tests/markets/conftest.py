from datetime import UTC, datetime

import pytest

from agent.clock import SteppedClock


@pytest.fixture
def clock() -> SteppedClock:
    return SteppedClock(datetime(2026, 11, 5, 22, tzinfo=UTC))
