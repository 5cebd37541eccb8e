"""Search: a random sample of the matches, sorted only after sampling, as the vendor answers it.

1. Without `limit` at most 64 rows, never more than 512. Absence from an answer proves nothing.
2. The n-th search of a seed draws the same sample in every run.
3. Now and then one offer appears twice in an answer, with two scores.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from agent.simulator.api_calls import Reply
from agent.simulator.vast import calls
from agent.simulator.vast.calls import Call
from agent.simulator.vast.http import filter_grammar, offer_rows
from agent.simulator.vast.http.call_gate import Gate
from agent.simulator.vast.http.filter_grammar import Test
from agent.simulator.vast.http.offer_rows import OfferRows
from agent.simulator.vast.model import Slice
from agent.simulator.vast.world import World

DEFAULT_LIMIT = 64
MOST_ROWS = 512
# Share of the answers in which one offer appears twice. Duplicates are recorded, their frequency is assumed.
DUPLICATE_SHARE = 0.05
MOST_QUESTIONS = 32
"""The most questions whose fitting offers are remembered: a daemon asks the same few again and again."""

Row = dict[str, Any]


class Search:
    """Answers searches of one world."""

    def __init__(self, world: World, gate: Gate, seed: int) -> None:
        """Count the searches from zero."""
        self._world = world
        self._gate = gate
        self._seed = seed
        self._asked = 0
        self.rows = OfferRows(world)
        self._fitting: dict[tuple[bytes, frozenset[str]], tuple[Slice, ...]] = {}

    def answer(self, call: Call) -> Reply:
        """Answer a search in any of the forms in which clients send it."""
        body = _question(call)
        if body is None:
            return calls.refuse(400, "invalid_request", "Invalid json body")
        self._asked += 1
        dice = random.Random(f"{self._seed}/search/{self._asked}")
        rows = self.find(body, dice)
        if "empty_list" in call.struck:
            rows = []
        elif (fault := call.struck.get("partial_list")) is not None:
            rows = rows[: int(len(rows) * fault.number("keep", 0.5))]
        self._gate.count_rows(call, len(rows))
        return calls.ok({"success": True, "offers": _columns(rows, call.fields.get("select_cols"))})

    def find(self, body: Mapping[str, Any], dice: random.Random) -> list[Row]:
        """Draw the rows of one answer."""
        kind = offer_rows.KINDS.get(str(body.get("type") or "ondemand"), offer_rows.ON_DEMAND)
        storage = filter_grammar.to_number(body.get("allocated_storage")) or offer_rows.DEFAULT_STORAGE_GB
        matches = list(self._matches(body, kind, storage))
        limit = _limit(body.get("limit"))
        if len(matches) > limit:
            matches = [matches[index] for index in sorted(dice.sample(range(len(matches)), limit))]
        rows = [self.rows.full(slice_, prices) for slice_, prices in matches]
        if rows and dice.random() < DUPLICATE_SHARE:
            _double_one(rows, limit, dice)
        return _sorted(rows, body.get("order"))

    def _matches(self, body: Mapping[str, Any], kind: str, storage: float) -> Iterator[tuple[Slice, Row]]:
        columns = self.rows.all_columns()
        tests = filter_grammar.compile_search(body, columns)
        if filter_grammar.to_number(body.get("allocated_storage")) is not None:
            tests.append(("disk_space", filter_grammar.compile_one("gte", storage)))
        fixed_tests = [(name, test) for name, test in tests if name not in offer_rows.MOVING_COLUMNS]
        moving_tests = [(name, test) for name, test in tests if name in offer_rows.MOVING_COLUMNS]
        for slice_ in self._fitting_of((msgspec.json.encode(body), columns), fixed_tests):
            if not self._world.is_listed(slice_):
                continue
            prices = self.rows.prices(slice_, kind, storage)
            if prices is not None and _holds(moving_tests, prices):
                yield slice_, prices

    def _fitting_of(
        self, question: tuple[bytes, frozenset[str]], tests: Sequence[tuple[str, Test]]
    ) -> tuple[Slice, ...]:
        """Return the slices that fit a question by the columns that never change, whether they are listed or not."""
        fitting = self._fitting.get(question)
        if fitting is None:
            if len(self._fitting) >= MOST_QUESTIONS:
                self._fitting.clear()
            every = self._world.slices.values()
            fitting = self._fitting[question] = tuple(each for each in every if _holds(tests, self.rows.fixed(each)))
        return fitting


def _question(call: Call) -> dict[str, Any] | None:
    if call.is_body_broken:
        return None
    question: Any = call.body
    if question is None and "q" in call.query:
        try:
            question = msgspec.json.decode(call.query["q"])
        except msgspec.DecodeError:
            return None
    if question is None:
        return {}
    if not isinstance(question, dict):
        return None
    inner = question.get("q")
    return inner if isinstance(inner, dict) else question


def _limit(value: object) -> int:
    number = filter_grammar.to_number(value)
    if number is None or number < 1:
        return DEFAULT_LIMIT
    return min(int(number), MOST_ROWS)


def _holds(tests: Sequence[tuple[str, Test]], row: Mapping[str, Any]) -> bool:
    return all(test(row.get(name)) for name, test in tests)


def _double_one(rows: list[Row], limit: int, dice: random.Random) -> None:
    scored = [row for row in rows if row["score"]]
    if not scored:
        return
    twin = dict(dice.choice(scored))
    twin["score"] = twin["score"] * (0.9 + 0.09 * dice.random())
    if len(rows) >= limit:
        rows.remove(dice.choice([row for row in rows if row["id"] != twin["id"]] or rows))
    rows.append(twin)


def _sorted(rows: list[Row], order: object) -> list[Row]:
    directives = order if isinstance(order, list) and order else [["score", "desc"]]
    # Sorting by the last directive first: Python's sort keeps the order of equals.
    for directive in reversed(directives):
        if not isinstance(directive, list) or not directive:
            continue
        column = str(directive[0])
        is_descending = len(directive) > 1 and str(directive[1]).lower() == "desc"
        present = [row for row in rows if row.get(column) is not None]
        absent = [row for row in rows if row.get(column) is None]
        present.sort(key=lambda row, column=column: _comparable(row[column]), reverse=is_descending)  # type: ignore[misc]
        rows = present + absent
    return rows


def _comparable(cell: object) -> tuple[int, float, str]:
    number = None if isinstance(cell, str) else filter_grammar.to_number(cell)
    return (0, number, "") if number is not None else (1, 0.0, str(cell))


def _columns(rows: list[Row], wanted: object) -> list[Row]:
    if not isinstance(wanted, list) or not wanted or "*" in wanted:
        return rows
    return [{str(name): row.get(str(name)) for name in wanted} for row in rows]
