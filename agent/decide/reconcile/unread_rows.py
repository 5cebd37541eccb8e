"""Rows of a listing with unreadable fields, which our own records replace.

An instance exists even if its price is missing or absurd. Its lease has the price, and an order in doubt has the
ordered terms. A field that neither has stays zero, and the row still says that it was not read.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from agent.domain import money
from agent.domain.fleet import MarketView
from agent.domain.market.instance import Instance
from agent.domain.record.intent import Intent
from agent.domain.record.lease import Lease

TERMS = frozenset({"gpu_rate", "disk_rate", "disk_gb", "tenure", "host_id", "gpus"})
"""The fields of a readback that a lease has under the same names."""
LIMIT = "limit"
"""The field with our bid where the price paid is not the bid."""


def filled(view: MarketView, leases: Sequence[Lease], intents: Mapping[str, Intent]) -> MarketView:
    """Return a view whose rows have our known values instead of unreadable ones."""
    if not any(row.unread for row in view.instances):
        return view
    by_instance = {lease.instance_id: lease for lease in leases if lease.market == view.market}
    rows = tuple(_filled(view, row, by_instance.get(row.instance_id), intents) for row in view.instances)
    return msgspec.structs.replace(view, instances=rows)


def _filled(view: MarketView, row: Instance, lease: Lease | None, intents: Mapping[str, Intent]) -> Instance:
    if lease is not None:
        known: dict[str, Any] = {name: getattr(lease, name) for name in TERMS} | {LIMIT: lease.bid_limit}
    else:
        label = view.labels.get(row.instance_id)
        intent = intents.get(label.intent_id) if label is not None else None
        known = _asked(intent, row) if intent is not None else {}
    return msgspec.structs.replace(row, **{name: known[name] for name in row.unread & known.keys()})


def _asked(intent: Intent, row: Instance) -> dict[str, Any]:
    rate = intent.price or money.UsdPerHour(max(0, (intent.rate - row.disk_rate).micros))
    asked = {"gpu_rate": rate, "host_id": intent.host_id, "disk_gb": intent.disk_gb, "tenure": intent.tenure}
    asked |= {LIMIT: intent.price, "gpus": intent.gpus}
    return {name: value for name, value in asked.items() if value}
