"""Mistakes in options of a command that a table of the configuration checked, in the words of the command line."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.config.problems import Problem

_EXAMPLE = re.compile(r"write for example \S+ = (.+)")


def sentence(problem: "Problem", options: Mapping[str, str]) -> str:
    """Return a problem as its option's. `options` has the options that are not `--` and their key with dashes."""
    key = re.sub(r"\[\d+\]$", "", problem.key)
    option = options.get(key, "--" + key.replace("_", "-"))
    return f"{option}: {_EXAMPLE.sub(lambda found: f'write for example {option} {_plain(found[1])}', problem.sentence)}"


def _plain(value: str) -> str:
    """Return the example of a key as a shell takes it: the first item of a list."""
    return value.removeprefix("[").removesuffix("]").partition(", ")[0]
