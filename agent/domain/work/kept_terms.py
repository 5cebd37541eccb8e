"""The terms of a guard that its container keeps from its rent. The ledger has them as text with the lease."""

import hashlib
from datetime import timedelta

import msgspec
from msgspec.structs import replace

from agent.domain.record.lease import Lease
from agent.domain.work import sign_of_life
from agent.domain.work.guard_terms import Bucket
from agent.domain.work.workload import Workload, WorkloadKind

SLOT = "GPUBID_SLOT"
"""The variable with the slot's number, from 0 on."""


class KeptTerms(msgspec.Struct, frozen=True):
    """The terms that were given to a guard, by which the daemon must judge its reports."""

    is_batch: bool
    endpoint: str
    bucket: str
    prefix: str
    done_codes: tuple[int, ...]
    deadman_seconds: int | msgspec.UnsetType | None = msgspec.UNSET
    """The silence of the daemon after which its dead man's switch fires; None: never; unset: not recorded."""
    destroys: bool = False
    """Whether that switch releases the instance, if its last checkpoint was verified."""
    paths: tuple[str, ...] | None = None
    """The paths that it carries, in the order in which its manifests number them; None: not recorded."""

    container: str = ""
    """The digest of what every task on its instance gets alike; empty: no other task follows there."""

    @property
    def deadman(self) -> timedelta | None:
        """The silence of the daemon after which its dead man's switch fires; None: never, or not recorded."""
        seconds = self.deadman_seconds
        return None if seconds is None or isinstance(seconds, msgspec.UnsetType) else timedelta(seconds=seconds)

    @property
    def is_switch_recorded(self) -> bool:
        """Whether the rent recorded its dead man's switch, or that it has none."""
        return self.deadman_seconds is not msgspec.UNSET

    @property
    def place(self) -> tuple[str, str, str]:
        """The folder in which the guard reports."""
        return self.endpoint, self.bucket, self.prefix

    @property
    def spoken(self) -> str:
        """The folder in words."""
        return str(Bucket(self.endpoint, "", self.bucket, self.prefix, ""))


def of(work: Workload) -> KeptTerms | None:
    """Return the guard's terms for a rent of a workload; None if it has no guard that reports."""
    place = work.guard.bucket if work.guard is not None else None
    if work.guard is None or place is None:
        return None
    is_batch, after = work.kind is WorkloadKind.BATCH, work.guard.deadman
    seconds = None if after is None else int(after.total_seconds())
    terms = work.guard.done_codes, seconds, work.guard.destroy, work.guard.paths, container_digest(work)
    return KeptTerms(is_batch, place.endpoint, place.name, place.prefix, *terms)


def container_digest(work: Workload) -> str:
    """Return the digest of what an array's container has from its rent on, whatever its slot; empty: it ends.

    What the array requires of a host is in it too: another task begins only on a host that it might rent.
    """
    if work.guard is None or not work.guard.keep_host or work.array is None:
        return ""
    start = work.image, work.command, work.onstart, work.runtype, work.template, work.ports, work.ssh_keys, work.slots
    names = tuple(name for name, _ in work.values)
    alike = (work.name, *start, work.environment, work.env_from, names, work.guard, work.requirements)
    return hashlib.sha256(repr(alike).encode()).hexdigest()[:16]


def variables(work: Workload, index: int) -> dict[str, str]:
    """Return the variables of a container that another slot of the workload has with another value."""
    own = {name for name, _ in (*work.environment, *work.env_from, *work.values)}
    return {**({} if SLOT in own else {SLOT: str(index)}), **dict(work.values_of(index))}


def text(work: Workload | None) -> str | None:
    """Return these terms as the ledger has them; None for a workload without a guard that reports."""
    terms = of(work) if work is not None else None
    return None if terms is None else msgspec.json.encode(terms).decode()


def recorded(lease: Lease, work: Workload | None) -> Lease:
    """Return the lease of a rent with the terms that its guard was given: those of the workload at the rent."""
    terms = text(work) if lease.guard_run is not None else None
    return lease if terms is None or lease.guard_terms is not None else replace(lease, guard_terms=terms)


def read(lease: Lease) -> KeptTerms | None:
    """Return the terms that a lease's guard was given; None if they were not recorded, or by a later release."""
    try:
        return None if lease.guard_terms is None else msgspec.json.decode(lease.guard_terms, type=KeptTerms)
    except msgspec.MsgspecError:
        return None


def least_silence(lease: Lease) -> timedelta:
    """Return the shortest silence of the daemon after which the switch of a lease's guard fires.

    The longest timedelta stands for a lease without a guard or without a switch.
    """
    terms = read(lease)
    if lease.guard_run is None:
        return timedelta.max
    if terms is None or not terms.is_switch_recorded:
        return sign_of_life.SHORTEST
    return timedelta.max if terms.deadman is None else terms.deadman
