"""The account's network volumes: each is in one data centre, outlives every pod and bills by the hour to its end."""

import dataclasses
import random
from collections.abc import Callable, Iterable

from agent.simulator.event_queue import Timeline
from agent.simulator.runpod import assumed_figures, hosts
from agent.simulator.runpod.model import Refused

_HOUR = 3600.0
STANDARD = "STANDARD"


@dataclasses.dataclass(slots=True, eq=False)
class NetworkVolume:
    """One volume."""

    volume_id: str
    name: str
    size_gb: int
    center_id: str
    billed_until: float

    @property
    def per_hour(self) -> float:
        """Return its $/h: the gigabytes above a terabyte cost less."""
        below, above = assumed_figures.NETWORK_VOLUME
        most = assumed_figures.NETWORK_VOLUME_STEP_GB
        month = min(self.size_gb, most) * below + max(self.size_gb - most, 0) * above
        return month / assumed_figures.MONTH_HOURS


@dataclasses.dataclass(frozen=True, slots=True)
class VolumeCharge:
    """The cost of a volume for at most an hour that ended at `until`, dollars."""

    volume_id: str
    until: float
    amount: float


class NetworkVolumes:
    """Keeps and bills the volumes of one account."""

    def __init__(self, timeline: Timeline, seed: str, pay: Callable[[float], None]) -> None:
        """Begin without a volume; `pay` takes dollars from the balance."""
        self._timeline = timeline
        self._dice = random.Random(f"{seed}/volumes")
        self._pay = pay
        self._volumes: dict[str, NetworkVolume] = {}
        self._charges: list[VolumeCharge] = []

    def all(self) -> list[NetworkVolume]:
        """Return the volumes that exist, in order of creation."""
        return list(self._volumes.values())

    def get(self, volume_id: str) -> NetworkVolume | None:
        """Return a volume."""
        return self._volumes.get(volume_id)

    def named(self, volume_id: str) -> NetworkVolume:
        """Return a volume for a pod, or raise Refused."""
        if (volume := self._volumes.get(volume_id)) is None:
            raise Refused(Refused.BAD_INPUT, f"Network volume {volume_id} not found.")
        return volume

    def create(self, name: str, size_gb: int, center_id: str, volume_id: str = "") -> NetworkVolume:
        """Make a volume, which bills from now on."""
        volume = NetworkVolume(volume_id or hosts.token(self._dice, 10), name, size_gb, center_id, self._timeline.now)
        self._volumes[volume.volume_id] = volume
        self._timeline.put(self._timeline.now + _HOUR, lambda: self._bill(volume))
        return volume

    def resize(self, volume: NetworkVolume, size_gb: int) -> None:
        """Make a volume larger."""
        self._charge(volume)
        volume.size_gb = size_gb

    def delete(self, volume_id: str) -> None:
        """Delete a volume with its files."""
        self._charge(self._volumes.pop(volume_id))

    def rate(self) -> float:
        """Return $/h of all volumes."""
        return sum(volume.per_hour for volume in self._volumes.values())

    def charges(self) -> Iterable[VolumeCharge]:
        """Return every charge so far, the oldest first."""
        return tuple(self._charges)

    def _bill(self, volume: NetworkVolume) -> None:
        if self._volumes.get(volume.volume_id) is volume:
            self._charge(volume)
            self._timeline.put(self._timeline.now + _HOUR, lambda: self._bill(volume))

    def _charge(self, volume: NetworkVolume) -> None:
        now = self._timeline.now
        amount = volume.per_hour * (now - volume.billed_until) / _HOUR
        volume.billed_until = now
        if amount > 0:
            self._pay(amount)
            self._charges.append(VolumeCharge(volume.volume_id, now, amount))
