"""A dead man's switch that reads no sign of life: in time its guard ends the instance, although the daemon lives."""

from datetime import timedelta

from agent.decide.facts import Alert
from agent.domain.record.event_kind import EventKind
from agent.domain.slot import Slot


def alert(slot: Slot, bucket: str, after: timedelta, silent_for: timedelta) -> Alert:
    """Return the alert about a slot whose sign of life could not be written for so long."""
    hours, minutes = after / timedelta(hours=1), int(silent_for / timedelta(minutes=1))
    sentence = (
        f"the guard of {slot} has had no sign of life for {minutes} minutes, because {bucket} could not be written: "
        f"after {hours:g} h without one it ends the instance; see `gpubid doctor`"
    )
    return Alert(EventKind.ALERT_SIGN_UNWRITTEN, str(slot), sentence)
