"""No lookahead: if noise replaces the future of a course, the proposals up to that point must be the same.

Any strategy must pass three checks. The same view gives the same proposals twice. Another future changes no proposal
before it. A course that is run again after other courses gives the same proposals as at first.

Invariants:
1. Only the result of `propose` is trusted. State kept between calls, a course read without the view, and random numbers
   all show as a difference.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from agent.decide.strategy import Proposal, Strategy, Tuned, View
from agent.domain import money
from agent.domain.market import gpu
from agent.domain.market.gpu import GpuModel
from agent.domain.work.deadline import Deadline, ProgressSign
from agent.domain.work.workload import Checkpoint, CheckpointPlace, Requirements, Workload, WorkloadKind
from agent.lab.engine.engine import Engine
from agent.lab.engine.lab_job import Job
from agent.lab.engine.memory_market import Exchange, Pool
from agent.lab.traces import course as courses
from agent.lab.traces.course import Course
from agent.lab.workers.lab_workers import LocalWorkers, Workers

CUTS = (0.25, 0.5, 0.75)
"""Shares of a course after which its future is replaced."""
START = datetime(2026, 11, 20, tzinfo=UTC)
STEP = timedelta(minutes=5)
GPU = gpu.model("V100")
LINE = "hours done: {hours}"
HOURS = 12.0
WORK_HOURS = 8.0
DLPERFS = (100.0, 97.0, 90.0, 80.0)
NOISE = "noise"
ALONE = LocalWorkers(1)


@dataclass(frozen=True, slots=True)
class Finding:
    """A decision that differed: its place and time, and both proposals."""

    rule: str
    course: str
    at: datetime
    first: tuple[str, ...]
    then: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a check: how many proposals were compared over how many futures, and the first that differed."""

    strategy: str
    compared: int
    futures: int
    finding: Finding | None = None


@dataclass(slots=True)
class _Watched:
    """A strategy that gets every view twice, and whose proposals are recorded."""

    inner: Strategy[Any]
    seen: list[tuple[datetime, tuple[Proposal, ...]]] = field(default_factory=list)
    twice: tuple[datetime, tuple[Proposal, ...], tuple[Proposal, ...]] | None = None

    @property
    def params(self) -> Any:  # noqa: ANN401 - the type of the strategy's own numbers
        return self.inner.params

    def propose(self, view: View, params: Any, /) -> Sequence[Proposal]:  # noqa: ANN401 - as above
        first, second = tuple(self.inner.propose(view, params)), tuple(self.inner.propose(view, params))
        if first != second and self.twice is None:
            self.twice = view.now, first, second
        self.seen.append((view.now, first))
        return first


def drawn(count: int = 3) -> dict[str, Course]:
    """Return seeded courses, by name, in which capacity comes and goes and prices change."""
    return {f"drawn {number}": _drawn(f"lookahead-{number}") for number in range(count)}


def _drawn(seed: str) -> Course:
    course = courses.drawn(seed, START, HOURS)
    lots = random.Random(f"{seed}/prices")
    floors = tuple(course.floors[0].scaled(lots.uniform(0.7, 1.6)) for _ in course.available)
    return replace(course, floors=floors)


@dataclass(frozen=True, slots=True)
class _Part:
    """One kind of work on one course."""

    name: str
    course: Course
    work: Workload


@dataclass(frozen=True, slots=True)
class _Looking:
    """The work of a check: each comparison of a part with the number of its proposals, up to the first difference."""

    def done(self, chosen: Tuned, part: _Part) -> list[tuple[Finding | None, int]]:
        found = []
        for row in _checked(chosen, part.name, part.course, part.work):
            found.append(row)
            if row[0] is not None:
                break
        return found

    def is_true(self, chosen: Tuned, part: _Part, found: Sequence[tuple[Finding | None, int]]) -> bool:
        return found[0] == next(_checked(chosen, part.name, part.course, part.work))


def check(chosen: Tuned, over: Mapping[str, Course], workers: Workers = ALONE) -> Verdict:
    """Return whether a strategy decides by the past alone, on these courses."""
    parts = [
        _Part(f"{name}, {work.kind.value}", path, work)
        for name, path in over.items()
        for work in (_service(path), _batch(path))
    ]
    compared = futures = 0
    for found in workers.map(_Looking(), chosen, parts):
        for finding, count in found:
            compared, futures = compared + count, futures + 1
            if finding is not None:
                return Verdict(chosen.name, compared, futures, finding)
    return Verdict(chosen.name, compared, futures)


def _checked(chosen: Tuned, name: str, path: Course, work: Workload) -> Iterator[tuple[Finding | None, int]]:
    first = _lived(chosen, path, work)
    yield _moody(first, name), len(first.seen)
    for share in CUTS:
        cut = int(len(path.available) * share)
        until = path.start + cut * path.gap
        other = _lived(chosen, _noised(path, cut, f"{NOISE}/{name}/{share}"), work)
        known = [row for row in first.seen if row[0] < until]
        yield _differs("another future", name, known, [row for row in other.seen if row[0] < until]), len(known)
    again = _lived(chosen, path, work)
    yield _differs("the same course again", name, first.seen, again.seen), len(first.seen)


def _moody(lived: _Watched, name: str) -> Finding | None:
    if lived.twice is None:
        return None
    at, first, then = lived.twice
    return Finding("the same view twice", name, at, _sentences(first), _sentences(then))


def _differs(
    rule: str,
    name: str,
    first: Sequence[tuple[datetime, tuple[Proposal, ...]]],
    then: Sequence[tuple[datetime, tuple[Proposal, ...]]],
) -> Finding | None:
    for (at, one), (later, other) in zip(first, then, strict=False):
        if (at, one) != (later, other):
            return Finding(rule, name, min(at, later), _sentences(one), _sentences(other))
    if len(first) != len(then):
        rest = (first if len(first) > len(then) else then)[min(len(first), len(then))]
        return Finding(rule, name, rest[0], _sentences(rest[1]), ())
    return None


def _sentences(proposals: Sequence[Proposal]) -> tuple[str, ...]:
    return tuple(
        f"{each.slot}: {each.kind.value if each.kind else 'hold'}"
        + (f" at {each.bid}" if each.bid is not None else "")
        + (f" host {each.candidate.offer.host_id} at {each.candidate.way.rate}" if each.candidate is not None else "")
        + f" ({each.reason.code})"
        for each in proposals
    )


def _lived(chosen: Tuned, path: Course, work: Workload) -> _Watched:
    """Return a strategy's proposals on a course, to its end."""
    watched = _Watched(chosen.strategy)
    job = Job(WORK_HOURS if work.deadline is not None else 1e6, work.checkpoint.interval, work.checkpoint.restore)
    market = Exchange(Pool(path, GPU, DLPERFS), "lookahead", path.start, job)
    tuned = {work.strategy: replace(chosen, strategy=cast("Strategy[Any]", watched))}
    engine = Engine(market, (work,), tuned, path.start)
    until = path.start + len(path.available) * path.gap
    while market.now < until and job.done_at is None:
        engine.cycle(market.now)
        market.advance(min(market.now + STEP, until))
    return watched


def _noised(path: Course, cut: int, seed: str) -> Course:
    """Return a course whose ticks from `cut` on are drawn again: capacity, and prices of up to thrice the old ones."""
    lots = random.Random(seed)
    most = max(path.available, default=0) or 1
    floors = list(path.floors) if len(path.floors) == len(path.available) else [path.floors[0]] * len(path.available)
    rest = range(cut, len(path.available))
    return replace(
        path,
        available=(*path.available[:cut], *(lots.randint(0, most) for _ in rest)),
        floors=(*floors[:cut], *(floors[tick].scaled(lots.uniform(0.3, 3.0)) for tick in rest)),
    )


def _service(path: Course) -> Workload:
    return _work(path, "service", slots=2)


def _batch(path: Course) -> Workload:
    by = path.start + min(timedelta(hours=WORK_HOURS * 1.4), len(path.available) * path.gap)
    return _work(
        path,
        "batch",
        kind=WorkloadKind.BATCH,
        deadline=Deadline(WORK_HOURS, by, GpuModel(GPU), sign=ProgressSign.LOG, line=LINE),
    )


def _work(path: Course, name: str, **changes: Any) -> Workload:  # noqa: ANN401 - any field of a workload
    workload = Workload(
        name=name,
        image="lab",
        max_price=money.UsdPerHour(2 * path.ask.micros),
        strategy="checked",
        requirements=Requirements(gpu_models=(GPU,)),
        image_gb=1.0,
        checkpoint=Checkpoint(timedelta(minutes=15), timedelta(minutes=1), 0.0, CheckpointPlace.REMOTE),
    )
    return replace(workload, **changes)
