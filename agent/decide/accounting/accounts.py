"""Sums of spend and waste: dollars per useful hour and per useful DLPerf-hour, and the use of the other hours.

Invariants:
1. The groups of one report add up to its total, in micro-dollars and microseconds.
2. Money by phase is the GPU cost of each lease and day, divided in proportion to time. The shares add up to that cost.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from agent.domain.money import MICROS
from agent.domain.record.account import HOUR, Line, LostWork

PHASES = ("loading", "restoring", "lost", "useful")
NONE = "none"
"""The cause of spend that no interruption wasted."""
BEFORE = "before this ledger"
VOLUME = "network volume"
"""The key of a network volume, which has no GPU and no tenure."""

KEYS: dict[str, Callable[[Line], str]] = {
    "day": lambda line: line.day.isoformat(),
    "week": lambda line: "{}-W{:02d}".format(*line.day.isocalendar()[:2]),
    "month": lambda line: line.day.isoformat()[:7],
    "workload": lambda line: line.workload or BEFORE,
    "market": lambda line: line.market or _without_gpu(line),
    "gpu": lambda line: f"{line.gpus}x {line.gpu}" if line.gpu else _without_gpu(line),
    "tenure": lambda line: VOLUME if line.is_volume else line.tenure.value,
    "lease": lambda line: line.lease_id,
}


def _without_gpu(line: Line) -> str:
    return VOLUME if line.is_volume else BEFORE


@dataclass(frozen=True, slots=True)
class Sum:
    """Money in micro-dollars, time in microseconds, useful work in DLPerf-microseconds; `by_phase` is GPU money."""

    gpu: int = 0
    disk: int = 0
    traffic: int = 0
    paused_disk: int = 0
    paid: int = 0
    loading: int = 0
    restoring: int = 0
    useful: int = 0
    lost: int = 0
    work: float = 0.0
    interruptions: int = 0
    by_phase: Counter[str] = field(default_factory=Counter)

    @property
    def amount(self) -> int:
        """All money."""
        return self.gpu + self.disk + self.traffic

    @property
    def waste(self) -> int:
        """Money that bought nothing: paid time that was not useful, and disks without a running container."""
        return self.paused_disk + sum(self.by_phase[name] for name in PHASES if name != "useful")

    @property
    def per_useful_hour(self) -> float | None:
        """Dollars of all spend per useful hour; None without a useful hour."""
        return self.amount / MICROS / (self.useful / HOUR) if self.useful else None

    @property
    def per_useful_work(self) -> float | None:
        """Dollars of all spend per useful DLPerf-hour; None if no DLPerf was known."""
        return self.amount / MICROS / (self.work / HOUR) if self.work else None

    def plus(self, other: "Sum") -> "Sum":
        """Return the sum of both."""
        return Sum(
            **{name: getattr(self, name) + getattr(other, name) for name in Sum.__dataclass_fields__ if name != _OWN},
            by_phase=Counter({name: self.by_phase[name] + other.by_phase[name] for name in PHASES}),
        )


_OWN = "by_phase"


def grouped(by: str, lines: Sequence[Line], lost_work: Iterable[LostWork] = ()) -> dict[str, Sum]:
    """Return sums by one of `KEYS`, or by cause: the waste by each cause of interruption, the rest under `NONE`."""
    losses = list(lost_work)
    if by == "cause":
        return _by_cause(lines, losses)
    found: dict[str, Sum] = {}
    hits = Counter((loss.lease_id, loss.at.date()) for loss in losses)
    for line in lines:
        key = KEYS[by](line)
        one = replace(of_line(line), interruptions=hits[line.lease_id, line.day])
        found[key] = found.get(key, Sum()).plus(one)
    return dict(sorted(found.items()))


def total(sums: Iterable[Sum]) -> Sum:
    """Return all sums together."""
    whole = Sum()
    for one in sums:
        whole = whole.plus(one)
    return whole


def of_line(line: Line) -> Sum:
    """Return one line as a sum."""
    return Sum(
        gpu=line.gpu_spend.micros,
        disk=line.disk.micros,
        traffic=line.traffic.micros,
        paused_disk=line.paused_disk.micros,
        paid=line.paid,
        loading=line.loading,
        restoring=line.restoring,
        useful=line.useful,
        lost=line.lost,
        work=line.useful * line.dlperf,
        by_phase=_shares(line),
    )


def _shares(line: Line) -> Counter[str]:
    """Return the GPU cost by phase. The last phase gets the rounding error, so that the shares add up."""
    times = [getattr(line, name) for name in PHASES]
    if not line.paid:
        return Counter({"useful": line.gpu_spend.micros})
    found, done, so_far = Counter[str](), 0, 0
    for name, time in zip(PHASES, times, strict=True):
        so_far += time
        upto = line.gpu_spend.micros * so_far // line.paid
        found[name], done = upto - done, upto
    return found


def _by_cause(lines: Sequence[Line], losses: Iterable[LostWork]) -> dict[str, Sum]:
    rest = total(of_line(line) for line in lines)
    leases: dict[str, Sum] = {}
    for line in lines:
        leases[line.lease_id] = leases.get(line.lease_id, Sum()).plus(of_line(line))
    found: dict[str, Sum] = {}
    for loss in losses:
        mine = leases.get(loss.lease_id, Sum())
        time = min(loss.lost, mine.lost)
        money = mine.by_phase["lost"] * time // mine.lost if mine.lost else 0
        one = Sum(gpu=money, paid=time, lost=time, interruptions=1, by_phase=Counter({"lost": money}))
        found[loss.cause.value] = found.get(loss.cause.value, Sum()).plus(one)
    priced = total(found.values())
    left = Sum(
        **{
            name: getattr(rest, name) - getattr(priced, name)
            for name in Sum.__dataclass_fields__
            if name not in {_OWN, "interruptions"}
        },
        by_phase=Counter({name: rest.by_phase[name] - priced.by_phase[name] for name in PHASES}),
    )
    return {**dict(sorted(found.items())), NONE: left}
