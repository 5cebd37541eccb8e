"""The words for holds, cooldowns and counts: what each forbids or counts, and the command that ends it.

Each is given as SCOPE:KEY, as the ledger keeps it and the feed shows it.
"""

import shlex

from agent.decide.operators import operator_holds
from agent.domain.record import tally
from agent.domain.record.cooldown import CooldownKind
from agent.domain.record.hold import DISKS, Target, TargetKind, Word
from agent.domain.record.tally import Counted

HOLDS = frozenset({*Word, TargetKind.FLEET})
"""The scopes of holds."""
_COOLDOWNS = {
    CooldownKind.OFFER: "no rent of offer {}",
    CooldownKind.HOST: "no rent on host {}",
    CooldownKind.OWNER: "no rent on hosts of owner {}",
    CooldownKind.MARKET: "no rent on market {}",
    CooldownKind.SLOT: "no rent for slot {}",
    CooldownKind.COOL_OFF: "no other move of slot {}",
    CooldownKind.FULL: "no start of lease {}",
    CooldownKind.STORM: "no interruptible rent of {}",
    CooldownKind.STARTS: "no rent of {}",
    CooldownKind.REJECTED: "no rent on market {}",
}
"""What each cooldown forbids, by its key."""
_COUNTS = {
    Counted.MOVED: "the move of slot {}",
    Counted.UNDERBID: "bids refused as too low for offer {}",
    Counted.UNTAKEN: "refused orders on lease {}",
}
"""What each count that is shown counts, by its subject."""


def kind(what: str) -> str:
    """Return `hold`, `cooldown` or `count`."""
    scope = what.partition(":")[0]
    return "hold" if scope in HOLDS else "cooldown" if scope in _COOLDOWNS else "count"


def meaning(what: str) -> str:
    """Return what a hold or a cooldown forbids, or what a count counts."""
    scope, _, key = what.partition(":")
    if scope in HOLDS:
        fleet_wide = "kill that keeps disks" if key == DISKS.name else "kill of everything"
        return fleet_wide if scope == TargetKind.FLEET else f"{scope} of {key.replace(':', ' ', 1)}"
    if scope in _COUNTS:
        return _COUNTS[Counted(scope)].format(tally.parts_of(Counted(scope), key)[0])
    if scope in {CooldownKind.STORM, CooldownKind.STARTS}:
        market, _, model = key.partition("/")
        key = f"{model} on market {market}"
    # A daemon of a newer version may keep more kinds.
    return _COOLDOWNS[CooldownKind(scope)].format(key) if scope in _COOLDOWNS else f"{scope} of {key}"


def way_out(what: str) -> str:
    """Return a clause with the command that ends a hold, or that ends a cooldown or a count before its time."""
    scope, _, rest = what.partition(":")
    if scope not in HOLDS:
        return f"`gpubid unlock {shlex.quote(what)}` ends it sooner"
    target = Target.parse(what) if scope == TargetKind.FLEET else Target.parse(rest)
    word = Word.KILL if scope == TargetKind.FLEET else Word(scope)
    return "" if target is None else f"`{operator_holds.way_out(word, target)}` ends it"
