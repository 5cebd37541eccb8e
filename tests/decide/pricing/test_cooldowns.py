"""The scopes of cooldowns, and their ends."""

from datetime import timedelta

from agent.decide.pricing import cooldowns
from agent.domain.record.cooldown import Cooldown, CooldownKind
from tests.support import builders


def test_what_is_over_does_not_rest() -> None:
    rests = [
        Cooldown(CooldownKind.HOST, "h1", builders.NOW + timedelta(seconds=1), "a failed start"),
        Cooldown(CooldownKind.HOST, "h2", builders.NOW, "host_gone"),
        Cooldown(CooldownKind.OFFER, "a1", builders.ago(seconds=1), "taken"),
    ]
    assert cooldowns.cooling(rests, {}, builders.NOW) == {CooldownKind.HOST: {"h1": "a failed start"}}
