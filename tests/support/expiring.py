"""Holds, cooldowns and tallies for tests, from the scope and key under which the ledger keeps them."""

from datetime import datetime, timedelta

from agent.decide.pricing import cooldowns
from agent.decide.pricing.cooldowns import InForce
from agent.domain.record import hold
from agent.domain.record.cooldown import Cooldown
from agent.domain.record.expiring_record import ExpiringRecord
from agent.domain.record.hold import Holds, OperatorHold
from agent.domain.record.tally import Tally
from agent.ledger.tables import expiring_rows
from tests.support import builders


def rest(scope: str, key: str, until: datetime | None = None, ground: str = "ops") -> ExpiringRecord:
    """Return the rest of this scope and key, begun at `builders.NOW`, by default for a day."""
    until = until or builders.NOW + timedelta(days=1)
    columns = {"scope": scope, "key": key, "since": builders.NOW, "until": until, "code": ground, "count": 1}
    return expiring_rows.record_of(columns)


def held(scope: str, key: str, ground: str = "ops") -> OperatorHold:
    """Return the hold of this scope and key."""
    found = rest(scope, key, ground=ground)
    assert isinstance(found, OperatorHold)
    return found


def cooldown(scope: str, key: str, until: datetime | None = None, ground: str = "x") -> Cooldown:
    """Return the cooldown of this scope and key."""
    found = rest(scope, key, until, ground)
    assert isinstance(found, Cooldown)
    return found


def tally(scope: str, key: str, until: datetime | None = None, ground: str = "x") -> Tally:
    """Return the tally of this scope and key."""
    found = rest(scope, key, until, ground)
    assert isinstance(found, Tally)
    return found


def holds(*shown: str) -> Holds:
    """Return the holds that are written as SCOPE:KEY."""
    return hold.in_force([held(*_place(each)) for each in shown], builders.NOW)


def in_force(shown: dict[str, str]) -> InForce:
    """Return the holds and cooldowns in force, by SCOPE:KEY with the ground of each."""
    found = [rest(*_place(key), ground=ground) for key, ground in shown.items()]
    resting = [each for each in found if isinstance(each, Cooldown)]
    fleet = builders.fleet(
        holds=tuple(each for each in found if isinstance(each, OperatorHold)),
        cooldowns=tuple(resting),
        tallies=tuple(each for each in found if isinstance(each, Tally)),
    )
    return cooldowns.in_force(fleet)


def _place(shown: str) -> tuple[str, str]:
    scope, _, key = shown.partition(":")
    return scope, key
