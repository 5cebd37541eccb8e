"""Markets that refuse our key for endings although they may list: nothing of ours can be ended there.

Invariants:
1. Only the market's own word counts, and only for a release or a pause: a page, a time-out and a refused rent say
   nothing of endings.
2. Any other answer to an ending ends the series. So does `FRESH` without a refusal: nothing was asked, so nobody knows.
3. A series lasts from its first refusal to its last one, not until now.
"""

from collections.abc import Mapping
from datetime import timedelta

from agent.clock import Clock
from agent.domain.market.account_refusal import Refusal
from agent.domain.record.intent import IntentKind
from agent.markets.market_errors import MarketError, Unauthorized

FRESH = timedelta(minutes=15)
"""An ending that is due is sent again in every cycle, or at the latest when the market accepts calls again."""
ENDINGS = frozenset({IntentKind.RELEASE, IntentKind.PAUSE})


class EndingRefusals:
    """Remembers by market the series of refused endings that goes on."""

    def __init__(self, clock: Clock) -> None:
        """Date the refusals by the monotonic clock."""
        self._clock = clock
        self._series: dict[str, tuple[float, float]] = {}
        """The first and the last refusal of each series, in seconds of the monotonic clock."""

    def note(self, market: str, kind: IntentKind, error: MarketError | None) -> None:
        """Note a market's answer to an order: its error, or None if it accepted the order."""
        if kind not in ENDINGS:
            return
        known = self.known().get(market)
        if not isinstance(error, Unauthorized) or not error.is_proven:
            self._series.pop(market, None)
            return
        now = self._clock.monotonic()
        self._series[market] = self._series[market][0] if known is not None else now, now

    def known(self) -> Mapping[str, Refusal]:
        """Return the refusals of our key by market."""
        now, most = self._clock.monotonic(), FRESH.total_seconds()
        return {
            market: Refusal(timedelta(seconds=last - first))
            for market, (first, last) in self._series.items()
            if now - last <= most
        }


def longer(one: Mapping[str, Refusal], other: Mapping[str, Refusal]) -> Mapping[str, Refusal]:
    """Return the refusals of two sources together; of a market that both know, the longer one."""
    merged = dict(one)
    for market, refusal in other.items():
        before = merged.get(market)
        if before is None or (not before.is_since_start and before.lasts < refusal.lasts):
            merged[market] = refusal
    return merged
