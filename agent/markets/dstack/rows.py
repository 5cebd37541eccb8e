"""The JSON of the server -> rows; structs name only the fields used.

Invariants:
1. A bad row of an offer is dropped. A run stays even if a figure of it is unreadable; one without a readable id or name
   refuses the whole listing, since a part of a listing would look like lost instances.
2. A body may hold a workload's environment, and the server's own user may hold keys: no error quotes one.
"""

from typing import Any, NamedTuple, TypeVar

import msgspec

from agent.markets import market_errors, text, tolerant_rows

_MOST_GB = 1e6
_MOST_ID = 64


class Gpu(msgspec.Struct):
    """One GPU of a machine."""

    name: str = ""
    memory_mib: int = 0
    vendor: str | None = None


class Disk(msgspec.Struct):
    """The disk of a machine."""

    size_mib: int = 0


class Resources(msgspec.Struct):
    """The GPUs and the disk of a machine, and whether it is a spot machine."""

    gpus: list[Gpu] = msgspec.field(default_factory=list)
    spot: bool = False
    disk: Disk | None = None


class InstanceType(msgspec.Struct):
    """A type of machine, as the cloud names it."""

    name: str = ""
    resources: Resources = msgspec.field(default_factory=Resources)


class Offer(msgspec.Struct):
    """One row of a plan."""

    backend: str
    region: str
    price: float
    instance: InstanceType
    availability: str = ""


class Provisioned(msgspec.Struct):
    """The machine that a cloud gave to a run, with its price in dollars per hour."""

    backend: str | None = None
    region: str | None = None
    price: float | None = None
    instance_type: InstanceType | None = None
    hostname: str | None = None
    instance_id: str | None = None
    """The cloud's own id of it. The server's record of the machine lacks it."""


class Probe(msgspec.Struct):
    """How often in a row the page of a service has answered the server."""

    success_streak: int = 0


class Submission(msgspec.Struct):
    """The newest attempt of the one job of a run."""

    id: str | None = None
    status: str | None = None
    finished_at: str | None = None
    termination_reason: str | None = None
    termination_reason_message: str | None = None
    exit_status: int | None = None
    job_provisioning_data: Provisioned | None = None
    probes: list[Probe] | None = None


class Range(msgspec.Struct):
    """A range with a least figure."""

    min: float | None = None


class AskedDisk(msgspec.Struct):
    """The disk that was asked for."""

    size: Range | None = None


class AskedGpu(msgspec.Struct):
    """The GPUs that were asked for."""

    name: list[str] | None = None


class Asked(msgspec.Struct):
    """The resources that were asked for."""

    disk: AskedDisk | None = None
    gpu: AskedGpu | None = None

    @property
    def card(self) -> str:
        """The one GPU that was asked for by its name; empty if none or several were."""
        asked = (self.gpu.name if self.gpu is not None else None) or []
        return asked[0] if len(asked) == 1 else ""

    @property
    def disk_gb(self) -> float | None:
        """Gigabytes of disk, 0 if none were asked for; None if the figure is none of a disk."""
        size = self.disk.size if self.disk is not None else None
        asked = (size.min if size is not None else None) or 0.0
        return asked if 0 <= asked < _MOST_GB else None


class Configuration(msgspec.Struct):
    """The configuration in an order."""

    type: str | None = None
    backends: list[str] | None = None
    regions: list[str] | None = None
    instance_types: list[str] | None = None
    max_price: float | None = None
    spot_policy: str | None = None
    tags: dict[str, str] | None = None
    resources: Asked | None = None
    fleets: list[Any] | None = None
    probes: list[Any] | None = None

    @property
    def probe_seconds(self) -> int:
        """The most seconds from one answer of the page of a service to the next, by its order; 0 if it does not say."""
        told = [each for each in self.probes or () if isinstance(each, dict)]
        spans = [(each.get("interval"), each.get("timeout")) for each in told]
        return max((one + other for one, other in spans if isinstance(one, int) and isinstance(other, int)), default=0)

    @property
    def fleet_names(self) -> frozenset[str]:
        """The fleets in which the run may start."""
        names = (each.get("name") if isinstance(each, dict) else each for each in self.fleets or ())
        return frozenset(name for name in names if isinstance(name, str))


class RunSpec(msgspec.Struct):
    """An order of a run."""

    run_name: str | None = None
    configuration: Configuration = msgspec.field(default_factory=Configuration)


class Run(msgspec.Struct):
    """One run."""

    id: str
    run_spec: RunSpec
    status: str | None = None
    submitted_at: str | None = None
    termination_reason: str | None = None
    latest_job_submission: Submission | None = None
    deleted: bool | None = None

    @property
    def name(self) -> str:
        """Its name, unique among the active runs of the project."""
        return self.run_spec.run_name or ""


class Machine(msgspec.Struct):
    """One machine of the project, of a run or without one."""

    id: str
    name: str = ""
    status: str | None = None
    fleet_name: str | None = None
    backend: str | None = None
    region: str | None = None
    price: float | None = None
    instance_type: InstanceType | None = None
    created: str | None = None
    hostname: str | None = None


class Backend(msgspec.Struct):
    """A cloud whose keys the server has."""

    name: str = ""


class Project(msgspec.Struct):
    """The project, with its clouds."""

    project_id: str
    project_name: str | None = None
    backends: list[Backend] | None = None


class Plan(NamedTuple):
    """The offers of a plan, and how many more the server has."""

    offers: list[Offer]
    beyond: int


class Target(msgspec.Struct):
    """What an event is about."""

    type: str = ""
    id: str = ""
    name: str = ""


class Event(msgspec.Struct):
    """An event of the server."""

    targets: list[Target] = msgspec.field(default_factory=list)


class LogLine(msgspec.Struct):
    """A piece of a job's output."""

    message: str = ""


def plan(raw: bytes) -> Plan:
    """Return the readable offers of the first job of a plan, and how many there are in all.

    Raises:
        Malformed: the body is no plan.
    """
    plans = tolerant_rows.rows(raw, "job_plans", "The plan")
    first = plans[0] if plans and isinstance(plans[0], dict) else {}
    found, total = first.get("offers"), first.get("total_offers")
    if not isinstance(found, list):
        raise market_errors.Malformed("The plan of dstack has no list of offers; try again later.")
    beyond = total - len(found) if isinstance(total, int) else 0
    return Plan(list(tolerant_rows.readable(found, Offer, "The plan")), max(beyond, 0))


def runs(raw: bytes) -> list[Run]:
    """Return a page of runs. Raises: Malformed, also for one without a readable id or name."""
    what = "The listing of runs"
    return [_named(tolerant_rows.row(row, Run, what)) for row in tolerant_rows.bare_rows(raw, what)]


def run(raw: bytes) -> Run:
    """Return the one run of an answer. Raises: Malformed."""
    return _named(tolerant_rows.row(tolerant_rows.document(raw, "The run"), Run, "The answer"))


def machines(raw: bytes) -> list[Machine]:
    """Return a page of machines. Raises: Malformed, also for one without a readable id."""
    what = "The listing of machines"
    return [_with_id(tolerant_rows.row(row, Machine, what)) for row in tolerant_rows.bare_rows(raw, what)]


def project(raw: bytes) -> Project:
    """Return the project. Raises: Malformed."""
    return tolerant_rows.row(tolerant_rows.document(raw, "The project"), Project, "The answer")


def events(raw: bytes) -> list[Event]:
    """Return the readable events of a page. Raises: Malformed."""
    return list(tolerant_rows.readable(tolerant_rows.bare_rows(raw, "The list of events"), Event, "The events"))


def log_lines(raw: bytes) -> list[LogLine]:
    """Return the readable pieces of a log. Raises: Malformed."""
    return list(tolerant_rows.readable(tolerant_rows.rows(raw, "logs", "The log"), LogLine, "The log"))


def _named(row: Run) -> Run:
    if not row.name or text.clean(row.name, _MOST_ID) != row.name:
        raise market_errors.Malformed("dstack showed a run without a readable name; the answer is refused.")
    return _with_id(row)


_WithId = TypeVar("_WithId", Run, Machine)


def _with_id(row: _WithId) -> _WithId:
    if not row.id or text.clean(row.id, _MOST_ID) != row.id:
        raise market_errors.Malformed("dstack showed a row without a readable id; the answer is refused.")
    return row
