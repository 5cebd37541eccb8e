"""Compares a strategy's shipped file with the numbers that its code reads."""

import tomllib
from pathlib import Path

from agent.decide.strategy import Params

FEWEST_WORDS = 4


def disparities(file: Path, name: str, params: type[Params]) -> list[str]:
    """Return the differences between a strategy's file and its Params, one sentence each."""
    text = file.read_text()
    values = tomllib.loads(text)
    lines = text.splitlines()
    found = []
    if values.pop("strategy", None) != name:
        found.append(f'strategy: is not "{name}"')
    defaults = params()
    tuned = params.model_validate({key: value for key, value in values.items() if key in params.model_fields})
    for key in params.model_fields:
        if key not in values:
            found.append(f"{key}: is no key of the file")
            continue
        if getattr(tuned, key) != getattr(defaults, key):
            found.append(f"{key}: is {values[key]} in the file and {getattr(defaults, key)} in the code")
        if len(_comment(lines, key).split()) < FEWEST_WORDS:
            found.append(f"{key}: has no comment that says what it does")
    found += [f"{key}: is a key that the code does not read" for key in values if key not in params.model_fields]
    return found


def _comment(lines: list[str], key: str) -> str:
    """Return the comment directly above a key."""
    at = next(number for number, line in enumerate(lines) if line.split("=")[0].strip() == key)
    above = []
    while at > 0 and lines[at - 1].startswith("#"):
        at -= 1
        above.append(lines[at].lstrip("# "))
    return " ".join(reversed(above))
