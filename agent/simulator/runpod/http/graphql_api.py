"""GraphQL for any client: parsing and validation by graphql-core, the answers in the vendor's envelope.

| case | HTTP | body |
|---|---|---|
| refused by the schema | 400 | errors with GRAPHQL_PARSE_FAILED or GRAPHQL_VALIDATION_FAILED, no data |
| variables that do not fit | 400 | errors with BAD_USER_INPUT, no data |
| refused by the market | 200 | errors with path and code, the field null |
| success | 200 | data, and no key `errors` at all |
"""

import contextlib
import functools
from collections.abc import Iterable, Mapping
from typing import Any

import graphql
import msgspec

from agent.simulator.api_calls import Reply
from agent.simulator.runpod.http import calls, graphql_offers, graphql_plain, graphql_pods, graphql_schema
from agent.simulator.runpod.http.calls import Call
from agent.simulator.runpod.http.surface import Surface
from agent.simulator.runpod.model import Refused
from agent.simulator.runpod.sales_modes import Mode

_CODES = {
    Refused.NO_STOCK: "SUPPLY_CONSTRAINT",
    Refused.NO_FREE_GPUS: "SUPPLY_CONSTRAINT",
    Refused.NO_SPOT: "RUNPOD",
    Refused.BID_TOO_LOW: "RUNPOD",
}


def answer(surface: Surface, call: Call) -> Reply:
    """Answer a question whose key is known or missing."""
    text = call.fields.get("query")
    if call.method != "POST" or not isinstance(text, str):
        return _refuse([graphql.GraphQLError("GraphQL operations must contain a non-empty `query`.")], "BAD_REQUEST")
    has_spot = not surface.world.mode.includes(Mode.SPOT_REMOVED)
    try:
        document, errors = _read(text, has_spot=has_spot)
    except graphql.GraphQLError as error:
        return _refuse([error], "GRAPHQL_PARSE_FAILED")
    if errors:
        return _refuse(errors, "GRAPHQL_VALIDATION_FAILED")
    if _is_about_offers(document):
        return surface.catalogue(msgspec.json.encode(call.fields), lambda: _executed(surface, call, document))
    return _executed(surface, call, document)


def _executed(surface: Surface, call: Call, document: graphql.DocumentNode) -> Reply:
    variables, roots = call.fields.get("variables"), _roots(surface, call)
    name, has_spot = call.fields.get("operationName"), not surface.world.mode.includes(Mode.SPOT_REMOVED)
    with contextlib.suppress(Refused, graphql.GraphQLError):
        # The executor reports a refusal with its place; a query changes nothing, so it may run twice.
        plain = _plain(call.fields["query"], msgspec.json.encode(variables), has_spot=has_spot)
        if plain is not None and name is None:
            return calls.answer({"data": plain(roots)})
    result = graphql.execute_sync(
        graphql_schema.schema(has_spot=has_spot),
        document,
        root_value=roots,
        variable_values=variables if isinstance(variables, dict) else None,
        operation_name=name,
    )
    failed = result.errors or []
    if failed and result.data is None and failed[0].path is None:
        return _refuse(failed, "BAD_USER_INPUT")
    if not failed:
        return calls.answer({"data": result.data})
    return calls.answer({"errors": [_error_row(error) for error in failed], "data": result.data})


@functools.lru_cache(maxsize=256)
def _read(text: str, *, has_spot: bool) -> tuple[graphql.DocumentNode, list[graphql.GraphQLError]]:
    """Parse and validate a question; clients ask the same ones again and again. Raises GraphQLError."""
    document = graphql.parse(text)
    return document, graphql.validate(graphql_schema.schema(has_spot=has_spot), document)


@functools.lru_cache(maxsize=256)
def _plain(text: str, variables: bytes, *, has_spot: bool) -> graphql_plain.Complete | None:
    """Compile a valid question and its variables, in JSON; None where it is not plain."""
    document, _ = _read(text, has_spot=has_spot)
    given = msgspec.json.decode(variables)
    schema = graphql_schema.schema(has_spot=has_spot)
    return graphql_plain.compiled(schema, document, given if isinstance(given, dict) else {})


def _is_about_offers(document: graphql.DocumentNode) -> bool:
    """Return whether every root field of a document is one of the catalogue."""
    return all(
        isinstance(each, graphql.FieldNode) and each.name.value in graphql_offers.NAMES
        for definition in document.definitions
        if isinstance(definition, graphql.OperationDefinitionNode)
        for each in definition.selection_set.selections
    )


def _roots(surface: Surface, call: Call) -> Mapping[str, Any]:
    return {**graphql_offers.fields(surface), **graphql_pods.fields(surface, call)}


def _refuse(errors: Iterable[graphql.GraphQLError], code: str) -> Reply:
    rows = [
        {
            "message": error.message,
            "locations": [{"line": place.line, "column": place.column} for place in error.locations or []],
            "extensions": {"code": code},
        }
        for error in errors
    ]
    return calls.answer({"errors": rows}, 400)


def _error_row(error: graphql.GraphQLError) -> dict[str, Any]:
    cause = error.original_error
    if isinstance(cause, Refused):
        code = _CODES.get(cause.code, "RUNPOD")
        return {"message": cause.sentence, "path": error.path, "extensions": {"code": code}}
    return {
        "message": "Something went wrong. Please try again later or contact support.",
        "path": error.path,
        "extensions": {"code": "INTERNAL_SERVER_ERROR"},
    }
