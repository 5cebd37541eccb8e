"""What came of a reload: applied with notes on what it does not reach, or refused with every mistake."""

from dataclasses import asdict, dataclass
from typing import Any

from agent.config.problems import WHOLE_FILE, Problem
from agent.decide.operators.notices import Notice


@dataclass(frozen=True, slots=True)
class Reloaded:
    """The file that was read, the digest of the one in force, and why it was refused or what to know."""

    file: str
    digest: str
    problems: tuple[Problem, ...] = ()
    notes: tuple[Notice, ...] = ()

    @property
    def is_applied(self) -> bool:
        """Whether the files are in force."""
        return not self.problems

    def as_json(self) -> dict[str, Any]:
        """Return it as `gpubid reload --json` prints it."""
        return {
            "file": self.file,
            "is_applied": self.is_applied,
            "digest": self.digest,
            "problems": [asdict(problem) for problem in self.problems],
            "notes": [asdict(note) for note in self.notes],
        }


def defect(file: str) -> Problem:
    """Return what to say where our own code failed."""
    return Problem(file, 0, WHOLE_FILE, "defect", "reading it met a defect of gpubid itself; see the daemon's log")
