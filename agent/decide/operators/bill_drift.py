"""One market's UTC day: the ledger's count, the market's charges, and whether a person must be warned."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date

from agent.decide.operators.notices import Notice
from agent.domain.money import ZERO, Usd

MOST_DRIFT = 0.02
"""A difference above this share is worth a warning."""
LEAST_DRIFT = Usd(10_000)
"""A difference of up to a cent is rounding, whatever its share."""


@dataclass(frozen=True, slots=True)
class Drift:
    """One market's UTC day: our count and its charges."""

    market: str
    day: date
    estimate: Usd
    charged: Usd

    @property
    def amount(self) -> Usd:
        """The market's charges less the ledger's count."""
        return self.charged - self.estimate

    @property
    def share(self) -> float:
        """The difference as a share of the larger; 0 without spend."""
        most = max(self.charged.micros, self.estimate.micros)
        return self.amount.micros / most if most else 0.0

    @property
    def beyond_rounding(self) -> float:
        """The share; 0 within rounding."""
        return self.share if abs(self.amount.micros) > LEAST_DRIFT.micros else 0.0

    @property
    def is_wide(self) -> bool:
        """Whether a person must be warned."""
        return abs(self.beyond_rounding) > MOST_DRIFT

    def sentence(self) -> str:
        """Return a sentence about the difference and where to look."""
        return (
            f"{self.market} charged {self.charged} for {self.day}, and the ledger counted {self.estimate}: "
            f"{self.share:+.1%}; compare its bill with `gpubid spend --by lease`"
        )


def last(lines: Iterable[tuple[str, date, Usd, Usd | None]]) -> tuple[Drift, ...]:
    """Return the last day of each market whose charges were read, from (market, day, estimate, charged) by instance."""
    sums: dict[str, Drift] = {}
    for market, day, estimate, charged in lines:
        known = sums.get(market)
        if charged is None or (known is not None and known.day > day):
            continue
        before = known if known is not None and known.day == day else Drift(market, day, ZERO, ZERO)
        sums[market] = Drift(market, day, before.estimate + estimate, before.charged + charged)
    return tuple(sums[market] for market in sorted(sums))


def notices(drifts: Iterable[Drift]) -> Iterator[Notice]:
    """Yield a notice for each market whose last compared day differs by more than a person should accept."""
    for drift in drifts:
        if drift.is_wide:
            yield Notice(drift.market, "bill_drift", drift.sentence())
