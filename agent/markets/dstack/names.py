"""The server's names of GPUs, places and runs -> our models, pools and labels.

Invariants:
1. A model has the name that other markets give it. The server shows no bus: an "A100" is neither an "A100 SXM4" nor an
   "A100 PCIE", and only a workload that names the model "A100" matches it.
2. A pool's id can be read back: it contains everything that an order needs. Two cards are never one pool.
3. A run's name is made of our label: it has no room for the workload, and the whole label is in a tag of the run. The
   name finds a run, and only name and tag together prove that it is ours.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from agent.domain import card_benchmarks
from agent.domain.market import card_memory, gpu, host
from agent.domain.market.gpu import GpuModel
from agent.domain.market.label import Label
from agent.markets import labels, market_errors, text, tolerant_rows
from agent.markets.dstack import figures, rows

TAG = "gpubid"
_ALIASES = {
    "A4000": "RTX A4000",
    "A4500": "RTX A4500",
    "A5000": "RTX A5000",
    "A6000": "RTX A6000",
    "H100NVL": "H100 NVL",
    "H200NVL": "H200 NVL",
    "RTX4070TISUPER": "RTX 4070S TI",
    "RTXPRO4500": "RTX PRO 4500",
    "RTXPRO6000": "RTX PRO 6000",
}
_SLOWEST = {"A100": "A100 PCIE", "H100": "H100 PCIE", "RTX PRO 6000": "RTX PRO 6000 MAX Q"}
"""The form with the lowest benchmark, for cards whose bus or cooling is not shown."""
_SMALLEST_SHARE = 0.45
"""A card may have half the memory of the largest of its model (A100, V100), and a server may show a little less."""
_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9_. -]{0,63}")
_MOST_SLOT = 9_999
_PARTS = 3
_SPOT = "spot"
_SHARES, _SHARED = "gcp", "n1-"
"""Google attaches T4, P4, P100 and V100 to the same types of machines."""
_RUN_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def model(name: str) -> GpuModel:
    """Return our name of a GPU; empty if the server shows none."""
    own = text.clean(name, 64)
    return gpu.model(_ALIASES.get(own.upper(), own))


def dlperf(card: GpuModel) -> float:
    """Return the benchmark of one GPU, of the slowest bus if the bus is not shown; 0 if it is unknown."""
    return card_benchmarks.dlperf(card) or card_benchmarks.dlperf(GpuModel(_SLOWEST.get(card, "")))


def least_memory_mb(models: Sequence[GpuModel]) -> int:
    """Return a memory that every card of these models has; 0 if one of them is unknown, or without models."""
    known = [
        card_memory.GIGABYTES.get(card) or card_memory.GIGABYTES.get(GpuModel(_SLOWEST.get(card, "")))
        for card in models
    ]
    least = min((each or 0 for each in known), default=0)
    return round(least * _SMALLEST_SHARE * figures.MB_PER_GB)


@dataclass(frozen=True, slots=True)
class Pool:
    """The machines of one type that a cloud rents in one of its regions.

    `card` is the server's name of the GPU where a type alone does not say it; else it is empty.
    """

    backend: str
    region: str
    instance_type: str
    card: str = ""
    is_spot: bool = False

    @property
    def host_id(self) -> str:
        """The pool as a host's id: no machine is named before a rent."""
        return host.POOL + self.offer_id

    @property
    def offer_id(self) -> str:
        """The id of the pool's one offer."""
        parts = (self.backend, self.region, self.instance_type, self.card, _SPOT if self.is_spot else "")
        return "/".join(part.replace(" ", "+") for part in parts if part)


def pool_of(
    backend: str | None, region: str | None, instance_type: str | None, card: str = "", *, is_spot: bool = False
) -> Pool | None:
    """Return the pool of a row with a GPU, or None if a part of it is missing or no name."""
    is_shared = backend == _SHARES and (instance_type or "").startswith(_SHARED)
    made = Pool(backend or "", region or "", instance_type or "", card if is_shared else "", is_spot=is_spot)
    parts = made.backend, made.region, made.instance_type, *([made.card] if is_shared else [])
    return made if all(map(_PART.fullmatch, parts)) else None


def pool(host_id: str) -> Pool | None:
    """Return the pool of a host's id, or None for another id."""
    parts = host_id.removeprefix(host.POOL).replace("+", " ").split("/")
    is_spot = parts[_PARTS:][-1:] == [_SPOT]
    named = parts[: len(parts) - is_spot]
    if not host.is_pool(host_id) or not _PARTS <= len(named) <= _PARTS + 1:
        return None
    backend, region, kind, *card = named
    found = pool_of(backend, region, kind, "".join(card), is_spot=is_spot)
    return found if found is not None and found.host_id == host_id else None


def run_name(label: str) -> str:
    """Return the name of a run with our label.

    Raises:
        Rejected: the text is no label of ours, so that the run could never be found again.
    """
    parsed = labels.parse(label)
    if parsed is None or not parsed.slot.workload or parsed.slot.index > _MOST_SLOT:
        raise market_errors.Rejected("invalid_args", "A run at dstack needs a whole label of gpubid.")
    return _name(parsed)


def label(name: str, tags: Mapping[str, str] | None) -> str:
    """Return the label of a run, or its name if name and tag do not prove one."""
    told = (tags or {}).get(TAG, "")
    parsed = labels.parse(told)
    is_proven = parsed is not None and bool(parsed.slot.workload) and _name(parsed) == name
    return told if is_proven else text.clean(name, labels.MAX_LABEL)


def is_ours(run: rows.Run) -> bool:
    """Return whether name and tag of a run prove a label of a gpubid."""
    return label(run.name, run.run_spec.configuration.tags) != run.name


def is_run_id(run_id: str) -> bool:
    """Return whether a text has the form of a run's id; the server answers another one with an error of its own."""
    return _RUN_ID.fullmatch(run_id) is not None


def ordered(order: rows.Configuration) -> Pool | None:
    """Return the pool to which a run was pinned, or None if it was not pinned to one."""
    pinned = [order.backends or [], order.regions or [], order.instance_types or []]
    if not all(len(one) == 1 for one in pinned):
        return None
    card = order.resources.card if order.resources is not None else ""
    backend, region, kind = (one[0] for one in pinned)
    return pool_of(backend, region, kind, card, is_spot=order.spot_policy == _SPOT)


CLOCKS_DIFFER = timedelta(seconds=30)
"""No machine is made, serves a run and becomes idle within so short a time."""


def reused(run: rows.Run, machines: Sequence[rows.Machine]) -> str:
    """Return the id of the machine if a run was placed on one that was there before it; else an empty text.

    Two processes of the server may have written both times, each by its own clock.
    """
    submitted = tolerant_rows.moment(run.submitted_at)
    for machine in machines:
        created = tolerant_rows.moment(machine.created)
        if submitted is not None and created is not None and submitted - created > CLOCKS_DIFFER:
            return f"{host.USED_POOL}{text.clean(machine.name, 64)}"
    return ""


def _name(label: Label) -> str:
    return f"g{label.fleet_id}-{label.slot.index}-{label.intent_id}"
