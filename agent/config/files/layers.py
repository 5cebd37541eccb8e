"""agent.toml and the files that it includes, as one source.

Invariants:
1. No file overrides another: a key that two files set is a mistake that names both places.
2. Only agent.toml includes. A file that it names must exist; only a pattern with a wildcard may match nothing.
3. Every relative path in an included file is relative to agent.toml.
"""

import glob
import hashlib
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from agent.config import problems
from agent.config.files import source

INCLUDE = "include"
MOST_FILES = 256
"""The most included files: a pattern that matches more is a mistake."""
_WILDCARD = re.compile(r"[*?\[]")
_INCLUDED = re.compile(r"""^\s*include\s*=\s*\[(?P<patterns>(?:\s|,|\#[^\n]*|"[^"\n]*"|'[^'\n]*')*)""", re.MULTILINE)
"""The include list of a file that may be broken after the list. Strings and comments may contain brackets."""


def read(path: Path, parse_float: Callable[[str], Any] = float) -> source.Source:
    """Return agent.toml with the keys of the files that it includes.

    Raises:
        ConfigError: a file cannot be read, a pattern finds nothing, or two files set one key.
    """
    whole = source.read(path, parse_float)
    files, wrong = _included(path, whole)
    parts: list[source.Source] = []
    for file in files:
        try:
            parts.append(source.read(file, parse_float))
        except problems.ConfigError as error:
            wrong += error.problems
    wrong += [_nested(part) for part in parts if INCLUDE in part.values]
    merged = dict(whole.values)
    before = [whole]
    for part in parts:
        values = {key: value for key, value in part.values.items() if key != INCLUDE}
        merged = _merged(merged, values, (), part, before, wrong)
        before.append(part)
    if wrong:
        raise problems.ConfigError(wrong)
    if not parts:
        return whole
    names = (f"{part.file}\n{part.digest}" for part in parts)
    return source.Source(whole.file, merged, whole.lines, digest(whole.digest, *names), tuple(parts))


def digest(first: str, *more: str) -> str:
    """Return one digest of several texts."""
    return hashlib.sha256("\0".join((first, *more)).encode()).hexdigest()


def files(path: Path) -> list[Path]:
    """Return agent.toml and the included files that can be found, even if agent.toml is no valid TOML."""
    try:
        text = path.read_bytes()[: source.MAX_BYTES].decode("utf-8", "replace")
    except OSError:
        return [path]
    named = _INCLUDED.search(text)
    patterns = re.findall(r"""["']([^"'\n]+)["']""", named["patterns"]) if named else []
    return [path, *dict.fromkeys(file for pattern in patterns for file in _matches(path, pattern))]


def _included(path: Path, whole: source.Source) -> tuple[list[Path], list[problems.Problem]]:
    """Return the included files in the order of the patterns, and the problems of the patterns."""
    patterns = whole.values.get(INCLUDE, [])
    if not isinstance(patterns, list) or not all(isinstance(each, str) for each in patterns):
        # The model's own error says what to write there.
        return [], []
    wrong: list[problems.Problem] = []
    found: dict[Path, None] = {}
    for index, pattern in enumerate(patterns):
        matches = _matches(path, pattern)
        sentence = _objection(path, pattern, matches)
        if sentence:
            wrong.append(whole.problem((INCLUDE, index), "bad_include", sentence))
        found |= dict.fromkeys(matches)
    if len(found) > MOST_FILES:
        sentence = f"{len(found)} files are included; {MOST_FILES} are the most, write narrower patterns"
        wrong.append(whole.problem((INCLUDE,), "bad_include", sentence))
        return [], wrong
    return ([] if wrong else list(found)), wrong


def _matches(path: Path, pattern: str) -> list[Path]:
    try:
        return sorted(path.parent / name for name in glob.glob(pattern, root_dir=path.parent))  # noqa: PTH207 - with a root
    except (OSError, ValueError):
        return []


def _closed(folder: Path, pattern: str) -> str:
    """Return a clause that names a folder of the pattern that cannot be read, or an empty text.

    Without it, the files in such a folder would be left out silently.
    """
    parent = os.path.dirname(pattern)  # noqa: PTH120 - a pattern is no path
    for place in {folder / parent, *_matches(folder / "agent.toml", parent)} if parent else set():
        try:
            os.scandir(place).close()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            return f"the folder {problems.shown(os.path.relpath(place, folder))} cannot be read ({error.strerror})"
    return ""


def _objection(path: Path, pattern: str, matches: list[Path]) -> str:
    """Return why a pattern is refused, or an empty text."""
    shown = problems.shown(pattern)
    if any(os.path.realpath(file) == os.path.realpath(path) for file in matches):
        return (
            f'{shown} matches this file itself; put the others into a folder, for example include = ["conf.d/*.toml"]'
        )
    if "**" in pattern:
        return f"{shown} has **, which is not known here; name each folder, for example conf.d/*.toml"
    closed = _closed(path.parent, pattern)
    if closed:
        return f"{shown}: {closed}; let the user that runs gpubid read it"
    if not matches and not _WILDCARD.search(pattern):
        return f"there is no file {shown} beside this one; write it, or correct the name"
    return ""


def _nested(part: source.Source) -> problems.Problem:
    sentence = "an included file includes nothing; write the pattern in agent.toml"
    return part.problem((INCLUDE,), "nested_include", sentence)


def _merged(
    into: dict[str, Any],
    values: dict[str, Any],
    path: tuple[str, ...],
    part: source.Source,
    before: list[source.Source],
    wrong: list[problems.Problem],
) -> dict[str, Any]:
    """Return the two tables joined. Each key that both have adds a problem to `wrong`."""
    merged = dict(into)
    for key, value in values.items():
        here = (*path, key)
        if key not in merged:
            merged[key] = value
        elif isinstance(value, dict) and isinstance(merged[key], dict):
            merged[key] = _merged(merged[key], value, here, part, before, wrong)
        else:
            file, line = next(_places(before, here))
            sentence = f"is already set in {file}:{line}; keep one of the two"
            wrong.append(part.problem(here, "duplicate_key", sentence))
    return merged


def _places(before: list[source.Source], path: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    """Yield the file and line of a key: first files that have the whole path, then the nearest line in agent.toml."""
    yield from ((each.file, each.lines.find(path)) for each in before if each.lines.depth(path) == len(path))
    yield before[0].file, before[0].lines.find(path)
