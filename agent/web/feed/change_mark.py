"""The mark of a document: documents with the same mark differ only by the time that has passed.

| a change | only time |
| --- | --- |
| a slot's lease, state, host, rate, bid, floor or ask | its useful share, and points that leave the last day |
| the kind, code or limit of a decision | its instant, and the figures in its sentence |
| the object or code of an alert or note | the figures in its sentence |
| the rate of spend, a cap, the first end of the runway | money spent, credit left, the hours that they last |
| the first savings | the later ones, and their date |
| a market's listing that failed or came back, an event, a doubt | when a market was listed, when a cycle ended |
"""

from datetime import UTC, datetime

import msgspec

from agent.web.feed.money_model import Money, Savings
from agent.web.feed.read_model import Alert, Fleet
from agent.web.feed.slot_model import Slot

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NO_SAVINGS = Savings(EPOCH, EPOCH, None, None, 0.0, None, 0.0, [])


def mark(fleet: Fleet) -> bytes:
    """Return the encoded document without the values that time alone changes."""
    timeless = msgspec.structs.replace(
        fleet,
        as_of=EPOCH,
        last_cycle_at=None,
        alerts=[_alert(each) for each in fleet.alerts],
        notes=[_alert(each) for each in fleet.notes],
        markets=[msgspec.structs.replace(each, listed_at=None) for each in fleet.markets],
        money=_money(fleet.money),
        slots=[_slot(each) for each in fleet.slots],
    )
    return msgspec.json.encode(timeless)


def _alert(alert: Alert) -> Alert:
    return msgspec.structs.replace(alert, sentence="")


def _money(money: Money) -> Money:
    return msgspec.structs.replace(
        money,
        today_dollars=0.0,
        month_dollars=0.0,
        runway_hours=None,
        savings=money.savings and NO_SAVINGS,
        caps=[msgspec.structs.replace(each, used_dollars=0.0) for each in money.caps],
        workloads=[
            msgspec.structs.replace(each, today_dollars=0.0, useful_hours=0.0, dollars_per_useful_hour=None)
            for each in money.workloads
        ],
        credit=[msgspec.structs.replace(each, dollars=None, lasts_hours=None, sentence="") for each in money.credit],
    )


def _slot(slot: Slot) -> Slot:
    """Return a slot without instants and sentences, and with only the last point of its trail."""
    decision = slot.decision and msgspec.structs.replace(slot.decision, at=EPOCH, sentence="")
    prices = [msgspec.structs.replace(each, at=EPOCH) for each in slot.prices[-1:]]
    return msgspec.structs.replace(slot, prices=prices, useful_share=None, decision=decision, why="", measured=None)
