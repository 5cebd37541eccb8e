"""Point 6, too: how long the first start of an instance may take, as its host and the daemon's looks at it allow."""

from tests.disasters.sight import Sight
from tests.disasters.truth import Box

LOADING_SECONDS = 3600.0
"""How long the first start of an instance may take at least: some hosts load at a tenth of the usual speed."""
LOADING_FACTOR = 5.0
"""With a slow link this many times the image's transfer time is waited for, plus `LOADING_SPARE_SECONDS`."""
LOADING_SPARE_SECONDS = 1200.0
UNLISTED_SECONDS = 300.0
"""Of a time without a listing, what exceeds this counts against no host."""


class FirstStarts:
    """Remembers when hosts were silent and markets were not listed: that time counts against no start."""

    def __init__(self) -> None:
        self._silent_at: dict[tuple[str, str], float] = {}
        """When the host of each instance was last silent: what loads on it begins anew when it is back."""
        self._listed_at: dict[str, float] = {}
        self._dark: dict[str, list[tuple[float, float]]] = {}
        """The times without a listing of each market that were longer than `UNLISTED_SECONDS`."""

    def see(self, sight: Sight) -> None:
        """Look at every instance, and at which markets were listed."""
        silent = (box for box in sight.truth.live if box.thing.is_offline)
        self._silent_at |= {(box.market, box.instance_id): sight.now for box in silent}
        for market in (market for market, is_fresh in sight.fresh.items() if is_fresh and sight.has_ended):
            before = self._listed_at.get(market, sight.now)
            if sight.now - before > UNLISTED_SECONDS:
                self._dark.setdefault(market, []).append((before + UNLISTED_SECONDS, sight.now))
            self._listed_at[market] = sight.now

    def is_under_way(self, box: Box, now: float) -> bool:
        """Return whether an instance is on its way to its first run, and not for too long."""
        thing = box.thing
        if not thing.holds_gpu or thing.first_started is not None:
            return False
        began = max(thing.created, self._silent_at.get((box.market, box.instance_id), 0.0))
        unlisted = sum(max(until - max(since, began), 0.0) for since, until in self._dark.get(box.market, ()))
        expected = thing.image_gb * 8000.0 / max(thing.host.inet_down, 20.0)
        longest = max(LOADING_SECONDS, LOADING_SPARE_SECONDS + LOADING_FACTOR * expected)
        return now - began - unlisted <= longest
