"""A story in words for a person: the world, the faults in their order, and the violated points."""

from collections.abc import Iterator

from tests.disasters.life import Verdict
from tests.disasters.sight import Broken
from tests.disasters.story import Deed, Story, Strike

POINTS = {
    0: "a cycle ends by no defect",
    1: "what exists under our label is known",
    2: "no write goes to a foreign instance, no paying request leaves twice, or for too much",
    3: "a healthy lease is released for a true reason",
    4: "the ledger's spend is right and it verifies",
    5: "money stops when told",
    6: "every slot that can run does",
}
FAULTS = {
    "never_left": "finds no connection",
    "lost_before": "is lost on its way",
    "lost_after": "is carried out, and the answer is lost",
    "half": "is carried out, and half an answer comes back",
    "slow": "is answered 8 s late",
    "too_slow": "is carried out and answered 45 s late",
    "throttled": "is refused with a 429",
    "death_before": "is never sent: the process is killed",
    "death_after": "is carried out, and the process is killed before it hears of it",
    "full": "fails: the disk is full",
    "full_after": "takes place, and is told as failed",
    "wrong_id": "is carried out, and the reply names a foreign instance",
    "refused_with_id": "is carried out, and the reply refuses and names a foreign instance",
    "no_id": "is carried out, and the reply names no instance",
    "gone": "is answered: there is no such instance; it is there",
    "refused": "is refused and not carried out",
}


def story(told: Story) -> Iterator[str]:
    """Yield the lines of a story."""
    yield f"seed {told.seed}: {' and '.join(told.markets)}, a poll of {told.poll:g} s, demand x{told.demand:g}"
    for work in told.works:
        guard = f", with {work.guard}" if work.guard is not None else ""
        where = f" on {' and '.join(work.markets)}" if work.markets else ""
        where += f", on clouds after {work.fallback_after:g} s" if work.fallback_after else ""
        ends = f", done after {work.ends_after:g} s" if work.ends_after else ""
        yield f"  {work.name}: {work.kind}, {work.slots} slot(s), strategy {work.strategy}{where}{ends}{guard}"
    for strike in told.strikes:
        yield f"  {_strike(strike)}"
    for deed in told.deeds:
        yield f"  {_deed(deed)}"


def verdict(broken: Broken) -> str:
    """Return what did not hold, in a line."""
    return f"point {broken.point} ({POINTS[broken.point]}) in cycle {broken.cycle}: {broken.sentence}"


def counts(verdicts: list[Verdict]) -> str:
    """Return how often each point was judged, and the least of point 6 in a story that came to its end."""
    totals = [sum(each.judged[point] for each in verdicts) for point in range(6)]
    told = ", ".join(f"{point + 1}: {total:,}" for point, total in enumerate(totals))
    return f"judged {told}"


def _strike(strike: Strike) -> str:
    which = f"number {strike.number}" if strike.times == 1 else f"numbers {strike.number} to {_last(strike)}"
    place = "commit to the ledger" if strike.market == "ledger" else f"{strike.place} on {strike.market}"
    amount = f" ({strike.amount:g})" if strike.fault in {"throttled", "price", "term", "date"} else ""
    said = FAULTS.get(strike.fault, f"is answered with {strike.fault.replace('_', ' ')}")
    return f"{place}, {which}: {said}{amount}"


def _last(strike: Strike) -> int:
    return strike.number + strike.times - 1


def _deed(deed: Deed) -> str:
    return f"before cycle {deed.cycle}: {deed.name.replace('_', ' ')} (pick {deed.pick}, amount {deed.amount:.2f})"
