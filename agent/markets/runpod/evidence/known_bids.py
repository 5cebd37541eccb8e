"""The bids of the pods that are at one. GraphQL may not show them at the moment, and the listing never does."""

from collections.abc import Collection

from agent.domain.money import UsdPerHour

KEPT_SECONDS = 3600.0
"""A pod that exists may be missing in some listings. Assumed."""


class KnownBids(dict[str, UsdPerHour | None]):
    """The bids by the ids of their pods; None is a bid that nobody knows."""

    def __init__(self) -> None:
        super().__init__()
        self._listed_at: dict[str, float] = {}

    def keep(self, listed: Collection[str], now: float) -> None:
        """Forget each pod that no complete listing had for `KEPT_SECONDS`."""
        self._listed_at = {pod_id: at for pod_id, at in self._listed_at.items() if pod_id in self}
        for pod_id in [*self]:
            if pod_id in listed or pod_id not in self._listed_at:
                self._listed_at[pod_id] = now
            elif now - self._listed_at[pod_id] >= KEPT_SECONDS:
                del self[pod_id], self._listed_at[pod_id]
