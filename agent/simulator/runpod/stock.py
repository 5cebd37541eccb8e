"""The stock: who has GPUs of a host, which are free, and who must leave for whom.

1. Renting on demand displaces bidders, the lowest bid first; a bid displaces lower bids. Nothing displaces who rents on
   demand, and a bidder keeps its place against an equal bid (not documented; assumed).
2. Who yields makes room for the whole of what is asked, or nobody yields.
"""

from collections.abc import Iterable, Mapping

from agent.simulator.runpod.model import Guest, Host, Pod

Holder = Guest | Pod


class Stock:
    """The renters of every host."""

    def __init__(self, hosts: Mapping[int, Host]) -> None:
        """Have nobody on them."""
        self._holders: dict[int, list[Holder]] = {machine_id: [] for machine_id in hosts}
        self.changes = 0
        """How often somebody came or went."""

    def add(self, holder: Holder) -> None:
        """Let somebody hold its GPUs."""
        self.changes += 1
        self._holders[holder.host.machine_id].append(holder)

    def remove(self, holder: Holder) -> bool:
        """Let go of what it holds; False if it held nothing."""
        holders = self._holders[holder.host.machine_id]
        if holder not in holders:
            return False
        self.changes += 1
        holders.remove(holder)
        return True

    def holders(self, host: Host) -> list[Holder]:
        """Return who holds GPUs of a host, in order of coming."""
        return list(self._holders[host.machine_id])

    def free(self, host: Host) -> int:
        """Count the GPUs that nobody holds."""
        if not host.is_online:
            return 0
        return max(host.gpu_count - sum(holder.gpu_count for holder in self._holders[host.machine_id]), 0)

    def yielding(self, host: Host, count: int, bid: float | None) -> list[Holder] | None:
        """Return who must go so that `count` GPUs become free for this bid (None: on demand); None if too few do."""
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
        """Count the pods of so many GPUs that the free GPUs of these hosts hold."""
        return sum(self.free(host) // count for host in hosts)


def _bidders(holders: Iterable[Holder]) -> list[Holder]:
    return [holder for holder in holders if holder.bid is not None]
