"""An order of a person, by a verb of the command line or the page."""

from dataclasses import dataclass
from datetime import timedelta

from agent.domain.record.hold import EVERYTHING, Word

VERBS = (
    "drain",
    "pause",
    "resume",
    "lift",
    "release",
    "adopt",
    "lock",
    "unlock",
    "done",
    "kill",
    "progress",
    "reset",
    "retry",
    "absent",
    "demand",
)


@dataclass(frozen=True, slots=True)
class Order:
    """An order of a person."""

    verb: str
    """One of `VERBS`."""
    target: str
    """Its target. `fleet:all` is everything: a kill of it stops all spending, and a resume ends that. `lift` ends the
    kill of any other target, and nothing else."""
    span: timedelta | None = None
    """How long it is in force; None: until it is lifted."""
    into: str = ""
    """The slot to adopt into; empty: the slot of the label."""
    hours: float | None = None
    """The hours of work that are done, for `progress`."""
    slots: int | None = None
    """How many slots a person wants, for `demand`; None: what is read counts again."""
    keep_disks: bool = False
    """Whether a kill of everything pauses instead of releasing."""
    leases: tuple[str, ...] | None = None
    """The leases that were shown to the person who agreed. If others are open, nothing is done. None: nobody was
    asked."""

    is_gone: bool = False
    """Whether a release is of something of which, as the person has seen, nothing is left."""

    @property
    def is_of_everything(self) -> bool:
        """Whether it stops all spending, or ends such a stop."""
        return self.verb in {Word.KILL, "resume"} and self.target == str(EVERYTHING)
