"""Alerts for a dead man's switch without signs of life: its guard would end the instance although the daemon runs."""

from collections.abc import Iterable
from datetime import timedelta

from agent.decide.facts import Alert
from agent.domain import span_text
from agent.domain.record.event_kind import EventKind
from agent.domain.slot import Slot
from agent.domain.span_text import minutes


def failing(slot: Slot, after: timedelta, failing_for: timedelta) -> Alert:
    """Return the alert about a slot of a daemon whose passes have failed for `failing_for`."""
    sentence = (
        f"no pass of this daemon has succeeded for {minutes(failing_for)}: from {minutes(after / 2)} on it writes no "
        f"sign of life, and {span_text.of(after)} after the last one the guard of {slot} ends its instance; see "
        "cycle.failed in the log"
    )
    return Alert(EventKind.ALERT_SIGN_UNWRITTEN, str(slot), sentence)


def failing_since_start(slot: Slot, after: timedelta, silent_for: timedelta) -> Alert:
    """Return the alert about a slot without a sign for `silent_for`, whose daemon restarted repeatedly or just now."""
    sentence = (
        f"the guard of {slot} has had no sign of life for {minutes(silent_for)}, and no pass of this daemon has "
        f"succeeded since its start: {span_text.of(after)} after the last sign it ends its instance; see cycle.failed "
        "in the log"
    )
    return Alert(EventKind.ALERT_SIGN_UNWRITTEN, str(slot), sentence)


def short_starts(slot: Slot, after: timedelta, silent_for: timedelta, count: int) -> Alert:
    """Return the alert about a slot of a daemon whose last starts ended before their second pass."""
    sentence = (
        f"the last {count} starts of this daemon ended before their second pass, and for {minutes(silent_for)} the "
        f"ledger has no sign of life for {slot}: {span_text.of(after)} after the last one its guard ends the instance; "
        "see `journalctl -u gpubid`"
    )
    return Alert(EventKind.ALERT_SIGN_UNWRITTEN, str(slot), sentence)


def refused(slot: Slot, after: timedelta, markets: Iterable[str], refused_for: timedelta) -> Alert:
    """Return the alert about a slot whose markets refuse our key: this daemon can end nothing there."""
    sentence = (
        f"{' and '.join(markets)} has refused this daemon's key for {minutes(refused_for)}: from "
        f"{minutes(after / 2)} on, and after a start at once, it writes no sign of life for {slot}, and "
        f"{span_text.of(after)} after the last one the guard ends the instance; see `gpubid doctor`"
    )
    return Alert(EventKind.ALERT_SIGN_UNWRITTEN, str(slot), sentence)


def alert(slot: Slot, bucket: str, after: timedelta, silent_for: timedelta) -> Alert:
    """Return the alert about a slot whose sign of life could not be written for `silent_for`."""
    sentence = (
        f"the guard of {slot} has had no sign of life for {minutes(silent_for)}, because {bucket} could not be "
        f"written: after {span_text.of(after)} without one it ends the instance; see `gpubid doctor`"
    )
    return Alert(EventKind.ALERT_SIGN_UNWRITTEN, str(slot), sentence)


def unfound(slot: Slot, bucket: str, after: timedelta, adopted_for: timedelta) -> Alert:
    """Return the alert about a slot whose lease was adopted `adopted_for` ago, and whose run is still unknown."""
    sentence = (
        f"the lease of {slot} was adopted {minutes(adopted_for)} ago, and its run is not found in {bucket}: nobody "
        f"knows where its guard looks for signs of life, and {span_text.of(after)} after the last one that it saw it "
        "ends the instance, perhaps also after `gpubid absent`; see guard.unfound in the log, `gpubid doctor` for the "
        f"bucket, and `gpubid logs {slot}` for the guard"
    )
    return Alert(EventKind.ALERT_SIGN_UNWRITTEN, str(slot), sentence)
