"""Volumes: disks of their own on a host, which bill as long as they exist, with or without an instance."""

import dataclasses

from agent.simulator.event_queue import Timeline
from agent.simulator.instances.billing import Rates
from agent.simulator.market_model import Refusal
from agent.simulator.vast.contract_desk import Desk
from agent.simulator.vast.model import Contract, Host, Slice
from agent.simulator.vast.world_interface import Stage

FIRST_ASK = 30_000_000  # the id of a volume's offer is this plus its host's number
FIRST_VOLUME = 90_000_000  # apart from the numbers of instances
HOURS_PER_MONTH = 720.0


@dataclasses.dataclass(slots=True, eq=False)
class Volume(Contract):
    """A contract that is only disk. Its slice is a bare one of its host."""


class Storeroom:
    """Rents volumes out for the hosts of one world."""

    def __init__(self, world: Stage, timeline: Timeline, desk: Desk) -> None:
        """Start without volumes."""
        self._world = world
        self._timeline = timeline
        self._desk = desk
        self.volumes: dict[int, Volume] = {}

    def live(self) -> list[Volume]:
        """Return the volumes that exist, the oldest first."""
        return [volume for volume in self.volumes.values() if volume.ended is None]

    def free_gb(self, host: Host) -> float:
        """Return the GB that a host has left for volumes; volumes get half of its disk."""
        taken = sum(volume.disk_gb for volume in self.live() if volume.host is host)
        return max(host.disk_gb / 2 - taken, 0.0)

    def offers(self) -> list[Host]:
        """Return the hosts that have room."""
        now = self._world.now
        return [
            host
            for host in self._world.hosts.values()
            if host.is_online and now < host.end_time and self.free_gb(host) >= 1
        ]

    def rent(self, ask_id: int, size_gb: float, name: str | None) -> Volume:
        """Rent a volume. Raises Refusal."""
        host = self._world.hosts.get(ask_id - FIRST_ASK)
        if host is None or not host.is_online or host.is_gone:
            raise Refusal(Refusal.NO_SUCH_ASK, f"No volume offer {ask_id} is available.")
        if not 1 <= size_gb <= self.free_gb(host):
            raise Refusal(Refusal.BAD_DISK, f"The host has {self.free_gb(host):g} GB for volumes.")
        self._desk.require_credit()
        number = FIRST_VOLUME + len(self.volumes) + 1
        volume = Volume(
            contract_id=number,
            slice=Slice(ask_id, host.machine_id, host, ()),
            host=host,
            bid=None,
            locked_ask=0.0,
            disk_gb=size_gb,
            image="",
            image_gb=0.0,
            label=name or f"V.{number}",
            created=self._world.now,
            end_time=host.end_time,
        )
        self.volumes[number] = volume
        self._desk.till.rate(volume, Rates(disk=host.storage_price * size_gb / HOURS_PER_MONTH), self._world.now)
        return volume

    def remove(self, volume_id: int) -> None:
        """End a volume. Raises Refusal."""
        volume = self.volumes.get(volume_id)
        if volume is None or volume.ended is not None:
            raise Refusal(Refusal.NO_SUCH_CONTRACT, "Volume with that ID does not exist.")
        volume.ended = self._timeline.now
        self._desk.till.close(volume, self._timeline.now)
