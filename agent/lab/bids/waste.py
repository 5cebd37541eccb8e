"""The parts of a bill: useful time, and each kind of waste. The parts add up to the bill.

A run is a span in which one container runs. Its first `restore` is loading; the time after that is useful, on one
contract at a time: while an older run still works, the younger one idles. A lost run is useful up to its last
checkpoint, and the work after that is lost. A run that we stopped ourselves, or that still runs, is useful to its end
(agent/decide/accounting/meter.py counts in the same way).
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from agent.domain.work.workload import Checkpoint, CheckpointPlace
from agent.simulator.instances.billing import Rates, Turn

HOUR = 3600.0
KINDS = ("useful", "lost", "loading", "paused", "traffic", "idle")
"""Useful work; work lost to interruptions; loading and restoring; disks of stopped instances; traffic; idle GPUs."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A span without a change of a contract, epoch seconds."""

    start: float
    end: float
    rates: Rates
    is_running: bool
    holds_gpu: bool

    def dollars(self, start: float, end: float) -> float:
        """Return the cost of GPUs and disk within [start, end]."""
        seconds = max(min(end, self.end) - max(start, self.start), 0.0)
        return (self.rates.gpu + self.rates.disk) * seconds / HOUR

    @property
    def traffic_dollars(self) -> float:
        """The cost of its downloads."""
        return self.rates.down_gb * self.rates.down_price * (self.end - self.start) / HOUR


@dataclass(frozen=True, slots=True)
class Run:
    """A span with a running container, epoch seconds. `is_lost` unless we ended it or it still runs."""

    contract_id: int
    start: float
    end: float
    is_lost: bool


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a contract's bill within a span, epoch seconds: dollars of one kind, and the DLPerf of useful work."""

    contract_id: int
    kind: str
    start: float
    end: float
    dollars: float
    dlperf: float = 0.0

    @property
    def useful_hours(self) -> float:
        """Hours of useful work in it."""
        return (self.end - self.start) / HOUR if self.kind == "useful" else 0.0


@dataclass(slots=True)
class Split:
    """Dollars by kind, and their result: useful hours, and useful DLPerf-hours."""

    dollars: dict[str, float] = field(default_factory=lambda: dict.fromkeys(KINDS, 0.0))
    useful_hours: float = 0.0
    useful_dlperf_hours: float = 0.0

    @property
    def bill(self) -> float:
        """Everything that was paid."""
        return sum(self.dollars.values())


def split(found: Iterable[Part]) -> Split:
    """Return the sums of the parts of a bill."""
    total = Split()
    for part in found:
        total.dollars[part.kind] += part.dollars
        total.useful_hours += part.useful_hours
        total.useful_dlperf_hours += part.useful_hours * part.dlperf
    return total


def parts(
    turns: Sequence[Turn],
    speeds: Mapping[int, float],
    stops: Collection[tuple[int, float]],
    checkpoint: Checkpoint,
    end: float,
) -> Iterator[Part]:
    """Yield the parts of a bill, up to `end`.

    `turns` are the simulator's billing records. `speeds` are DLPerf by contract. `stops` are the contracts that we
    ended, with the instants.
    """
    stretches = _stretches(turns, end)
    for contract_id, contract in stretches.items():
        for stretch in contract:
            yield Part(contract_id, "traffic", stretch.start, stretch.end, stretch.traffic_dollars)
            if not stretch.is_running:
                yield from _at_rest(contract_id, stretch)
    busy_until = float("-inf")
    for run in sorted(runs(stretches, stops, end), key=lambda each: (each.start, each.contract_id)):
        restored = min(run.start + checkpoint.restore.total_seconds(), run.end)
        begins = min(max(restored, busy_until), run.end)
        ends = begins + _kept(run.end - begins, checkpoint) if run.is_lost else run.end
        for kind, first, last in (
            ("loading", run.start, restored),
            ("idle", restored, begins),
            ("useful", begins, ends),
            ("lost", ends, run.end),
        ):
            yield from _of_run(stretches[run.contract_id], run.contract_id, kind, (first, last), speeds)
        busy_until = max(busy_until, run.end)


def _at_rest(contract_id: int, stretch: Stretch) -> Iterator[Part]:
    hours = (stretch.end - stretch.start) / HOUR
    kind = "loading" if stretch.holds_gpu else "paused"
    yield Part(contract_id, kind, stretch.start, stretch.end, stretch.rates.disk * hours)
    yield Part(contract_id, "idle", stretch.start, stretch.end, stretch.rates.gpu * hours)


def _of_run(
    contract: Iterable[Stretch], contract_id: int, kind: str, span: tuple[float, float], speeds: Mapping[int, float]
) -> Iterator[Part]:
    """Yield a span of one run, with a part for each stretch that it overlaps."""
    for stretch in contract:
        first, last = max(span[0], stretch.start), min(span[1], stretch.end)
        if stretch.is_running and last > first:
            dlperf = speeds[contract_id] if kind == "useful" else 0.0
            yield Part(contract_id, kind, first, last, stretch.dollars(first, last), dlperf)


def _kept(seconds: float, checkpoint: Checkpoint) -> float:
    interval = 0.0 if checkpoint.place is CheckpointPlace.NONE else checkpoint.interval.total_seconds()
    return seconds // interval * interval if interval > 0 else 0.0


def runs(stretches: Mapping[int, Sequence[Stretch]], stops: Collection[tuple[int, float]], end: float) -> Iterable[Run]:
    """Yield every run of every contract."""
    for contract_id, contract in stretches.items():
        began: float | None = None
        for stretch in contract:
            if stretch.is_running and began is None:
                began = stretch.start
            if not stretch.is_running and began is not None:
                is_lost = (contract_id, stretch.start) not in stops
                yield Run(contract_id, began, stretch.start, is_lost)
                began = None
        if began is not None:
            last = contract[-1].end
            yield Run(contract_id, began, last, is_lost=last < end and (contract_id, last) not in stops)


def _stretches(turns: Sequence[Turn], end: float) -> dict[int, list[Stretch]]:
    """Return the history of each contract, without spans of zero length."""
    by_contract: dict[int, list[Turn]] = defaultdict(list)
    for turn in turns:
        by_contract[turn.contract_id].append(turn)
    return {contract_id: list(_spans(mine, end)) for contract_id, mine in by_contract.items()}


def _spans(turns: Sequence[Turn], end: float) -> Iterable[Stretch]:
    ends = [following.at for following in turns[1:]] + [end]
    for turn, until in zip(turns, ends, strict=True):
        if not turn.is_end and min(until, end) > turn.at:
            yield Stretch(turn.at, min(until, end), turn.rates, turn.is_running, turn.holds_gpu)
