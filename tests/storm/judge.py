"""What must hold when a storm is over, judged from the market's truth and the program's own ledger."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent.markets import labels

SHARE = 0.02
CENT = 0.01
LISTED = {
    "vast": ("GET", "/instances"),
    "runpod": ("GET", "/v2/pods"),
    "mithril": ("GET", "/v2/spot/bids"),
    "dstack": ("POST", "/api/runs/list"),
}
WAITING = frozenset({"Open", "Paused"})
"""States of a bid without a machine: it fills no slot."""
WORK = "train"
"""The workload, which a short label does not name."""
WRITES = frozenset({"PUT", "POST", "PATCH", "DELETE"})
ALONE = 3600.0
"""Seconds an hour."""


@dataclass
class Watched:
    """The observations of one market during the storm: `label_of` is the first label of each contract."""

    market: str
    foreign: str = ""
    label_of: dict[str, str] = field(default_factory=dict)
    killed_at: list[float] = field(default_factory=list)
    charges: list[tuple[float, float]] = field(default_factory=list)
    self_ended: list[str] = field(default_factory=list)
    faults: int = 0
    lies: int = 0

    def see(self, truth: Mapping[str, Any]) -> None:
        """Remember the labels under which contracts began, and the charges for ours."""
        for row in truth["contracts"]:
            self.label_of.setdefault(str(row["id"]), row["label"] or "")
        self.charges.append((truth["now"], self.charged(truth)))

    def ours(self, truth: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the contracts that began under a label of ours."""
        return [row for row in truth["contracts"] if labels.parse(self.label_of.get(str(row["id"]), "")) is not None]

    def charged(self, truth: Mapping[str, Any]) -> float:
        """Return the dollars charged for ours."""
        return float(sum(sum(row["charged"].values()) for row in self.ours(truth)))

    def rate(self) -> float:
        """Return the highest charge in dollars an hour over half a minute or more."""
        rates = [0.0]
        began = 0
        for place, (now, dollars) in enumerate(self.charges):
            before, charged = self.charges[began]
            if now - before >= 30:
                rates.append((dollars - charged) / (now - before) * ALONE)
                began = place
        return max(rates)

    def dark_seconds(self, truth: Mapping[str, Any]) -> float:
        """Return how long no daemon ran: from each kill to the next daemon's first listing."""
        method, path = LISTED[self.market]
        listed = [
            call["time"]
            for call in truth["calls"]
            if call["method"] == method and call["path"].rstrip("/").endswith(path)
        ]
        dark, lit_at = 0.0, 0.0
        for killed in self.killed_at:
            back = next((at for at in listed if at > killed), truth["now"])
            dark += max(back - max(killed, lit_at), 0.0)
            lit_at = max(back, lit_at)
        return dark


@dataclass(frozen=True)
class Verdict:
    """The figures of one market's storm, and its violations."""

    figures: Mapping[str, float | int]
    wrong: Sequence[str]


def judge(
    seen: Watched, truth: Mapping[str, Any], fleet: Mapping[str, Any], verified: tuple[int, str], beyond: float = 0.0
) -> Verdict:
    """Return what came of a storm: `fleet` is what `gpubid fleet --json` printed, `verified` how `verify` ended.

    `beyond` are the dollars that may count after the ends of leases that nobody watched.
    """
    ours = seen.ours(truth)
    live = [row for row in ours if row["ended"] is None]
    known = {lease["instance"] for lease in fleet["leases"]}
    doubted = {doubt["intent"] for doubt in fleet["in_doubt"]}
    orphans = [row for row in live if str(row["id"]) not in known and _intent(seen, row) not in doubted]
    rents = Counter(_intent(seen, row) for row in ours)
    doubles = [intent for intent, count in rents.items() if count > 1]
    dark = seen.dark_seconds(truth)
    charged, spend, rate = seen.charged(truth), float(fleet["spent_month_dollars"]), seen.rate()
    figures: dict[str, float | int] = {
        "kills": len(seen.killed_at),
        "faults": seen.faults,
        "field lies": seen.lies,
        "rents": len(ours),
        "orphans": len(orphans),
        "doubles": len(doubles),
        "charged $": charged,
        "counted $": spend,
        "dark minutes": dark / 60,
        "rate $/h": rate,
        "beyond ends $": beyond,
        "allowed $": SHARE * charged + dark / ALONE * rate + CENT,
    }
    wrong = [
        *(f"instance {row['id']} bills and is in no ledger" for row in orphans),
        *(f"intent {intent} was rented {rents[intent]} times" for intent in doubles),
        *_wrong_slots(seen, live, fleet),
        *_foreign(seen, truth),
        *(f"a daemon ended by itself: {line}" for line in seen.self_ended),
    ]
    if not -figures["allowed $"] <= spend - charged <= figures["allowed $"] + beyond:
        wrong.append(
            f"${spend:.4f} was counted and ${charged:.4f} charged, more apart than ${figures['allowed $']:.4f}"
            f" and ${beyond:.4f} beyond ends"
        )
    if verified[0] != 0:
        wrong.append(f"ledger verify ended with {verified[0]}: {verified[1].strip()[:300]}")
    return Verdict(figures, wrong)


def _intent(seen: Watched, row: Mapping[str, Any]) -> str:
    label = labels.parse(seen.label_of[str(row["id"])])
    return label.intent_id if label is not None else ""


def _wrong_slots(seen: Watched, live: Sequence[Mapping[str, Any]], fleet: Mapping[str, Any]) -> Iterator[str]:
    """Yield each slot that runs twice in calm weather, except those that wait for a person."""
    held = {lease["instance"] for lease in fleet["leases"] if lease["is_held"] or lease["state"] == "releasing"}
    slots = Counter(
        f"{label.slot.workload or WORK}/{label.slot.index}"
        for row in live
        if str(row["id"]) not in held
        and row.get("status") not in WAITING
        and (label := labels.parse(seen.label_of[str(row["id"])])) is not None
    )
    moving = {lease["slot"] for lease in fleet["leases"] if lease["state"] == "starting"}
    yield from (
        f"slot {slot} is filled {count} times" for slot, count in slots.items() if count > 1 and slot not in moving
    )


def _foreign(seen: Watched, truth: Mapping[str, Any]) -> Iterator[str]:
    """Yield that the instance which the owner rented by hand was written to."""
    calls = [f"{call['method']} {call['path']}" for call in truth["calls"] if call["method"] in WRITES]
    touched = [call for call in calls if seen.foreign in call.rstrip("/").split(" ", 1)[1].split("/")]
    if touched:
        yield f"the foreign instance {seen.foreign} was written to: {', '.join(touched[:3])}"
    row = next(row for row in truth["contracts"] if str(row["id"]) == seen.foreign)
    if row["ended"] is not None and not touched:
        yield f"the foreign instance {seen.foreign} is gone"
