"""The line of each key of a TOML text. The standard parser returns values without their lines.

Invariants:
1. A scan never raises. In a text that is no TOML it keeps the lines up to the mistake.
2. On valid TOML every key, table, array element and inline key is found at its first character.
"""

import bisect
import contextlib
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field

Path = tuple[str | int, ...]

MAX_DEPTH = 24
"""No configuration needs deeper nesting. The parser's own limit is the interpreter's stack."""

_BLANK = re.compile(r"[ \t]*")
_BETWEEN = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BARE_VALUE = re.compile(r"[^,\]}\n#]+")
_STRINGS = (
    re.compile(r'"""(?:[^\\]|\\.)*?"{3,5}(?!")', re.DOTALL),
    re.compile(r"'''.*?'{3,5}(?!')", re.DOTALL),
    re.compile(r'"(?:[^"\\\n]|\\.)*"'),
    re.compile(r"'[^'\n]*'"),
)


@dataclass
class Lines:
    """Line numbers by path. A path has keys and, inside arrays, indices."""

    marks: dict[Path, int] = field(default_factory=dict)
    duplicates: list[tuple[Path, int]] = field(default_factory=list)
    too_deep: tuple[Path, int] | None = None

    def find(self, path: Sequence[str | int]) -> int:
        """Return the line of `path`, or of the nearest part of it that is written down."""
        return self.marks.get(tuple(path[: self.depth(path)]), 1)

    def depth(self, path: Sequence[str | int]) -> int:
        """Return how many parts of `path`, from its first on, are written down; 0 if none is."""
        return next((length for length in range(len(path), 0, -1) if tuple(path[:length]) in self.marks), 0)

    def key_at(self, line: int) -> Path:
        """Return the innermost path that starts on `line`, or the empty path."""
        return max((path for path, at in self.marks.items() if at == line), key=len, default=())


def scan(text: str) -> Lines:
    """Return the lines of the keys of `text`."""
    scanner = _Scanner(text)
    with contextlib.suppress(_StuckError):
        scanner.document()
    return scanner.lines


class _StuckError(Exception):
    """The text is no TOML from here on, or nests too deep."""


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.lines = Lines()
        self._newlines = [match.start() for match in re.finditer("\n", text)]
        self._tables: set[Path] = set()
        self._last_index: dict[Path, int] = {}

    def document(self) -> None:
        table: Path = ()
        while self._next(_BETWEEN):
            if self.text.startswith("[[", self.at):
                table = self._array_header()
            elif self.text[self.at] == "[":
                table = self._header()
            else:
                self._pair(table, depth=len(table))

    def _next(self, skipped: re.Pattern[str]) -> str:
        match = skipped.match(self.text, self.at)
        if match is not None:
            self.at = match.end()
        return self.text[self.at : self.at + 1]

    def _expect(self, token: str) -> None:
        if not self.text.startswith(token, self.at):
            raise _StuckError
        self.at += len(token)

    def _line(self, offset: int) -> int:
        return bisect.bisect_left(self._newlines, offset) + 1

    def _mark(self, path: Path, offset: int) -> None:
        self.lines.marks.setdefault(path, self._line(offset))

    def _header(self) -> Path:
        start = self.at
        self._expect("[")
        path = self._resolve(self._dotted())
        self._expect("]")
        if path in self._tables:
            self.lines.duplicates.append((path, self._line(start)))
        self._tables.add(path)
        self._mark_all(path, start)
        return path

    def _array_header(self) -> Path:
        start = self.at
        self._expect("[[")
        keys = self._dotted()
        self._expect("]]")
        array = (*self._resolve(keys[:-1]), keys[-1])
        self._last_index[array] = self._last_index.get(array, -1) + 1
        path = (*array, self._last_index[array])
        self._mark_all(path, start)
        return path

    def _resolve(self, keys: Path) -> Path:
        """Return the path of a header. The name of an array of tables means its last element."""
        path: Path = ()
        for key in keys:
            path = (*path, key)
            if path in self._last_index:
                path = (*path, self._last_index[path])
        return path

    def _mark_all(self, path: Path, offset: int) -> None:
        for length in range(1, len(path) + 1):
            self._mark(path[:length], offset)

    def _dotted(self) -> Path:
        keys: list[str | int] = []
        while True:
            self._next(_BLANK)
            keys.append(self._key())
            if len(keys) > MAX_DEPTH:
                self._give_up(tuple(keys))
            if self._next(_BLANK) != ".":
                return tuple(keys)
            self.at += 1

    def _key(self) -> str:
        match = _BARE_KEY.match(self.text, self.at)
        if match is not None:
            self.at = match.end()
            return match.group()
        start = self.at
        self._string()
        try:
            return str(tomllib.loads(f"key = {self.text[start : self.at]}")["key"])
        except tomllib.TOMLDecodeError as error:
            raise _StuckError from error

    def _string(self) -> None:
        for pattern in _STRINGS:
            match = pattern.match(self.text, self.at)
            if match is not None:
                self.at = match.end()
                return
        raise _StuckError

    def _pair(self, table: Path, depth: int) -> None:
        start = self._after_blank()
        path = (*table, *self._dotted())
        self._expect("=")
        if path in self.lines.marks:
            self.lines.duplicates.append((path, self._line(start)))
        self._mark_all(path, start)
        self._value(path, depth + 1)

    def _after_blank(self) -> int:
        self._next(_BETWEEN)
        return self.at

    def _value(self, path: Path, depth: int) -> None:
        if depth > MAX_DEPTH:
            self._give_up(path)
        first = self._next(_BLANK)
        if first == "[":
            self._array(path, depth)
        elif first == "{":
            self._inline_table(path, depth)
        elif first in {'"', "'"}:
            self._string()
        else:
            match = _BARE_VALUE.match(self.text, self.at)
            if match is None:
                raise _StuckError
            self.at = match.end()

    def _array(self, path: Path, depth: int) -> None:
        self._expect("[")
        index = 0
        while self._next(_BETWEEN) != "]":
            self._mark((*path, index), self.at)
            self._value((*path, index), depth + 1)
            index += 1
            if self._next(_BETWEEN) != "]":
                self._expect(",")
        self._expect("]")

    def _inline_table(self, path: Path, depth: int) -> None:
        self._expect("{")
        while self._next(_BETWEEN) != "}":
            self._pair(path, depth)
            if self._next(_BETWEEN) != "}":
                self._expect(",")
        self._expect("}")

    def _give_up(self, path: Path) -> None:
        self.lines.too_deep = (path[:MAX_DEPTH], self._line(self.at))
        raise _StuckError
