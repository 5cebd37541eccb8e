"""JSON schemas of the configuration files. Editors use them to complete and check keys; `make check` uses them too."""

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pydantic
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from agent.config import document, problems
from agent.markets import registered_markets

DIALECT = "http://json-schema.org/draft-07/schema#"
DURATION = {"type": "string", "pattern": r"^(never|(\d+d)?(\d+h)?(\d+m)?(\d+s)?)$", "minLength": 2}


class _Generator(GenerateJsonSchema):
    """Writes durations and money as the files do."""

    def timedelta_schema(self, schema: core_schema.TimedeltaSchema) -> JsonSchemaValue:  # noqa: ARG002 - as overridden
        return dict(DURATION)

    def encode_default(self, dft: Any) -> Any:  # noqa: ANN401 - as overridden
        if isinstance(dft, timedelta):
            return problems.duration_text(dft)
        if isinstance(dft, Decimal):
            return float(dft)
        return super().encode_default(dft)


def agent_schema() -> dict[str, Any]:
    """Return the schema of agent.toml, with the markets that are part of gpubid."""
    records = {name: registered_markets.record(name) for name in registered_markets.shipped()}
    schema = _of(document.with_markets(records))
    # A file that includes others may leave every table to them. A start refuses a table that is missing in all files.
    required = schema.pop("required")
    return {"$schema": DIALECT, **schema, "if": {"not": {"required": ["include"]}}, "then": {"required": required}}


def strategy_schema(params: Mapping[str, type[pydantic.BaseModel]]) -> dict[str, Any]:
    """Return the schema of a strategy file: one of the installed strategies; the key `strategy` says which."""
    kinds = []
    for name, model in sorted(params.items()):
        kind = _of(model)
        kind["properties"] = {"strategy": {"const": name}, **kind.get("properties", {})}
        kind["required"] = ["strategy", *kind.get("required", [])]
        kinds.append(kind)
    return {"$schema": DIALECT, "title": "A strategy file", "oneOf": kinds}


def _of(model: type[pydantic.BaseModel]) -> dict[str, Any]:
    schema: dict[str, Any] = _without_null(model.model_json_schema(schema_generator=_Generator))
    return schema


def _without_null(schema: Any) -> Any:  # noqa: ANN401 - JSON
    """Return the schema without null, which TOML does not have."""
    if isinstance(schema, list):
        return [_without_null(item) for item in schema if item != {"type": "null"}]
    if not isinstance(schema, dict):
        return schema
    kept = {key: _without_null(item) for key, item in schema.items() if not (key == "default" and item is None)}
    ways = kept.get("anyOf", [])
    return {**ways[0], **{key: item for key, item in kept.items() if key != "anyOf"}} if len(ways) == 1 else kept
