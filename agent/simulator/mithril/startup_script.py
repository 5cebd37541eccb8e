"""The container that a bid's startup script starts: what its `docker run` names, since the market sees a script alone.

The script is never run. Its `export NAME=value` lines and its first `docker run` are read; a script without one starts
nothing, and its machines only run.
"""

import dataclasses
import re
import shlex
from collections.abc import Iterator, Mapping

_VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_BREAKS = ";|&\n"
# Options of `docker run` without a value; all others have one.
_FLAGS = frozenset({"--detach", "-d", "--rm", "--init", "--privileged", "--interactive", "--tty", "-i", "-t", "-it"})


@dataclasses.dataclass(frozen=True, slots=True)
class Started:
    """The container of one bid; without an image there is none."""

    image: str = ""
    env: Mapping[str, str] = dataclasses.field(default_factory=dict)
    ports: tuple[int, ...] = ()
    words: tuple[str, ...] = ()  # its first process, the entrypoint first


def read(script: str | None) -> Started:
    """Return the container that a script starts."""
    exports: dict[str, str] = {}
    for command in _commands(script or ""):
        if command[0] == "export":
            exports |= _pairs(command[1:])
        elif (start := _after_run(command)) is not None:
            return _container(start, exports)
    return Started()


def _commands(script: str) -> Iterator[list[str]]:
    """Yield the words of every command; a script that no shell would take has none."""
    lexer = shlex.shlex(script.replace("\\\n", " "), posix=True, punctuation_chars=_BREAKS)
    lexer.whitespace, lexer.whitespace_split = " \t\r", True
    words: list[str] = []
    try:
        for word in lexer:
            if word and not word.strip(_BREAKS):
                if words:
                    yield words
                words = []
            else:
                words.append(word)
    except ValueError:
        return
    if words:
        yield words


def _after_run(command: list[str]) -> list[str] | None:
    """Return the words after `docker ... run`; None for another command."""
    for place, word in enumerate(command):
        if word == "run" and any("docker" in before for before in command[:place]):
            return command[place + 1 :]
    return None


def _container(words: list[str], exports: Mapping[str, str]) -> Started:
    env: dict[str, str] = {}
    ports: list[int] = []
    entry: tuple[str, ...] = ()
    rest = list(words)
    while rest and rest[0].startswith("-"):
        option, _, value = rest.pop(0).partition("=")
        if option in _FLAGS:
            continue
        if not value and rest:
            value = rest.pop(0)
        if option in ("--env", "-e"):
            name = value.partition("=")[0]
            env |= _pairs([value]) or {name: exports.get(name, "")}
        elif option in ("--publish", "-p"):
            ports += _port(value)
        elif option == "--entrypoint":
            entry = (value,)
    return Started(rest[0], env, tuple(sorted(set(ports))), (*entry, *rest[1:])) if rest else Started()


def _pairs(words: list[str]) -> dict[str, str]:
    matches = (_VARIABLE.fullmatch(word) for word in words)
    return {match[1]: match[2] for match in matches if match}


def _port(published: str) -> list[int]:
    """Return the machine's port of `[address:]machine:container[/tcp]`."""
    parts = published.removesuffix("/tcp").split(":")
    number = parts[-2] if len(parts) > 1 else parts[-1]
    return [int(number)] if number.isdigit() and 0 < int(number) < 65536 else []  # noqa: PLR2004 - the highest port
