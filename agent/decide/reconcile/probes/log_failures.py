"""Signs of failure at the end of a log: markets do not always report exit codes.

They are evidence for holding a batch, never for ending one: a false sign costs a person one look.
"""

import re
from collections.abc import Sequence

from agent.domain.work.guard_prelude import BARE, CANNOT_START

LAST_LINES = 30
"""How many lines are read: a traceback of Python is rarely longer, and a caught failure is further up."""
MOST_CHARACTERS = 200
_SIGNS = re.compile(
    r"^Traceback \(most recent call last\)|^\w*(?:Error|Exception)\b|CUDA out of memory|[Ss]egmentation fault"
    r"|core dumped|^(?:Killed|Aborted|Terminated)\b|(?:command|executable file) not found|[Nn]o such file or directory"
    r"|[Ee]xit(?:ed with)? (?:code|status) [1-9]|returned non-zero exit"
)


def refusal(lines: Sequence[str]) -> str:
    """Return why the guard could not start if the last line of a log says so, else nothing.

    Nothing runs after that line.
    """
    last = next((printed.strip() for printed in reversed(lines) if printed.strip()), "")
    return last.removeprefix(CANNOT_START)[:MOST_CHARACTERS] if last.startswith(CANNOT_START) else ""


def runs_without_guard(lines: Sequence[str]) -> bool:
    """Return whether a line of a log says that the work runs without the guard."""
    return any(printed.startswith(BARE) for printed in lines)


def line(lines: Sequence[str]) -> str:
    """Return the last line among the last ones that reports a failure, or nothing."""
    last = [
        printed for printed in lines[-LAST_LINES:] if _SIGNS.search(printed.strip()) or printed.startswith(CANNOT_START)
    ]
    return last[-1].strip()[:MOST_CHARACTERS] if last else ""
