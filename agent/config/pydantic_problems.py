"""The mistakes that pydantic found, as problems with a line and a fix."""

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import get_args, get_origin

import pydantic
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticUndefined

from agent.config import problems, value_kinds
from agent.config.files import lines, source

SECRET_KEYS = frozenset({"env", "env_from", "credential", "ssh_keys"})
"""Values under these keys are never repeated in a message."""

_WRONG_TYPE: Mapping[str, str] = {
    "string_type": "must be text in quotes",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false, without quotes",
    "list_type": "must be a list in brackets",
    "tuple_type": "must be a list in brackets",
    "dict_type": "must be a table",
    "model_type": "must be a table",
    "model_attributes_type": "must be a table",
}
_PLAIN: Mapping[str, tuple[str, str]] = {
    "extra_forbidden": ("unknown_key", "is not a key here"),
    "missing": ("missing_key", "is missing"),
    "finite_number": ("not_finite", "must be a finite number"),
}
_MEASURE: Mapping[str, tuple[str, str, str]] = {
    "greater_than": ("out_of_range", "gt", "must be more than {}"),
    "greater_than_equal": ("out_of_range", "ge", "must be at least {}"),
    "less_than": ("out_of_range", "lt", "must be less than {}"),
    "less_than_equal": ("out_of_range", "le", "must be at most {}"),
    "string_too_short": ("empty", "min_length", "must have at least {} characters"),
    "string_too_long": ("too_long", "max_length", "must have at most {} characters"),
    "too_short": ("empty", "min_length", "must have at least {} entries"),
    "too_long": ("too_long", "max_length", "must have at most {} entries"),
}


_ALTERNATIVES = frozenset({"constrained-int", "constrained-float", "constrained-str"})
"""How pydantic names a bounded value in the place of a mistake; other names of alternatives have a bracket."""
_PARTS = re.compile(r"(\w+)=(-?\d+)")


def problems_of(
    error: pydantic.ValidationError, read: source.Source, model: type[pydantic.BaseModel]
) -> list[problems.Problem]:
    """Return one problem for each mistake that pydantic found in the file."""
    found: dict[lines.Path, list[ErrorDetails]] = {}
    for details in error.errors(include_url=False):
        found.setdefault(_path(details), []).append(details)
    return [
        _problem(path, each, words, read, model)
        for path, all_of in found.items()
        if not _is_for_parts(path, all_of, found)
        for each, words in _alternatives(all_of)
    ]


def _path(details: ErrorDetails) -> lines.Path:
    """Return the key of a mistake. Where a key takes a value or a word, pydantic names these alternatives too."""
    return tuple(part for part in details["loc"] if part != "[key]" and not _is_alternative(part))


def _is_alternative(part: str | int) -> bool:
    return isinstance(part, str) and ("[" in part or part in _ALTERNATIVES)


def _is_for_parts(path: lines.Path, all_of: list[ErrorDetails], found: Mapping[lines.Path, object]) -> bool:
    """Return whether a list only counts as too short because of entries that are mistakes themselves."""
    is_short = all(details["type"] == "too_short" for details in all_of)
    return is_short and any(len(other) > len(path) and other[: len(path)] == path for other in found)


def _alternatives(all_of: list[ErrorDetails]) -> Iterator[tuple[ErrorDetails, str]]:
    """Yield the mistakes of one key. The words that it takes in place of a value belong to the mistake of the value."""
    words = [details for details in all_of if details["type"] == "literal_error"]
    values = [details for details in all_of if details["type"] != "literal_error"]
    if not values or not words:
        yield from ((details, "") for details in all_of)
        return
    spoken = ", ".join(str(details.get("ctx", {})["expected"]) for details in words).replace("'", '"')
    yield from ((details, spoken) for details in values)


def _problem(
    path: lines.Path, details: ErrorDetails, words: str, read: source.Source, model: type[pydantic.BaseModel]
) -> problems.Problem:
    code, wrong = _finding(details, path)
    if words:
        wrong, is_split, value = wrong.partition(", not ")
        wrong += f", or {words}{is_split}{value}"
    if code == "unknown_key":
        return read.problem(path, code, f"{wrong}; {problems.nearest(str(path[-1]), _keys(model, path[:-1]))}")
    fix = _fix(model, path)
    return read.problem(path, code, f"{wrong}; {fix}" if fix and ";" not in wrong else wrong)


def _finding(details: ErrorDetails, path: lines.Path) -> tuple[str, str]:
    kind, context = details["type"], details.get("ctx", {})
    is_value = ";" not in details["msg"] and not SECRET_KEYS.intersection(map(str, path))
    suffix = f", not {problems.shown(details['input'])}" if is_value else ""
    if kind in _PLAIN:
        return _PLAIN[kind]
    if kind in _WRONG_TYPE:
        return "wrong_type", _WRONG_TYPE[kind] + suffix
    if kind in _MEASURE:
        code, name, sentence = _MEASURE[kind]
        parts = "characters" if isinstance(details["input"], str) else "entries"
        sentence = sentence.format(_bound(context[name])).replace("entries", parts)
        return code, sentence + (suffix if code == "out_of_range" else "")
    if kind == "literal_error":
        return "unknown_value", f"must be {context['expected']}{suffix}".replace("'", '"')
    if kind == "string_pattern_mismatch":
        return value_kinds.SENTENCES.get(context["pattern"], ("bad_text", f"must match {context['pattern']}"))
    if kind == "value_error":
        return "bad_value", str(context.get("error", details["msg"]))
    return kind, details["msg"]


def _bound(value: object) -> str:
    """Return a bound as the file writes it. Pydantic gives that of a duration as Python writes it."""
    text = str(value)
    if not text.startswith("datetime.timedelta("):
        return text
    return problems.literal(timedelta(**{key: int(number) for key, number in _PARTS.findall(text)}))


def _fix(model: type[pydantic.BaseModel], path: lines.Path) -> str:
    """Return the fix: the key with the example that the model has for it."""
    table, field = _field(model, path)
    if field is None:
        return ""
    example = next(_examples(field), None)
    inner = next(_models(field.annotation), None)
    if inner is not None and example is None:
        if _is_list(field.annotation):
            keys = [part for part in path if isinstance(part, str)]
            return f"write each entry as a table, [[{problems.dotted(keys)}]]"
        return _table(inner, path, is_named=field.annotation is not inner)
    names = [part for part in path if isinstance(part, str)]
    name = next((part for part in reversed(names) if part in _named(table)), "")
    if example is not None:
        return f"write for example {name} = {problems.literal(example)}"
    default = field.get_default(call_default_factory=True, validated_data={})
    if default is PydanticUndefined or default is None:
        return ""
    return f"write for example {name} = {problems.literal(default)}"


def _table(inner: type[pydantic.BaseModel], path: lines.Path, *, is_named: bool) -> str:
    """Return the fix for a key that must be a table: the header to write, or those of which one is needed."""
    header = [*path, "NAME"] if is_named and len(path) == 1 else [*path]
    tables = [name for name, field in inner.model_fields.items() if any(_models(field.annotation))]
    if not tables or len(tables) < len(inner.model_fields):
        return f"write it as a table, [{problems.dotted(header)}]"
    return f"write at least one table of {', '.join(f'[{problems.dotted([*header, name])}]' for name in tables)}"


def _is_list(annotation: object) -> bool:
    """Return whether an annotation is a list, or may be one."""
    is_one = get_origin(annotation) in {list, tuple}
    return is_one or any(_is_list(part) for part in get_args(annotation))


def _examples(field: object) -> Iterator[object]:
    """Yield the examples of a field, also those of an annotation inside `... | None`."""
    if isinstance(field, FieldInfo):
        yield from field.examples or ()
        yield from _examples(field.annotation)
    for part in (*getattr(field, "__metadata__", ()), *get_args(field)):
        if part is not field:
            yield from _examples(part)


def _field(model: type[pydantic.BaseModel], path: lines.Path) -> tuple[type[pydantic.BaseModel], FieldInfo | None]:
    """Return the innermost field on `path`, with the model of that field."""
    found: tuple[type[pydantic.BaseModel], FieldInfo | None] = (model, None)
    table: type[pydantic.BaseModel] | None = model
    for part in path:
        if table is None:
            break
        field = _named(table).get(str(part))
        if field is None:
            continue
        found = (table, field)
        table = next(_models(field.annotation), None)
    return found


def _keys(model: type[pydantic.BaseModel], path: lines.Path) -> list[str]:
    _, field = _field(model, path)
    table = next(_models(field.annotation), None) if field is not None else model
    return list(_named(table)) if table is not None else []


def _named(table: type[pydantic.BaseModel]) -> dict[str, FieldInfo]:
    """Return the fields of a table by their keys; a key that is a word of Python has another name there."""
    return {field.alias or name: field for name, field in table.model_fields.items()}


def _models(annotation: object) -> Iterator[type[pydantic.BaseModel]]:
    """Yield the models inside an annotation such as `dict[str, Model]` or `Model | None`."""
    if isinstance(annotation, type) and issubclass(annotation, pydantic.BaseModel) and get_origin(annotation) is None:
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)
