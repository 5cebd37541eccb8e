"""The result of a reload: applied, with notes on changes that need a restart, or refused with every mistake."""

from dataclasses import asdict, dataclass
from typing import Any

from agent.config.problems import WHOLE_FILE, Problem
from agent.decide.operators.notices import Notice


@dataclass(frozen=True, slots=True)
class Reloaded:
    """The file that was read, the digest of the file in force, and the mistakes or notes."""

    file: str
    digest: str
    problems: tuple[Problem, ...] = ()
    notes: tuple[Notice, ...] = ()

    @property
    def is_applied(self) -> bool:
        """Whether the files are in force."""
        return not self.problems

    def as_json(self) -> dict[str, Any]:
        """Return the result as `gpubid reload --json` prints it."""
        return {
            "file": self.file,
            "is_applied": self.is_applied,
            "digest": self.digest,
            "problems": [asdict(problem) for problem in self.problems],
            "notes": [asdict(note) for note in self.notes],
        }


def defect(file: str) -> Problem:
    """Return the problem to report if our own code failed."""
    return Problem(file, 0, WHOLE_FILE, "defect", "a defect of gpubid prevented reading it; see the daemon's log")
