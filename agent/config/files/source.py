"""A TOML file as read: its values, the lines of its keys, and one error for each way a file can be unreadable."""

import decimal
import errno
import hashlib
import os
import pathlib
import re
import stat
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agent.config import problems
from agent.config.files.lines import MAX_DEPTH, Lines, Path, scan

MAX_BYTES = 1 << 20
"""No configuration is larger. A larger file was named by mistake."""

_POSITION = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_OPEN_ERRORS = {
    errno.ENOENT: (
        "missing_file",
        "there is no such file; write one with `gpubid init`, or name another",
    ),
    errno.ELOOP: ("symlink_loop", "its symbolic links lead in a circle; point the link at the file itself"),
    errno.EISDIR: ("not_a_file", "is a directory; name the TOML file inside it"),
    errno.ENOTDIR: ("missing_file", "a part of the path is no directory; correct the path"),
    errno.EACCES: ("unreadable", "may not be read by this user; give it read permission, or run as its owner"),
    errno.ENAMETOOLONG: ("missing_file", "the path is too long for this system; name a shorter one"),
}


@dataclass(frozen=True, slots=True)
class Source:
    """A parsed file, with the files that it includes in `parts`."""

    file: str
    """Its path, for messages."""
    values: dict[str, Any]
    lines: Lines
    """The line of each of its keys."""
    digest: str
    """The digest of the bytes of the file and its parts."""
    parts: tuple["Source", ...] = ()

    def place(self, path: Path) -> tuple[str, int]:
        """Return the file and line of a key, or of the nearest part of it that is written down."""
        of = max((self, *self.parts), key=lambda each: each.lines.depth(path))
        return of.file, of.lines.find(path)

    def problem(self, path: Path, code: str, sentence: str) -> problems.Problem:
        """Return a problem at the key `path`."""
        file, line = self.place(path)
        return problems.Problem(file, line, problems.dotted(path), code, sentence)


class _NumberError(Exception):
    """A number's exponent is beyond every kind of number; `written` is the number's text."""

    def __init__(self, written: str) -> None:
        super().__init__(written)
        self.written = written


def read(path: pathlib.Path, parse_float: Callable[[str], Any] = float) -> Source:
    """Return the TOML file at `path`.

    Raises:
        ConfigError: it cannot be read, is too large, is not UTF-8 or is no TOML.
    """
    read_bytes = content(path)
    file = label(path)
    text = _text(file, read_bytes)
    key_lines = scan(text)
    if key_lines.too_deep is not None:
        deep, line = key_lines.too_deep
        sentence = f"nests deeper than {MAX_DEPTH} levels; no key is so deep, write it flat"
        raise problems.ConfigError([problems.Problem(file, line, problems.dotted(deep[:3]), "too_deep", sentence)])

    def number(written: str) -> object:
        try:
            return parse_float(written)
        except decimal.InvalidOperation:
            raise _NumberError(written) from None

    try:
        values = tomllib.loads(text, parse_float=number)
    except tomllib.TOMLDecodeError as error:
        raise problems.ConfigError(_syntax(file, text, key_lines, str(error))) from None
    except _NumberError as error:
        raise problems.ConfigError([_number(file, text, key_lines, error.written)]) from None
    except (RecursionError, ValueError):
        # Either a number of thousands of digits, or deep nesting after a syntax error that ended the scan.
        sentence = "cannot be read as TOML; write shorter numbers and flatter tables"
        raise problems.ConfigError([_whole(file, "bad_toml", sentence)]) from None
    return Source(file, values, key_lines, hashlib.sha256(read_bytes).hexdigest())


def label(path: pathlib.Path) -> str:
    """Return a path for messages, without characters that control the operator's terminal."""
    return "".join(c if problems.is_printed(c) else "?" for c in str(path))


def _whole(file: str, code: str, sentence: str, line: int = 1) -> problems.Problem:
    return problems.Problem(file, line, problems.WHOLE_FILE, code, sentence)


def content(path: pathlib.Path, most_bytes: int = MAX_BYTES) -> bytes:
    """Return the bytes of a regular file.

    Raises:
        ConfigError: the file does not exist, may not be read, or has more than `most_bytes`.
    """
    file = label(path)
    try:
        with open(path, "rb", opener=_without_waiting) as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise problems.ConfigError([_whole(file, "not_a_file", "is no regular file; name a TOML file")])
            content = stream.read(most_bytes + 1)
    except OSError as error:
        fallback = ("unreadable", f"cannot be read ({os.strerror(error.errno or 0)}); check the file and its disk")
        code, sentence = _OPEN_ERRORS.get(error.errno or 0, fallback)
        raise problems.ConfigError([_whole(file, code, sentence)]) from None
    except ValueError:
        sentence = "the path contains a character that no path may contain; correct it"
        raise problems.ConfigError([_whole(file, "missing_file", sentence)]) from None
    if len(content) > most_bytes:
        sentence = f"is larger than {most_bytes} bytes, which no configuration is; name the right file"
        raise problems.ConfigError([_whole(file, "too_large", sentence)])
    return content


def _without_waiting(path: str, flags: int) -> int:
    # Opening a named pipe would wait for a writer that never comes.
    return os.open(path, flags | os.O_NONBLOCK)


def _text(file: str, content: bytes) -> str:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        sentence = f"byte {error.start} (0x{content[error.start]:02x}) is not UTF-8; save the file as UTF-8"
        raise problems.ConfigError([_whole(file, "not_utf8", sentence, line)]) from None
    for character, code, sentence in (
        ("\0", "nul_byte", "holds a NUL byte, as binary files do; save it as text"),
        ("\ufeff", "byte_order_mark", "holds a byte order mark; save it as UTF-8 without one"),
    ):
        if character in text:
            line = text.count("\n", 0, text.index(character)) + 1
            raise problems.ConfigError([_whole(file, code, sentence, line)])
    return text.replace("\r\n", "\n")


def _syntax(file: str, text: str, key_lines: Lines, message: str) -> list[problems.Problem]:
    if key_lines.duplicates and message.startswith("Cannot"):
        return [_duplicate(file, key_lines, *twice) for twice in key_lines.duplicates]
    position = _POSITION.search(message)
    line = int(position[1]) if position and position[1] else text.count("\n") + 1
    said = _POSITION.sub("", message)
    said = "".join(c if problems.is_printed(c) else "?" for c in said)[:120]
    key = problems.dotted(key_lines.key_at(line))
    sentence = f"is no TOML: {said[:1].lower()}{said[1:]}; write key = value, text in quotes"
    return [problems.Problem(file, line, key, "bad_toml", sentence)]


def _number(file: str, text: str, key_lines: Lines, written: str) -> problems.Problem:
    lines = enumerate(text.split("\n"), start=1)
    line = next((number for number, each in lines if written in each.partition("#")[0]), 1)
    sentence = f"holds the number {problems.shown(written)}, whose exponent is too large; write a number of usual size"
    return problems.Problem(file, line, problems.dotted(key_lines.key_at(line)), "bad_toml", sentence)


def _duplicate(file: str, key_lines: Lines, path: Path, line: int) -> problems.Problem:
    sentence = f"is already set in line {key_lines.find(path)}; keep one of the two"
    return problems.Problem(file, line, problems.dotted(path), "duplicate_key", sentence)
