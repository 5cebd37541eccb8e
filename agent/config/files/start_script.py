"""The script of `onstart_file`, read beside agent.toml."""

from pathlib import Path

from agent.config import problems
from agent.config.files import source

MOST_BYTES = 65_536
"""The limit of `onstart` itself: markets take no more with a request."""
_WRONG = {
    "missing_file": "does not exist; write the script there, or correct the path",
    "not_a_file": "is no file; name a shell script",
    "too_large": f"is larger than {MOST_BYTES} bytes; let a short script fetch the rest",
}
_TEXT = frozenset("\n\t")


def read(file: Path) -> str:
    """Return the script, with the line ends of this system.

    Raises:
        ValueError: the file cannot be read or is no script. The message names the fix and repeats nothing of the file.
    """
    try:
        content = source.content(file, MOST_BYTES)
    except problems.ConfigError as error:
        wrong = error.problems[0]
        raise ValueError(f"{source.label(file)} {_WRONG.get(wrong.code, wrong.sentence)}") from None
    name = source.label(file)
    try:
        text = content.decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        sentence = f"{name} is no text: byte {error.start} is not UTF-8; name a shell script saved as UTF-8"
        raise ValueError(sentence) from None
    for number, line in enumerate(text.split("\n"), start=1):
        odd = next((one for one in line if one not in _TEXT and not problems.is_printed(one)), None)
        if odd is not None:
            raise ValueError(f"{name} holds the control character U+{ord(odd):04X} in its line {number}; remove it")
    if not text.strip():
        raise ValueError(f"{name} is empty; write the script into it, or remove the key")
    return text
