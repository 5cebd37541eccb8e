"""Holds and cooldowns for tests, from the scope and key under which the ledger keeps them."""

from datetime import datetime, timedelta
from typing import Any

from agent.decide.pricing.cooldowns import InForce
from agent.domain.record import hold
from agent.domain.record.cooldown import Cooldown
from agent.domain.record.hold import Holds, OperatorHold
from agent.domain.record.rest import Rest
from agent.ledger.tables import rest_rows
from tests.support import builders


def rest(scope: str, key: str, until: datetime | None = None, ground: str = "ops") -> Rest:
    """Return the rest of this place, given at `builders.NOW`, for a day if nothing else is said."""
    until = until or builders.NOW + timedelta(days=1)
    return rest_rows.rest_of({"scope": scope, "key": key, "since": builders.NOW, "until": until, "code": ground})


def held(scope: str, key: str, ground: str = "ops") -> OperatorHold:
    """Return the hold of this place."""
    found = rest(scope, key, ground=ground)
    assert isinstance(found, OperatorHold)
    return found


def holds(*shown: str) -> Holds:
    """Return the holds that are shown as SCOPE:KEY."""
    return hold.in_force([held(*_place(each)) for each in shown], builders.NOW)


def in_force(shown: dict[str, str]) -> InForce:
    """Return what is in force, by SCOPE:KEY with the ground of each; a hold is recognised by its scope."""
    found = [rest(*_place(key), ground=ground) for key, ground in shown.items()]
    return InForce(
        hold.in_force([each for each in found if isinstance(each, OperatorHold)], builders.NOW),
        {str(each): each.code for each in found if isinstance(each, Cooldown)},
    )


def parted(*rests: Rest) -> dict[str, Any]:
    """Return rests as the fields of a fleet that they belong in."""
    return {
        "holds": tuple(each for each in rests if isinstance(each, OperatorHold)),
        "cooldowns": tuple(each for each in rests if isinstance(each, Cooldown)),
    }


def _place(shown: str) -> tuple[str, str]:
    scope, _, key = shown.partition(":")
    return scope, key
