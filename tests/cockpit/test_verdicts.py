"""What cockpits show is called wrong only where every version that it may be of was read; else it is unjudged."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from agent.cli.shared import session
from agent.domain.market.price import PriceSample
from agent.ledger.memory import Memory
from tests.cockpit import comparison
from tests.cockpit.ledger_versions import LedgerVersions, Span, Version
from tests.cockpit.recent import Recent, RecentVersions
from tests.cockpit.verdicts import Verdicts
from tests.support import builders
from tests.support.builders import NOW

CONFIG, _ = session.read(Path(__file__).parents[2] / "agent.toml")
SECOND = timedelta(seconds=1)
SHOWN: dict[str, Any] = {
    "as_of": NOW.isoformat(),
    "since": NOW.replace(day=1, hour=0, minute=0, second=0, microsecond=0).isoformat(),
    "saved_dollars": None,
    "share": None,
    "spent_dollars": 0.0,
    "compared_dollars": None,
    "unpriced_dollars": 0.0,
    "unpriced": [],
}
"""The savings of a ledger without a lease."""


def version(number: int, *, bid: str = "0.22", lines: Sequence[Any] = ()) -> Version:
    """A version in which the first slot of `train` runs at this bid, and the second one at $0.31."""
    rates = {builders.slot("train", 0): bid, builders.slot("train", 1): "0.31"}
    leases = [
        builders.lease(index, slot=slot, gpu_rate=builders.per_hour(rate))
        for index, (slot, rate) in enumerate(rates.items())
    ]
    memory = Memory(leases={each.lease_id: each for each in leases})
    return Version(number, NOW.timestamp(), memory, {}, lines, [], [], [])


class Read:
    """Versions that were read of any span."""

    def __init__(self, span: Span) -> None:
        self._span = span

    def at(self, first: datetime, last: datetime) -> Span:
        assert first <= last
        return self._span

    def is_past(self, last: datetime) -> bool:
        return last is not None

    def samples(self) -> list[PriceSample]:
        return []


def minute(span: Span) -> Recent:
    return RecentVersions(CONFIG).of(span, NOW + SECOND)


@pytest.mark.parametrize(
    ("slot", "text", "wrong"),
    [
        ("train/0", "running at $0.220/h", []),
        ("train/0", "Running at $0.310/h", ["0.310"]),
        ("train/0", "wait for it to resume at $0.310/h (0.20 h expected): $1.0 over 2 h", ["0.310"]),
        ("train/1", "starting at $0.3100/h", []),
        ("train/0", "rent host 7 on demand at $0.500/h", []),
    ],
)
def test_a_sentence_on_a_slot_gives_the_rate_of_a_lease_of_that_slot(slot: str, text: str, wrong: list[str]) -> None:
    assert minute(Span([version(1), version(2)], is_covered=True)).not_of_lease(slot, text) == wrong


def test_only_a_rate_that_was_compared_counts() -> None:
    recent = minute(Span([version(1)], is_covered=True))
    comparison.of_lease("train/0", "running at $9.000/h", recent)
    comparison.of_lease("train/1", "rent host 7 on demand at $0.500/h", recent)
    assert recent.rated == {(NOW + SECOND, "train/0")}


def test_a_rate_that_may_have_been_another_in_an_unread_version_is_not_denied() -> None:
    recent = minute(Span([version(1), version(3, bid="0.25")], is_covered=True))
    assert recent.not_of_lease("train/0", "running at $0.230/h") == []
    assert recent.not_of_lease("train/1", "running at $0.230/h") == ["0.230"]
    assert minute(Span([version(1)], is_covered=False)).not_of_lease("train/1", "running at $0.230/h") == []


@pytest.mark.parametrize(
    ("span", "shown", "judged", "is_wrong"),
    [
        (Span([version(1)], is_covered=True), 0.0, 1, False),
        (Span([version(1)], is_covered=True), 5.0, 1, True),
        (Span([version(1), version(3)], is_covered=True), 5.0, 0, False),
        (Span([version(1)], is_covered=False), 5.0, 0, False),
        (Span([], is_covered=False), 5.0, 0, False),
        (Span([version(1), version(3)], is_covered=True), 0.0, 1, False),
    ],
)
async def test_savings_are_wrong_only_where_all_versions_up_to_their_message_were_read(
    span: Span, shown: float, judged: int, *, is_wrong: bool
) -> None:
    verdicts = Verdicts(cast("LedgerVersions", Read(span)), CONFIG)
    await verdicts.judge_savings({**SHOWN, "spent_dollars": shown}, NOW + 25 * SECOND)
    assert (verdicts.judged["savings"], verdicts.unjudged["savings"]) == (judged, 1 - judged)
    assert bool(verdicts.wrong) == is_wrong
