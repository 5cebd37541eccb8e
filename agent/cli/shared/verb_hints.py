"""Answers a word that is no verb with the verb that does what the word means."""

import sys
from collections.abc import Sequence

from agent.cli.shared import exits

HINTS = {
    "why": "explain",
    "list": "fleet",
    "ls": "fleet",
    "ps": "fleet",
    "show": "fleet",
    "state": "status",
    "watch": "top",
    "start": "run",
    "up": "run",
    "daemon": "run",
    "stop": "pause",
    "halt": "pause",
    "continue": "resume",
    "destroy": "release",
    "delete": "release",
    "terminate": "release",
    "cancel": "release",
    "down": "kill",
    "events": "ledger events",
    "history": "ledger events",
    "prices": "ledger prices",
    "backup": "ledger backup",
    "cost": "spend",
    "costs": "spend",
    "bill": "spend",
    "validate": "check",
    "config": "check",
    "health": "doctor",
    "diagnose": "doctor",
    "new": "init",
    "setup": "init",
    "simulation": "rehearse",
    "dry-run": "plan",
    "preview": "plan",
}
"""Words that people type, from other programs and from our own pages, each with its verb here."""


def refuse(words: Sequence[str]) -> None:
    """End with the nearest verb if the first word of a command is one of `HINTS`."""
    hint = HINTS.get(words[0]) if words else None
    if hint is not None:
        sys.stderr.write(f"gpubid: there is no verb {words[0]!r}; did you mean `gpubid {hint}`?\n")
        sys.exit(exits.BAD_INPUT)
