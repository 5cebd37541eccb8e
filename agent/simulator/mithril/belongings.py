"""The account's volumes and ssh keys. A volume costs from its making to its end, whether a bid uses it or not."""

import dataclasses
import random

from agent.simulator.mithril import assumed_figures, places
from agent.simulator.mithril.identifiers import fid
from agent.simulator.mithril.model import Bid, Refused

INTERFACES = ("Block", "File")
MOST_GB = 2 * 1024 * 1024
_HOUR = 3600.0
_REGIONS = frozenset(pool.region for pool in places.POOLS)


@dataclasses.dataclass(slots=True, eq=False)
class Volume:
    """A persistent disk in one region."""

    fid: str
    name: str
    region: str
    size_gb: int
    interface: str  # "Block" or "File"
    created: float
    deleted: float | None = None


@dataclasses.dataclass(slots=True, eq=False)
class SshKey:
    """A registered public key. A required one goes onto every instance."""

    fid: str
    name: str
    public_key: str
    created: float
    is_required: bool = False


class Belongings:
    """Keeps what outlives the bids of one account."""

    def __init__(self, ids: random.Random) -> None:
        """Have nothing. `ids` draws the ids."""
        self._ids = ids
        self.volumes: dict[str, Volume] = {}
        self.keys: dict[str, SshKey] = {}

    # --- volumes ----------------------------------------------------------------------------------------------------
    def make_volume(self, name: str, region: str, size_gb: int, interface: str, now: float) -> Volume:
        """Make a volume, or raise Refused."""
        if region not in _REGIONS:
            raise Refused(404, "Region not found")
        if any(volume.name == name and volume.deleted is None for volume in self.volumes.values()):
            raise Refused(400, "Name already used")
        if self.used_gb() + size_gb > assumed_figures.QUOTA_STORAGE_GB:
            raise Refused(400, "Storage quota exceeded")
        volume = Volume(fid(self._ids, "vol"), name, region, size_gb, interface, now)
        self.volumes[volume.fid] = volume
        return volume

    def volume(self, volume_fid: str) -> Volume:
        """Return a volume that exists, or raise Refused."""
        volume = self.volumes.get(volume_fid)
        if volume is None or volume.deleted is not None:
            raise Refused(404, "Volume not found")
        return volume

    def check_volumes(self, fids: tuple[str, ...], region: str) -> None:
        """Raise Refused unless every volume exists in a region."""
        for volume_fid in fids:
            if self.volume(volume_fid).region != region:
                raise Refused(400, "Volume is in another region")

    def delete_volume(self, volume_fid: str, bids: list[Bid], now: float) -> None:
        """Delete a volume that no bid uses, or raise Refused."""
        volume = self.volume(volume_fid)
        if any(volume_fid in bid.volumes for bid in bids):
            raise Refused(400, "Volume is attached to a bid")
        volume.deleted = now

    def used_gb(self) -> int:
        """Return the gigabytes of all volumes that exist."""
        return sum(volume.size_gb for volume in self.volumes.values() if volume.deleted is None)

    def cost(self, now: float) -> float:
        """Return the dollars that all volumes have cost so far."""
        per_gb_hour = assumed_figures.VOLUME / assumed_figures.MONTH_HOURS
        hours = (
            volume.size_gb * (min(volume.deleted or now, now) - volume.created) / _HOUR
            for volume in self.volumes.values()
        )
        return sum(hours) * per_gb_hour

    # --- ssh keys ---------------------------------------------------------------------------------------------------
    def make_key(self, name: str, public_key: str, now: float, *, is_required: bool) -> SshKey:
        """Register a key, or raise Refused."""
        if any(key.name == name for key in self.keys.values()):
            raise Refused(400, "Name already used")
        key = SshKey(fid(self._ids, "sshkey"), name, public_key, now, is_required)
        self.keys[key.fid] = key
        return key

    def key(self, key_fid: str) -> SshKey:
        """Return a key, or raise Refused."""
        if key_fid not in self.keys:
            raise Refused(404, "SSH key not found")
        return self.keys[key_fid]

    def check_keys(self, fids: tuple[str, ...]) -> None:
        """Raise Refused unless every key is registered."""
        for key_fid in fids:
            self.key(key_fid)

    def delete_key(self, key_fid: str) -> None:
        """Remove a key, or raise Refused."""
        del self.keys[self.key(key_fid).fid]
