"""The data for judging a new configuration. The daemon gives them to a person who may not read its ledger."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from agent.domain.fleet import Spend
from agent.domain.record.budget import Scope
from agent.domain.record.intent import Intent
from agent.domain.record.lease import Lease
from agent.ledger.memory import Recollection


@dataclass(frozen=True, slots=True)
class Holdings:
    """Leases, open intents and spend at `now`."""

    now: datetime
    leases: tuple[Lease, ...]
    intents: tuple[Intent, ...]
    total: Spend
    spend_of: tuple[tuple[Scope, Spend], ...]
    ran_micros: tuple[tuple[str, int], ...] = ()
    """How long ended leases ran since they first were ready, by workload."""


def of(known: Recollection, now: datetime) -> Holdings:
    """Return the ledger's holdings."""
    spend_of, ran_micros = tuple(known.spend_of.items()), tuple(known.ran_micros.items())
    return Holdings(now, known.leases, known.intents, known.total, spend_of, ran_micros)


def encoded(present: Holdings) -> bytes:
    """Return the holdings as JSON."""
    return msgspec.json.encode(present)


def decoded(said: Mapping[str, Any]) -> Holdings:
    """Return the holdings in JSON."""
    return msgspec.convert(said, Holdings)
