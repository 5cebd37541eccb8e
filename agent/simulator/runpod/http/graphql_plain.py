"""Plain questions of GraphQL as functions: graphql-core's executor takes many times as long for the same answer.

A question is plain if it is one query of fields and arguments alone: no alias, fragment or directive, and no field
named twice. The executor answers everything else, and every question that fails here.
"""

from collections.abc import Callable, Mapping
from typing import Any

import graphql
from graphql.execution.values import VariableValues

Complete = Callable[[Any], Any]
"""Turns a resolver's result, which is not None, into JSON of the field's type."""


class _NotPlainError(Exception):
    """The executor has to answer."""


def compiled(
    schema: graphql.GraphQLSchema, document: graphql.DocumentNode, variables: dict[str, Any]
) -> Complete | None:
    """Return the function that makes a valid document's data from its root resolvers; None if only the executor can."""
    match document.definitions:
        case [graphql.OperationDefinitionNode(operation=graphql.OperationType.QUERY) as query]:
            values = graphql.get_variable_values(schema, query.variable_definitions or (), variables)
        case _:
            return None
    if schema.query_type is None or not isinstance(values, VariableValues):
        return None
    try:
        return _of_object(schema.query_type, query.selection_set, values)
    except (_NotPlainError, graphql.GraphQLError):
        return None


def _of_object(
    kind: graphql.GraphQLObjectType, asked: graphql.SelectionSetNode | None, values: VariableValues
) -> Complete:
    fields = {}
    for node in asked.selections if asked is not None else ():
        if not isinstance(node, graphql.FieldNode) or node.alias or node.directives:
            raise _NotPlainError
        name = node.name.value
        field = kind.fields.get(name)
        if field is None or name in fields:
            raise _NotPlainError
        given = graphql.get_argument_values(field, node, values)
        fields[name] = given, _of_type(field.type, node, values)

    def complete(source: Mapping[str, Any]) -> dict[str, Any]:
        shown = {}
        for name, (given, completed) in fields.items():
            value = source.get(name)
            if callable(value):
                value = value(None, **given)
            shown[name] = completed(value) if value is not None else None
        return shown

    return complete


def _of_type(kind: graphql.GraphQLOutputType, node: graphql.FieldNode, values: VariableValues) -> Complete:
    if isinstance(kind, graphql.GraphQLList):
        completed = _of_type(kind.of_type, node, values)
        return lambda found: [completed(each) if each is not None else None for each in found]
    if isinstance(kind, graphql.GraphQLObjectType):
        return _of_object(kind, node.selection_set, values)
    if isinstance(kind, graphql.GraphQLScalarType | graphql.GraphQLEnumType):
        return kind.coerce_output_value
    raise _NotPlainError
