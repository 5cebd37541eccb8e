"""A story as a value: the parts of its world, and every fault and order in it, one entry each.

Each entry can be removed by itself; the others stay the same. That is what lets a failing story be shrunk.
"""

import dataclasses

CALM_FROM = 112
"""From this cycle on nothing more goes wrong."""
BUCKET = "bucket"


@dataclasses.dataclass(frozen=True, slots=True)
class Strike:
    """Something wrong with one exchange or one commit: the `number`th of its `place` in the seed, and `times` in a row.

    `market` is "ledger" for a commit, and `BUCKET` for a call to the bucket of guards. `amount` is the figure of the
    fault: seconds, a factor, a row.
    """

    market: str
    place: str
    number: int
    fault: str
    times: int = 1
    amount: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True)
class Deed:
    """Something that happens before a cycle: a verb of an operator, an edited file, fate. `pick` chooses among many."""

    cycle: int
    name: str
    pick: int = 0
    amount: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True)
class Guarded:
    """The guard of a workload, and the work under it, in few words. Times are in seconds."""

    is_on_disk: bool = False
    """Whether its checkpoints are kept on the disk, beside the bucket's."""
    needs: float = 0.0
    """How long the work runs until it ends; 0 for ever."""
    code: int = 0
    """The exit code of that end."""
    interval: float = 600.0
    """Between two checkpoints, where the daemon advises no other."""
    takes: float = 2.0
    upload: float = 3.0
    final_within: float = 20.0
    deadman: float = 0.0
    """The silence after which its switch fires; 0 for never."""
    accept: str = "off"
    work_hours: float = 6.0
    """How long the work is said to run, where it has a deadline."""
    due_hours: float = 30.0
    """The deadline, from the beginning of the story."""
    is_warned: bool = False
    """Whether its market gives a notice before an eviction."""
    keeps_host: bool = False
    """Whether the host of a finished task goes on with the next one of its array."""


@dataclasses.dataclass(frozen=True, slots=True)
class Health:
    """How a workload is watched, and what befalls its containers. Times are in seconds; 0 for never."""

    serves: bool = False
    """Whether it is a service on a port, which is probed on."""
    silent_after: float = 0.0
    """The running, over all stretches, after which its port closes until its next start."""
    stalled_after: float = 0.0
    hangs_after: float = 0.0
    """The running, over all stretches, after which its work hangs until its next start."""


@dataclasses.dataclass(frozen=True, slots=True)
class Idle:
    """What is done about a workload's idle GPUs. Times are in seconds."""

    then: str
    lasts: float
    after: float = 0.0
    """From each start of a container until its GPUs idle; 0 for never. Under a guard they idle as its work does."""


@dataclasses.dataclass(frozen=True, slots=True)
class Auctions:
    """The market of auctions in a story: what it tells and bills, and what is allowed there."""

    tells: float = 0.0
    """The share of its pools that tell the price to win."""
    bills_notice: bool = True
    """Whether the minutes of a notice are billed."""
    rows: int = 0
    """The rows of a page of a listing; 0 for as many as the market gives."""
    most: float = 0.9
    """What an hour of each workload may cost, and is worth."""
    per_hour: float = 0.0
    """The cap on the rate of the fleet; 0 for none that matters."""


@dataclasses.dataclass(frozen=True, slots=True)
class Clouds:
    """dstack's server in a story, with the clouds behind it."""

    gives_up: float = 0.0
    """The share of the ends that the server gives up although the machine goes on."""
    capacity: int = 3
    """Machines of each type and region."""
    per_hour: float = 0.0
    """The cap on the rate of the fleet; 0 for none that matters."""


@dataclasses.dataclass(frozen=True, slots=True)
class Work:
    """One workload, in few words."""

    name: str
    kind: str
    strategy: str
    slots: int
    markets: tuple[str, ...] = ()
    is_read: bool = False
    """Whether its log shows that it is ready."""
    ends_after: float = 0.0
    """Seconds of running after which a batch is done; 0 for never."""
    guard: Guarded | None = None
    at_once: int = 0
    """The most slots of an array that may be live; 0 if it is none."""
    health: Health | None = None
    idle: Idle | None = None
    fallback_after: float = 0.0
    """Seconds that a slot is down before the clouds are used too; 0 if they are no fallback."""


@dataclasses.dataclass(frozen=True, slots=True)
class Story:
    """Everything about one seed."""

    seed: int
    markets: tuple[str, ...]
    works: tuple[Work, ...]
    poll: float
    demand: float
    """How many rivals come, as a share of a real market's."""
    instances: int
    """The cap on instances; 0 for none."""
    strikes: tuple[Strike, ...] = ()
    deeds: tuple[Deed, ...] = ()
    auctions: Auctions | None = None
    """None where no market of the story has auctions."""
    clouds: Clouds | None = None
    """None where dstack's server is not in the story."""

    @property
    def is_guarded(self) -> bool:
        """Whether any work of it has a guard."""
        return any(work.guard is not None for work in self.works)

    @property
    def is_watched(self) -> bool:
        """Whether any work of it is watched for its health."""
        return any(work.health is not None for work in self.works)
