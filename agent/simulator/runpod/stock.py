"""The stock: the holders of each host's GPUs, the free GPUs, and the holders that must leave for others.

1. Renting on demand displaces bidders, the lowest bid first; a bid displaces lower bids. Nothing displaces an on-demand
   renter, and a bidder keeps its place against an equal bid (not documented; assumed).
2. Holders leave only if that makes room for the whole request.
"""

from collections.abc import Iterable, Mapping

from agent.simulator.runpod.model import Guest, Host, Pod

Holder = Guest | Pod


class Stock:
    """The renters of every host."""

    def __init__(self, hosts: Mapping[int, Host]) -> None:
        """Start with empty hosts."""
        self._holders: dict[int, list[Holder]] = {machine_id: [] for machine_id in hosts}
        self.changes = 0
        """Count of arrivals and departures."""

    def add(self, holder: Holder) -> None:
        """Add a holder of GPUs."""
        self.changes += 1
        self._holders[holder.host.machine_id].append(holder)

    def remove(self, holder: Holder) -> bool:
        """Remove a holder; False if it held nothing."""
        holders = self._holders[holder.host.machine_id]
        if holder not in holders:
            return False
        self.changes += 1
        holders.remove(holder)
        return True

    def free(self, host: Host) -> int:
        """Count the GPUs that nobody holds."""
        if not host.is_online:
            return 0
        return max(host.gpu_count - sum(holder.gpu_count for holder in self._holders[host.machine_id]), 0)

    def yielding(self, host: Host, count: int, bid: float | None) -> list[Holder] | None:
        """Return who must leave so that `count` GPUs become free for a bid (None: on demand); None if too few would."""
        if not host.is_online:
            return None
        left = count - self.free(host)
        yielding: list[Holder] = []
        for holder in sorted(_bidders(self._holders[host.machine_id]), key=lambda holder: holder.bid or 0.0):
            if left <= 0 or (bid is not None and holder.bid is not None and holder.bid >= bid):
                break
            yielding.append(holder)
            left -= holder.gpu_count
        return yielding if left <= 0 else None

    def fits(self, hosts: Iterable[Host], count: int) -> int:
        """Count the pods of `count` GPUs that fit on the free GPUs of these hosts."""
        return sum(self.free(host) // count for host in hosts)


def _bidders(holders: Iterable[Holder]) -> list[Holder]:
    return [holder for holder in holders if holder.bid is not None]
