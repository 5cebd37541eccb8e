"""What differs between a cockpit and the ledger: of a document of the feed, of the page, and of the screen of `top`.

Of the feed every figure is compared to the micro-dollar. The page rounds, so the ledger's figure is rounded in the same
way. `top` dates itself to the second: what grows with time may be any value of that second. The useful share on `top`
may be a minute older than the screen says. The reason of a decision is that of the ledger where it was recorded in the
same cycle. The rate that a sentence on a slot gives for its lease is one that a lease of this slot had within a minute.
Each dollar figure of another sentence is one that anything in the ledger had within a minute.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from agent.domain.money import MICROS
from agent.domain.record.budget import Kind, Window
from agent.domain.record.event import Event
from agent.markets.text import clean
from tests.cockpit.expected import Expected, Row
from tests.cockpit.recent import Recent

Shown = Mapping[str, Any]
NEAR = 1e-9
LONGEST = 600
REASON = re.compile(r"[a-z]+, [a-z_]+: ")
"""The line of `top` that has the selected slot's decision; the first slot is selected."""


def of_document(shown: Shown, ledger: Expected, recent: Recent) -> list[str]:
    """Return what differs in a whole document of the feed."""
    pairs = {
        "running": (shown["running"], ledger.running),
        "wanted": (shown["wanted"], ledger.wanted),
        "in_doubt": (shown["in_doubt"], ledger.in_doubt),
        "slots": ([row["slot"] for row in shown["slots"]], [row.slot for row in ledger.rows]),
        "events": ([_event(row) for row in shown["events"]], [_event_of(each) for each in ledger.events]),
    }
    found = [*of_money(shown["money"], ledger), *_unequal(pairs)]
    for row, of in zip(shown["slots"], ledger.rows, strict=False):
        found += [f"{of.slot} {each}" for each in _of_slot(row, of)]
        found += _of_decision(of.slot, row["decision"], recent) if of.is_configured else []
        found += of_lease(of.slot, row["why"], recent) if of.is_configured else []
    sentences = [
        *(row["sentence"] for row in (*shown["alerts"], *shown["notes"])),
        *(row["why"] for row in shown["slots"]),
    ]
    return found + of_sentences(sentences, recent)


def of_sentences(sentences: Iterable[str], recent: Recent) -> list[str]:
    """Return the dollar figures of sentences that the ledger did not have."""
    return [f"sentence: {each} in {text!r} is not the ledger's" for text in sentences for each in recent.unknown(text)]


def of_lease(slot: str, text: str, recent: Recent) -> list[str]:
    """Return the rate of a sentence on a slot that no lease of this slot had."""
    return [f"{slot} sentence: {each} in {text!r} is no lease's" for each in recent.not_of_lease(slot, text)]


def _of_decision(slot: str, shown: Shown | None, recent: Recent) -> list[str]:
    """Return what differs from the slot's last decision that was recorded by then; it is recorded when it changes."""
    if shown is None:
        return []
    at = datetime.fromisoformat(shown["at"])
    before = [each for each in recent.decisions if str(each.slot) == slot and each.at <= at]
    if not before:
        return []
    last = [each for each in before if each.at == before[0].at]
    alike = [each for each in last if (each.kind, each.reason.code) == (shown["kind"], shown["code"])]
    if not alike and recent.is_whole:
        return [f"{slot} decision: shown {dict(shown)}, ledger {[(each.kind, each.reason.code) for each in last]}"]
    reasons = [clean(each.reason.sentence, LONGEST) for each in alike if each.at == at]
    if reasons and shown["sentence"] not in reasons:
        return [f"{slot} reason: shown {shown['sentence']!r}, ledger {reasons}"]
    return of_sentences([shown["sentence"]], recent)


def of_money(shown: Shown, ledger: Expected) -> list[str]:
    """Return what differs in the money of a document or a beat."""
    pairs: dict[str, tuple[object, object]] = {
        "today": (_micros(shown["today_dollars"]), ledger.today),
        "month": (_micros(shown["month_dollars"]), ledger.month),
        "an hour": (_micros(shown["dollars_per_hour"]), ledger.micros_per_hour),
        "credit": (
            {row["market"]: _micros(row["dollars"]) for row in shown["credit"]},
            dict(ledger.credit),
        ),
        "workloads": (
            {
                row["workload"]: (
                    _micros(row["dollars_per_hour"]),
                    _micros(row["today_dollars"]),
                    row["useful_hours"],
                    row["dollars_per_useful_hour"],
                )
                for row in shown["workloads"]
            },
            {
                name: (work.micros_per_hour, work.today, work.hours, work.dollars_per_hour)
                for name, work in ledger.works.items()
            },
        ),
    }
    names = {Window.DAY: "day_cap_dollars", Window.MONTH: "month_cap_dollars", Window.HOUR: "hour_cap_dollars"}
    pairs |= {name: (_micros(shown[name]), ledger.caps[window]) for window, name in names.items()}
    used = {row["window"]: _micros(row["used_dollars"]) for row in shown["caps"] if row["scope"] == Kind.ACCOUNT.value}
    pairs["committed"] = (used, {window.value: ledger.committed[window] for window in ledger.committed})
    pairs["credit in words"] = (
        {row["market"]: row["sentence"] for row in shown["credit"]},
        dict(ledger.credit_sentences),
    )
    pairs["end of the runway"] = shown["runway_ends"], ledger.runway_ends
    found = _unequal(pairs)
    return (
        found
        if _is_near(shown["runway_hours"], ledger.runway_hours)
        else [
            *found,
            f"runway: shown {shown['runway_hours']}, ledger {ledger.runway_hours}",
        ]
    )


def _of_slot(shown: Shown, row: Row) -> list[str]:
    lead = row.lead
    return _unequal(
        {
            "state": (shown["state"], row.state),
            "is_configured": (shown["is_configured"], row.is_configured),
            "lease": (shown["lease"], lead.lease_id if lead else None),
            "market": (shown["market"], lead.market if lead else None),
            "host": (shown["host"], lead.host_id if lead else None),
            "gpu": (shown["gpu"], str(lead.gpu) if lead else None),
            "gpus": (shown["gpus"], lead.gpus if lead else None),
            "tenure": (shown["tenure"], lead.tenure.value if lead else None),
            "since": (_instant(shown["since"]), _instant(lead.state_since.isoformat()) if lead else ""),
            "an hour": (_micros(shown["dollars_per_hour"]), row.micros_per_hour),
            "bid": (_micros(shown["bid"]), row.bid),
            "floor": (_micros(shown["floor"]), row.floor),
            "ask": (_micros(shown["ask"]), row.ask),
            "useful": (shown["useful_share"], row.useful_share),
        }
    )


def of_page(shown: Shown, ledger: Expected, recent: Recent) -> list[str]:
    """Return what differs on the page, as agent/web/templates/board.html rounds it."""
    runway = "" if ledger.runway_hours is None else _hours(ledger.runway_hours)
    pairs: dict[str, tuple[object, object]] = {
        "running": (shown["running"], f"{ledger.running} of {ledger.wanted} slots"),
        "today": (shown["today"], f"{_dollars(ledger.today, 2)}{_of(ledger.caps[Window.DAY])}"),
        "month": (shown["month"], f"{_dollars(ledger.month, 2)}{_of(ledger.caps[Window.MONTH])}"),
        "an hour": (shown["hour"], f"{_dollars(ledger.micros_per_hour, 3)}{_of(ledger.caps[Window.HOUR])}"),
        "runway": (shown["runway"], runway and f"at this rate {ledger.runway_ends} lasts {runway}"),
        "workloads": (
            [tuple(row) for row in shown["workloads"]],
            [
                (
                    name,
                    _dollars(work.micros_per_hour, 3),
                    _dollars(work.today, 2),
                    f"{work.hours:.2f}",
                    "–" if work.dollars_per_hour is None else f"${work.dollars_per_hour:.4f}",  # noqa: RUF001
                )
                for name, work in sorted(ledger.works.items())
            ],
        ),
        "slots": ([_row_on_page(row) for row in shown["slots"]], [_row_of(row) for row in ledger.rows]),
    }
    found = _unequal(pairs) + of_sentences(shown["sentences"], recent)
    return found + [each for row in shown["slots"] for each in of_lease(row["slot"], row["why"], recent)]


def _row_on_page(shown: Shown) -> tuple[object, ...]:
    prices = [[_micros(value) for value in each] for each in shown["prices"]]
    return shown["slot"], shown["state"], shown["where"], shown["gpu"], shown["pays"], prices


def _row_of(row: Row) -> tuple[object, ...]:
    """Return a slot as the page writes it: every lease, and the last bid, floor and ask that are known of each."""
    name = row.slot if row.is_configured else f"{row.slot} (fills no slot)"
    where = [f"{each.market} {each.host_id} {each.tenure.value}" for each in row.leases]
    if len(row.leases) > 1:
        where = [f"{place}, {each.state.value}" for place, each in zip(where, row.leases, strict=True)]
    gpus = [f"{each.gpus}x {each.gpu}" for each in row.leases]
    pays = [f"${each.billing_rate.dollars:.3f}" for each in row.leases]
    return name, row.state, where, gpus, pays, [list(each) for each in row.trails]


def of_top(screen: Sequence[str], first: Expected, last: Expected, recent: Recent) -> list[str]:
    """Return what differs on the screen of `top`, whose second begins at `first` and ends at `last`."""
    text = "\n".join(screen)
    found = _in_head(screen[0], first)
    found += _in_money(text, first, last)
    for row in first.rows:
        found += _in_row(screen, row, recent)
    found += _in_detail(text, first)
    reasons = [line for line in screen if REASON.match(line)]
    found += of_sentences((*(line for line in screen if line.startswith("! ")), *reasons), recent)
    found += [each for line in reasons for each in of_lease(first.rows[0].slot, line, recent)]
    return found + _in_events(screen, first.events)


def _in_head(line: str, ledger: Expected) -> list[str]:
    wanted = f"{ledger.running} of {ledger.wanted} slot(s) run"
    # A stale figure says instead since when.
    return [] if wanted in line or line.startswith("STALE: ") else [f"head: shown {line!r}, ledger {wanted!r}"]


def _in_money(text: str, first: Expected, last: Expected) -> Iterator[str] | list[str]:
    shown = re.search(r"today \$([\d.]+)( of \$[\d.]+)?, month \$([\d.]+)( of \$[\d.]+)?, now \$([\d.]+)/h(.*)", text)
    if shown is None:
        return ["no money is shown"]
    found = []
    for name, number in (("today", 1), ("month", 3)):
        least, most = (round(getattr(each, name) / MICROS, 4) for each in (first, last))
        if not least - NEAR <= float(shown[number]) <= most + NEAR:
            found.append(f"{name}: shown {shown[number]}, ledger {least} to {most}")
    pairs = {
        "day cap": (shown[2] or "", _of(first.caps[Window.DAY])),
        "month cap": (shown[4] or "", _of(first.caps[Window.MONTH])),
        "an hour": (shown[5], f"{first.micros_per_hour / MICROS:.4f}"),
    }
    runways = [each.runway_hours for each in (first, last)]
    told = re.search(r"runway (\S+ \(.*?\))", shown[6])
    ends = (first.runway_ends, last.runway_ends)
    spans = ["" if each is None else f"{_short(each)} ({end})" for each, end in zip(runways, ends, strict=True)]
    if (told[1] if told else "") not in spans:
        found.append(f"runway: shown {told and told[1]!r}, ledger {spans}")
    return found + _unequal(pairs)


def _in_row(screen: Sequence[str], row: Row, recent: Recent) -> list[str]:
    name = row.slot if row.is_configured else f"{row.slot}?"
    lead = row.lead
    where = f"{lead.market}/{lead.host_id}" if lead else "-"
    bid = "-" if row.bid is None else f"{row.bid / MICROS:.4f}"
    wanted = [name, row.state, where, f"{row.micros_per_hour / MICROS:.4f}", bid]
    lines = [line for line in screen if line.split()[:1] == [name]]
    mine = [line for line in lines if line.split()[:5] == wanted]
    if not mine:
        return [f"{name}: shown {lines}, ledger {wanted}"]
    # Of leases that fill no slot, several have the name of one.
    shown = {_useful(screen, line) for line in mine}
    if any(recent.may_show(name, each) for each in shown):
        return []
    return [f"{name} useful: shown {shown}, ledger {sorted(recent.shares.get(name, ()), key=str)}"]


def _useful(screen: Sequence[str], line: str) -> str:
    """Return the text below the head `useful`."""
    head = next((each for each in screen if each.split()[:1] == ["slot"]), "")
    begins, ends = head.find("useful"), head.find("next")
    return line[begins:ends].strip() if 0 <= begins < ends else ""


def _in_detail(text: str, ledger: Expected) -> list[str]:
    """Return what differs in the prices of the first slot, which is the selected one."""
    row = ledger.rows[0]
    prices = {"bid": row.bid, "floor": row.floor, "ask": row.ask} if row.lead else {}
    wanted = {name: f"{value / MICROS:.4f}" for name, value in prices.items() if value is not None}
    found = re.search(r"^(?:(?:bid|floor|ask) \$.*)$", text, re.MULTILINE)
    shown = dict(re.findall(r"(bid|floor|ask) \$([\d.]+)", found[0])) if found else {}
    if row.lead is not None and f"{row.slot} {row.lead.lease_id}: " not in text:
        return [f"detail: {row.lead.lease_id} is not shown"]
    return _unequal({"detail": (shown, wanted)})


def _in_events(screen: Sequence[str], events: Sequence[Event]) -> list[str]:
    """Return what differs in the newest events: each begins with its time, money, kind and slot."""
    shown = [line for line in screen if re.match(r"\d\d:\d\d:\d\d ", line)]
    wanted = []
    for each in events[: len(shown)]:
        amount = f"${each.amount.dollars:.4f}" if each.amount is not None else ""
        slot = f"{each.workload}/{each.slot}" if each.slot is not None else ""
        where = "/".join(part for part in (each.market, each.host_id) if part)
        cause = each.cause.value if each.cause is not None else ""
        why = clean(each.evidence or each.reason, LONGEST)
        parts = (f"{each.at:%H:%M:%S}", amount, str(each.kind), slot, where, cause, why)
        wanted.append(" ".join(part for part in parts if part))
    if not shown and events:
        return ["no event is shown"]
    if len(wanted) < len(shown):
        return [f"events: shown {len(shown)}, ledger {len(wanted)}"]
    # A line that is too long ends with an ellipsis.
    return [
        f"event: shown {line!r}, ledger {whole!r}"
        for line, whole in zip(shown, wanted, strict=True)
        if line.rstrip() != whole.rstrip() and not whole.startswith(line.rstrip().removesuffix("…") or "-")
    ]


def _event(row: Shown) -> tuple[object, ...]:
    names = ("id", "kind", "slot", "lease", "market", "host", "cause")
    return *(row[name] for name in names), _instant(row["at"]), _micros(row["bid"]), _micros(row["dollars"]), row["why"]


def _event_of(each: Event) -> tuple[object, ...]:
    return (
        each.event_id,
        str(each.kind),
        f"{each.workload}/{each.slot}" if each.slot is not None else None,
        each.lease_id or None,
        each.market or None,
        each.host_id or None,
        each.cause.value if each.cause is not None else None,
        _instant(each.at.isoformat()),
        each.bid.micros if each.bid is not None else None,
        each.amount.micros if each.amount is not None else None,
        clean(each.evidence or each.reason, LONGEST),
    )


def _unequal(pairs: Mapping[str, tuple[object, object]]) -> list[str]:
    return [f"{name}: shown {shown}, ledger {kept}" for name, (shown, kept) in pairs.items() if shown != kept]


def _micros(dollars: float | None) -> int | None:
    return None if dollars is None else round(dollars * MICROS)


def _instant(text: str | None) -> str:
    return (text or "").replace("Z", "+00:00")


def _is_near(shown: float | None, kept: float | None) -> bool:
    return shown == kept or (shown is not None and kept is not None and math.isclose(shown, kept, rel_tol=NEAR))


def _dollars(micros: int, digits: int) -> str:
    return f"${micros / MICROS:.{digits}f}"


def _of(cap: int | None) -> str:
    return "" if cap is None else f" of {_dollars(cap, 2)}"


def _hours(hours: float) -> str:
    """Return a span as the page writes it."""
    return f"{hours:.1f} h" if hours < 48 else f"{hours / 24:.0f} days"


def _short(hours: float) -> str:
    """Return a span as `top` writes it."""
    if hours < 1:
        return f"{hours * 60:.0f}m"
    return f"{hours:.1f}h" if hours < 48 else f"{hours / 24:.0f}d"
