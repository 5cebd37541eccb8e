"""The bids of the pods that are at one. GraphQL may not show them at the moment, and the listing never does."""

from collections.abc import Collection

from agent.domain.money import UsdPerHour

KEPT_SECONDS = 3600.0
"""A pod that exists may be missing in some listings. Assumed."""


class KnownBids(dict[str, UsdPerHour | None]):
    """The bids by the ids of their pods; None is a bid that nobody knows."""

    def __init__(self) -> None:
        super().__init__()
        self._missing_since: dict[str, float] = {}

    def keep(self, listed: Collection[str], now: float) -> None:
        """Forget each pod that complete listings lacked for `KEPT_SECONDS`. Time without a listing does not count."""
        missing = {pod_id: self._missing_since.get(pod_id, now) for pod_id in self if pod_id not in listed}
        for pod_id in [pod_id for pod_id, since in missing.items() if now - since >= KEPT_SECONDS]:
            del self[pod_id], missing[pod_id]
        self._missing_since = missing
