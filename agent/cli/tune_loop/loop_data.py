"""The data of a tuning loop: the problem of the search, the numbers at its start, and the request."""

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from agent import strategy_files
from agent.cli.lab import tune as search
from agent.cli.lab.options import Options
from agent.cli.shared import last_good, ledger_questions, own_strategies
from agent.cli.tune_loop.loop import Loop, now, workload_of
from agent.cli.tune_loop.step_records import plain

DEFAULTS: Mapping[str, Any] = {
    "problem": "bids", "climates": "bidding_war", "seeds": "501-540", "hours": 8.0, "trials": 12, "folds": 1, "seed": 0,
}  # fmt: skip
"""Options of a search that ends within minutes on two cores, on days that chose no shipped number (`provenance`)."""
BIDS, RECORDED = "bids", "recorded"
"""The problems that run a workload of the configuration. `bids` needs none."""
KEYS: Mapping[str, str] = {"patient": "on_demand_share", "hedged": "on_demand_share"}
"""The number to search unless others are named. On so few days, a search of more numbers fits chance: four numbers
cost 3.5 % more held out (seeds 1-10 of bidding_war, 8 h each, 15 trials)."""
ALL_KEYS = "all"


def data(loop: Loop, _: Mapping[str, Any]) -> dict[str, Any]:
    """Build the problem and record its description with the whole request.

    Raises:
        ValueError: the request cannot be searched; nothing is recorded.
    """
    from agent.lab.tuning import search_space

    asked = {**DEFAULTS, **loop.given}
    own = own_strategies.of_path(str(loop.file)) if loop.file.exists() else None
    if own is not None:
        base = strategy_files.base(own)
        if asked.setdefault("strategy", base) != base:
            raise ValueError(f"{loop.file} has numbers of {base}, not of {asked['strategy']}; leave --strategy out")
    asked.setdefault("strategy", "patient")
    asked.setdefault("keys", KEYS.get(asked["strategy"], ALL_KEYS))
    if asked["problem"] == RECORDED:
        asked |= {"workload": workload_of(loop), "ledger": str(_fetched(loop))}
    elif asked["problem"] == BIDS and loop.config.exists():
        asked["workload"] = workload_of(loop)
    options = _options(loop, asked)
    built = search.tunable(asked["problem"], options)
    start = search.started(built, asked["strategy"], loop.file if own is not None else None, options)
    if (numbers := start.problem.params(start.strategy)) is not None:
        search_space.axes(numbers, keys_of(asked))
    cases = [case.key for case in built.cases()]
    record = loop.records.write(
        "data", now(),
        {"asked": asked, "seed": asked["seed"], "data": built.about(), "cases": cases,
         "started_from": None if start.file is None else start.file.read_text("utf-8")},
    )  # fmt: skip
    whose = f" of {asked['workload']}" if "workload" in asked else ""
    what = f"{asked['problem']}, {len(cases)} runs{whose} for {asked['strategy']}"
    loop.say("data", f"{what} ({loop.records.file('data')})")
    return record


def keys_of(asked: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the numbers to search, or None for all."""
    return None if asked["keys"] == ALL_KEYS else tuple(asked["keys"].split(","))


def _fetched(loop: Loop) -> Path:
    """Return a new copy of the configuration's ledger. The daemon writes to the original and deletes old searches."""
    to = (loop.records.folder / "ledger.sqlite").absolute()
    to.parent.mkdir(parents=True, exist_ok=True)
    to.unlink(missing_ok=True)
    ledger_questions.ledger(last_good.place(loop.config), lambda reader: reader.copy(to))
    return to


def asked_of(loop: Loop, done: Mapping[str, Any]) -> dict[str, Any]:
    """Return the request with which the loop began. Refuse a different request now."""
    asked: dict[str, Any] = done["data"]["asked"]
    other = {key: value for key, value in loop.given.items() if asked.get(key) != value}
    if loop.workload is not None and asked.get("workload", loop.workload) != loop.workload:
        other["workload"] = loop.workload
    if other:
        options = ", ".join(f"--{key} {asked.get(key)}" for key in sorted(other))
        raise ValueError(f"{loop.records.folder} was begun with {options}; leave that out, or begin again with --again")
    return asked


def _options(loop: Loop, asked: Mapping[str, Any]) -> Options:
    """Return the request as options of the lab's verbs."""
    known = {each.name for each in fields(Options)}
    given = {key: value for key, value in asked.items() if key in known}
    given |= {key: Path(given[key]) for key in ("traces", "ledger") if key in given}
    return replace(Options(), config=loop.config if "workload" in given else None, **given)


def started(loop: Loop, done: Mapping[str, Any]) -> search.Start:
    """Return the start of the search: the numbers as they were when the loop began.

    Raises:
        ValueError: the data have changed since the loop began.
    """
    asked = asked_of(loop, done)
    options = _options(loop, asked)
    built = search.tunable(asked["problem"], options)
    if plain(built.about()) != done["data"]["data"]:
        what = f"the workload {asked['workload']} has" if "workload" in asked else "the data have"
        raise ValueError(f"{what} changed since {loop.records.folder} was begun; begin again with --again")
    text = done["data"]["started_from"]
    if text is None:
        return search.started(built, asked["strategy"], None, options)
    before = loop.records.folder / f"{loop.name}.before.toml"
    before.write_text(text, "utf-8")
    return search.started(built, asked["strategy"], before, options)
