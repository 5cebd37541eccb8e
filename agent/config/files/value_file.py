"""The values of a variable by slot, one a line, from a file beside agent.toml."""

from collections.abc import Mapping
from pathlib import Path

from agent.config import problems
from agent.config.files import source

MARK = "@"
"""A value in `env` that begins with this names a file; one that begins with two of them is text with one of them."""
MOST_BYTES = 1 << 20
MOST_CHARACTERS = 32_768
"""The most of one value, as of one in `env`."""
_WRONG = {
    "missing_file": 'does not exist; write it, or for a value that begins with @ write "@@"',
    "not_a_file": "is no file; name a text file with one value a line",
    "too_large": f"is larger than {MOST_BYTES} bytes; let the program fetch large inputs by its GPUBID_SLOT",
}


def named_files(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the files that variables name, by variable."""
    marked = {name: text for name, text in variables.items() if text.startswith(MARK)}
    return {name: text.removeprefix(MARK) for name, text in marked.items() if not text.startswith(MARK * 2)}


def texts(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that name no file, with their values."""
    files = named_files(variables)
    return {
        name: text.removeprefix(MARK) if text.startswith(MARK) else text
        for name, text in variables.items()
        if name not in files
    }


def read(file: Path, slots: int) -> tuple[str, ...]:
    """Return the values of the slots, the first line for slot 0. Further lines are not used.

    Raises:
        ValueError: the file cannot be read, or a slot has no value. The message names the fix and repeats nothing of
            the file.
    """
    name = source.label(file)
    try:
        content = source.content(file, MOST_BYTES)
    except problems.ConfigError as error:
        wrong = error.problems[0]
        raise ValueError(f"{name} {_WRONG.get(wrong.code, wrong.sentence)}") from None
    try:
        text = content.decode().replace("\r\n", "\n").removesuffix("\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} is no text: byte {error.start} is not UTF-8; save it as UTF-8") from None
    lines = text.split("\n") if text else []
    if len(lines) < slots:
        raise ValueError(f"{name} has {len(lines)} lines for {slots} slots; write one value a line for each slot")
    for number, line in enumerate(lines[:slots], start=1):
        _check(name, number, line)
    return tuple(lines[:slots])


def _check(name: str, number: int, line: str) -> None:
    odd = next((one for one in line if one != "\t" and not problems.is_printed(one)), None)
    if odd is not None:
        raise ValueError(f"{name} holds the control character U+{ord(odd):04X} in its line {number}; remove it")
    if not line.strip():
        raise ValueError(f"{name} is empty in its line {number}; write the value of slot {number - 1} there")
    if len(line) > MOST_CHARACTERS:
        raise ValueError(f"{name} has more than {MOST_CHARACTERS} characters in its line {number}; write less")
