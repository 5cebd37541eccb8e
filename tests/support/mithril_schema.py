"""The vendor's OpenAPI document of Mithril, where it is at hand, and whether an answer conforms to it.

It is beside the recordings, which GPUBID_RECORDED names. An object may have no key that the document does not name.
"""

import functools
import json
import os
import pathlib
import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jsonschema

_BESIDE = pathlib.Path(os.environ.get("GPUBID_RECORDED") or "/nonexistent").parent
FILE = _BESIDE / "reference" / "openapi" / "mithril.json"
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
SEEN: set[tuple[str, str, int]] = set()
"""Method, path and status of every answer that was held against the document."""


def faults(method: str, path: str, status: int, raw: bytes) -> list[str]:
    """Return how an answer departs from the document; an undeclared refusal has a sentence under `detail`."""
    if not FILE.exists():
        return []
    found = next((each for each in _operations() if each[0] == method and each[1].fullmatch(path)), None)
    declared = {} if found is None else found[3]
    if str(status) not in declared:
        return [] if status >= 400 and isinstance(json.loads(raw)["detail"], str) else [f"{status} is not declared"]
    assert found is not None
    SEEN.add((method, found[2], status))
    content = declared[str(status)].get("content")
    if content is None:
        return [] if not raw or status >= 400 else ["a body where none is declared"]
    schema = {**_strict(content["application/json"]["schema"]), "$defs": _models()}
    errors = jsonschema.Draft202012Validator(schema, format_checker=_FORMATS).iter_errors(json.loads(raw))
    return [f"{'/'.join(map(str, error.path))}: {error.message}" for error in errors]


def asked(method: str, target: str, body: bytes) -> list[str]:
    """Return how a request departs from the document: its route, its parameters, its body."""
    parts = urlsplit(target)
    found = next((each for each in _operations() if each[0] == method and each[1].fullmatch(parts.path)), None)
    if found is None:
        return ["the document has no such route"]
    operation = _document()["paths"][found[2]][method.lower()]
    known = {each["name"]: each for each in operation.get("parameters", ()) if each["in"] == "query"}
    given = parse_qs(parts.query, keep_blank_values=True)
    wrong = [f"{name} is no parameter" for name in given if name not in known]
    wrong += [f"{name} is missing" for name, each in known.items() if each.get("required") and name not in given]
    for name in given.keys() & known.keys():
        text = given[name][0]
        is_joined = known[name]["schema"].get("description", "").startswith("Comma-separated")
        values = [text.split(",") if is_joined else given[name], text, int(text) if text.isdigit() else text]
        if not any(_validator(_strict(known[name]["schema"])).is_valid(value) for value in values):
            wrong.append(f"{name} may not be {given[name]}")
    described = operation.get("requestBody")
    if described is not None:
        schema = _strict(described["content"]["application/json"]["schema"])
        wrong += [f"body: {each.message}" for each in _validator(schema).iter_errors(json.loads(body))]
    return wrong


def _validator(schema: Any) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator({**schema, "$defs": _models()}, format_checker=_FORMATS)


_FORMATS = jsonschema.FormatChecker(formats=["email"])


@_FORMATS.checks("datetime")
def _is_instant(value: object) -> bool:
    return not isinstance(value, str) or _INSTANT.fullmatch(value) is not None


@functools.cache
def _document() -> dict[str, Any]:
    return dict(json.loads(FILE.read_text()))


@functools.cache
def _operations() -> list[tuple[str, re.Pattern[str], str, dict[str, Any]]]:
    """Return method, pattern, path and answers of every operation, the most exact paths first."""
    paths = sorted(_document()["paths"].items(), key=lambda item: item[0].count("{"))
    return [
        (method.upper(), re.compile(re.sub(r"\{\w+\}", "[^/]+", path)), path, operation["responses"])
        for path, methods in paths
        for method, operation in methods.items()
    ]


@functools.cache
def _models() -> dict[str, Any]:
    return {name: _strict(schema) for name, schema in _document()["components"]["schemas"].items()}


def _strict(node: Any) -> Any:
    """Return a schema that allows null where it is `nullable`, and no key that it does not name."""
    if isinstance(node, list):
        return [_strict(each) for each in node]
    if not isinstance(node, dict):
        return node
    plain = {key: _strict(value) for key, value in node.items() if key not in ("nullable", "examples", "default")}
    if isinstance(plain.get("$ref"), str):
        plain = {"$ref": plain["$ref"].replace("#/components/schemas/", "#/$defs/")}
    if isinstance(plain.get("properties"), dict):
        plain.setdefault("additionalProperties", False)
    return {"anyOf": [plain, {"type": "null"}]} if node.get("nullable") is True else plain
