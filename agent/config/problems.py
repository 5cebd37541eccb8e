"""Mistakes in a configuration file, each as one problem with its place, a code and the fix."""

import difflib
import json
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

WHOLE_FILE = "(file)"
_IN_THE_TEXT = frozenset({"bad_toml", "not_utf8", "nul_byte"})
"""Mistakes that are somewhere in the text of a file, also on its first line."""
_SHOWN = 60
_LARGEST_BITS = 1024
"""Written in place of the key if a problem is of the whole file."""


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One mistake."""

    file: str
    line: int
    key: str
    """The path of the key as an operator writes it, or `WHOLE_FILE`."""
    code: str
    """The kind of the mistake, for programs."""
    sentence: str
    """The mistake and, after a semicolon, the fix."""

    def __str__(self) -> str:
        if self.key != WHOLE_FILE:
            return f"{self.file}:{self.line}: {self.key}: {self.sentence}"
        has_line = self.line > 1 or self.code in _IN_THE_TEXT
        return f"{self.file}:{self.line}: {self.sentence}" if has_line else f"{self.file}: {self.sentence}"


class ConfigError(Exception):
    """A configuration cannot be used. `problems` has every mistake found, in the order of the text."""

    code = "config_error"

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(set(problems)))
        super().__init__("\n".join(str(problem) for problem in self.problems))


def dotted(path: Sequence[str | int]) -> str:
    """Return a path as an operator would write it: `workloads.train.gpu[0]`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            name = part if part and all(c.isascii() and (c.isalnum() or c in "_-") for c in part) else shown(part)
            text += f".{name}" if text else name
    return text or WHOLE_FILE


def shown(value: object) -> str:
    """Return a value as TOML, on one line and shortened. A file's text must not control the operator's terminal."""
    text = literal(value)
    text = "".join(c if is_printed(c) else f"\\u{ord(c):04x}" for c in text)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def is_printed(character: str) -> bool:
    """Return whether a character is printable: no control, bidirectional or other format character."""
    return unicodedata.category(character)[0] != "C"


def literal(value: object) -> str:
    """Return a value as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, timedelta):
        return json.dumps(duration_text(value))
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list | tuple | set | frozenset):
        return f"[{', '.join(literal(item) for item in list(value)[:_SHOWN])}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {literal(item)}' for key, item in list(value.items())[:_SHOWN])} }}"
    if isinstance(value, int) and value.bit_length() > _LARGEST_BITS:
        # Python refuses to convert such a number to text.
        return "a number of hundreds of digits"
    return str(value)


def duration_text(span: timedelta) -> str:
    """Return a span as the configuration writes it, in whole seconds: "1h30m"."""
    if span == timedelta.max:
        return "never"
    seconds = int(span.total_seconds())
    text = ""
    for letter, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, seconds = divmod(seconds, size)
        text += f"{count}{letter}" if count else ""
    return text or "0s"


def nearest(word: str, known: Iterable[str]) -> str:
    """Return a clause with the `known` word that was probably meant, or with all known words."""
    names = sorted(known)
    close = difflib.get_close_matches(word[:_SHOWN], names, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]}?"
    return f"write one of {', '.join(names)}" if names else "there is none to write here"


def no_workload(workload: str, names: Sequence[str]) -> str:
    """Return the message for an unknown workload, with the known ones."""
    close = difflib.get_close_matches(workload[:_SHOWN], names, n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    return f"there is no workload {workload!r}; known: {', '.join(names)}{hint}"


def no_slot(workload: str, slots: int, place: str) -> str:
    """Return the message for an unknown slot `place` of a known workload with that many slots."""
    last = f" to {workload}/{slots - 1}" if slots > 1 else ""
    known = f"write {workload}/0{last}, or {workload} for all" if slots else "it has no slots"
    return f"workload {workload!r} has no slot {place!r}; {known}"


def no_kind(option: str, kind: str, known: Iterable[str]) -> str:
    """Return the message for a kind of events that the ledger does not have."""
    return f"{option}: the ledger has no events of kind {kind!r}; {nearest(kind, known)}"
