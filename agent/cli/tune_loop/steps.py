"""The steps of `gpubid tune`, in order: each reads what the ones before wrote down, and none is done twice."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent import tuning
from agent.cli.lab import running
from agent.cli.lab import tune as search
from agent.cli.lab.options import Options
from agent.cli.shared import ask, exits, last_good, own_strategies, session
from agent.cli.tune_loop import shadow_edit
from agent.cli.tune_loop.records import STEPS, Records, plain
from agent.clock import SystemClock

if TYPE_CHECKING:
    from agent.lab.bench.comparison import Tunable

DEFAULTS: Mapping[str, Any] = {
    "problem": "bids", "climates": "bidding_war", "seeds": "501-540", "hours": 8.0, "trials": 12, "folds": 1, "seed": 0,
}  # fmt: skip
"""A search that ends within minutes on two cores, on days that no shipped number was chosen on (`provenance`)."""
BIDS, RECORDED = "bids", "recorded"
"""The problems that run a workload of the configuration; `bids` needs none."""
KEYS: Mapping[str, str] = {"patient": "on_demand_share", "hedged": "on_demand_share"}
"""The number that is searched unless others are named. On so few days more numbers are fitted to luck: four of them
cost 3.5 % more held out (seeds 1-10 of bidding_war, 8 h each, 15 trials)."""
ALL_KEYS = "all"
NAMED = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


class Refusal(Exception):
    """A step may not be done; the sentence says why and how to overrule it. Nothing was changed."""


@dataclass(frozen=True, slots=True)
class Loop:
    """One loop: the strategy's name, where its records are, and what was asked for this time."""

    name: str
    config: Path
    records: Records
    given: Mapping[str, Any]
    workload: str | None
    workers: int
    after: timedelta
    is_forced: bool
    is_quiet: bool = False
    said: list[str] = field(default_factory=list)

    @property
    def directory(self) -> Path:
        """The folder of own strategy files: the configuration's, or `strategies` beside it."""
        named = session.read(self.config)[0].strategies if self.config.exists() else None
        return named or self.config.parent / "strategies"

    @property
    def file(self) -> Path:
        """The strategy's own file."""
        return self.directory / f"{self.name}.toml"

    @property
    def candidate(self) -> Path:
        """The tuned numbers before they are written to the own file."""
        return self.records.folder / f"{self.name}.toml"

    def say(self, step: str, sentence: str) -> None:
        """Print what a step did, and keep it."""
        self.said.append(f"{STEPS.index(step) + 1} {step}: {sentence}")
        if not self.is_quiet:
            session.say(self.said[-1])


def run(loop: Loop, *, promotes: bool, begins_anew: bool) -> None:
    """Do every step that is not done and can be.

    Raises:
        ValueError: something cannot be done as asked; the message says what to do.
        Refusal: a step is refused until it is overruled.
        OSError: a file cannot be written.
    """
    if not loop.name or not set(loop.name) <= NAMED:
        raise ValueError(f"{loop.name!r} is no name for a strategy; write letters, digits, dots, dashes, underscores")
    if loop.name in tuning.installed():
        raise ValueError(
            f"{loop.name} is a shipped strategy; name your own, and begin with it by --strategy {loop.name}"
        )
    if begins_anew and (aside := loop.records.put_aside(_now())) is not None:
        loop.say("data", f"begins anew; the records so far are in {aside}")
    done: dict[str, dict[str, Any]] = {}
    _step(loop, done, "data", _data)
    _asked(loop, done)
    for step, work in (("search", _search), ("chart", _chart), ("file", _file), ("shadow", _shadow)):
        _step(loop, done, step, work)
    day = _day(loop, done)
    if day is not None:
        done["day"] = day
    if promotes:
        _promote(loop, done)


def _step(loop: Loop, done: dict[str, dict[str, Any]], step: str, work: Callable[..., dict[str, Any]]) -> None:
    before = loop.records.read(step)
    done[step] = before or work(loop, done)
    if before is not None:
        loop.say(step, f"done {before['at'][:16]} ({loop.records.file(step)}, digest {before['digest']})")


def _now() -> datetime:
    return SystemClock().now()


def _data(loop: Loop, _: Mapping[str, Any]) -> dict[str, Any]:
    """Build the problem and write down what it is, with everything that was asked."""
    asked = {**DEFAULTS, **loop.given}
    own = own_strategies.of_path(str(loop.file)) if loop.file.exists() else None
    if own is not None:
        base = tuning.base(own)
        if asked.setdefault("strategy", base) != base:
            raise ValueError(f"{loop.file} has numbers of {base}, not of {asked['strategy']}; leave --strategy out")
    asked.setdefault("strategy", "patient")
    asked.setdefault("keys", KEYS.get(asked["strategy"], ALL_KEYS))
    if asked["problem"] == RECORDED:
        asked |= {"workload": _workload(loop), "ledger": str(_fetched(loop))}
    elif asked["problem"] == BIDS and loop.config.exists():
        asked["workload"] = _workload(loop)
    options = _options(loop, asked)
    built = search.tunable(asked["problem"], options)
    start = search.started(built, asked["strategy"], loop.file if own is not None else None, options)
    cases = [case.key for case in built.cases()]
    made = loop.records.write(
        "data", _now(),
        {"asked": asked, "seed": asked["seed"], "data": built.about(), "cases": cases,
         "started_from": None if start.file is None else start.file.read_text("utf-8")},
    )  # fmt: skip
    whose = f" of {asked['workload']}" if "workload" in asked else ""
    what = f"{asked['problem']}, {len(cases)} runs{whose} for {asked['strategy']}"
    loop.say("data", f"{what} ({loop.records.file('data')})")
    return made


def _fetched(loop: Loop) -> Path:
    """Return a new copy of the configuration's ledger: a daemon writes to it, and forgets old searches."""
    to = (loop.records.folder / "ledger.sqlite").absolute()
    to.parent.mkdir(parents=True, exist_ok=True)
    to.unlink(missing_ok=True)
    ask.ledger(last_good.place(loop.config), lambda reader: reader.copy(to))
    return to


def _asked(loop: Loop, done: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the loop was begun with; what is asked otherwise now is refused."""
    asked: dict[str, Any] = done["data"]["asked"]
    other = {key: value for key, value in loop.given.items() if asked.get(key) != value}
    if loop.workload is not None and asked.get("workload", loop.workload) != loop.workload:
        other["workload"] = loop.workload
    if other:
        told = ", ".join(f"--{key} {asked.get(key)}" for key in sorted(other))
        raise ValueError(f"{loop.records.folder} was begun with {told}; leave that out, or begin anew with --again")
    return asked


def _options(loop: Loop, asked: Mapping[str, Any]) -> Options:
    known = {each.name for each in fields(Options)}
    given = {key: value for key, value in asked.items() if key in known}
    given |= {key: Path(given[key]) for key in ("traces", "ledger") if key in given}
    return replace(Options(), config=loop.config if "workload" in given else None, **given)


def _started(loop: Loop, done: Mapping[str, Any]) -> search.Start:
    """Return where the search starts: the numbers as they were when the loop began.

    Raises:
        ValueError: the data are others than those that the loop was begun with.
    """
    asked = _asked(loop, done)
    options = _options(loop, asked)
    built = search.tunable(asked["problem"], options)
    if plain(built.about()) != done["data"]["data"]:
        what = f"the workload {asked['workload']} has" if "workload" in asked else "the data have"
        raise ValueError(f"{what} changed since {loop.records.folder} was begun; begin anew with --again")
    text = done["data"]["started_from"]
    if text is None:
        return search.started(built, asked["strategy"], None, options)
    before = loop.records.folder / f"{loop.name}.before.toml"
    before.write_text(text, "utf-8")
    return search.started(built, asked["strategy"], before, options)


def _search(loop: Loop, done: Mapping[str, Any]) -> dict[str, Any]:
    """Search, score held out, and keep the tuned numbers beside the records; a stopped search goes on where it was."""
    from agent.lab.tuning import number_search, tuned_file
    from agent.lab.tuning import study as studies

    asked, start = _asked(loop, done), _started(loop, done)
    storage = f"sqlite:///{(loop.records.folder / 'search.sqlite3').absolute()}"
    order = number_search.Order(
        storage=storage,
        ends=studies.Ends(asked["trials"], asked["trials"]),
        folds=asked["folds"],
        seed=asked["seed"],
        workers=loop.workers,
        keys=None if asked["keys"] == ALL_KEYS else tuple(asked["keys"].split(",")),
        beside=start.shipped,
    )
    with running.honest(), session.waiting("searching"):
        made = number_search.tune(start.problem, start.strategy, order)
        tuned_file.write(loop.candidate, search.text(made, start.file))
    told = search.document(made, asked["problem"], studies.shown(storage), asked["seed"])
    found = loop.records.write(
        "search", _now(), {"data": done["data"]["digest"], "seed": asked["seed"], "result": told}
    )
    loop.say("search", _held_out(found))
    return found


def _held_out(found: Mapping[str, Any]) -> str:
    held, shipped = found["result"]["held_out"], found["result"].get("held_out_beside_shipped")
    tuned = ", ".join(f"{key} = {value}" for key, value in found["result"]["tuned"].items())
    others = f"; {shipped['shipped_mean_cost']:.4g} with the shipped numbers" if shipped else ""
    low, high = held["ci95"]
    sure = "not known" if low is None or high is None else f"{low:+.3g} to {high:+.3g}"
    return (
        f"{tuned}; held out, {held['runs']} runs: {held['tuned_mean_cost']:.4g} a run, "
        f"{held['shipped_mean_cost']:.4g} before ({held['difference']:+.3g}, 95 % {sure}){others}"
    )


def _chart(loop: Loop, done: Mapping[str, Any]) -> dict[str, Any]:
    """Draw the tuned numbers beside those before and the lab's baseline, as one HTML page."""
    from agent.lab.page import html, plots, saved_table

    start, asked = _started(loop, done), _asked(loop, done)
    own = own_strategies.of_path(str(loop.candidate))
    problem: Tunable = start.problem.with_params(own.name, own.params)
    names = (own.name, start.strategy, problem.baseline)
    tables = running.compared(running.Contest(problem, names, start.strategy), loop.workers, asked["seed"])
    saved = [saved_table.table(each.document()) for each in tables]
    note = f"{_held_out(done['search'])}. The tables are of all runs, those that the numbers were fitted on among them."
    drawn = [each for each in plots.of_saved(saved) if not isinstance(each, str)]
    page = loop.records.folder / "side-by-side.html"
    page.write_text(html.page(saved, drawn, [note]), "utf-8")
    made = loop.records.write(
        "chart", _now(),
        {"data": done["data"]["digest"], "seed": asked["seed"], "page": str(page),
         "tables": [each.document() for each in tables]},
    )  # fmt: skip
    loop.say("chart", f"{own.name} beside {start.strategy}: {page}")
    return made


def _file(loop: Loop, done: Mapping[str, Any]) -> dict[str, Any]:
    """Write the own file, unless the numbers are no better on what they were not fitted on."""
    from agent.lab.tuning import tuned_file

    held = done["search"]["result"]["held_out"]
    is_later = held["tuned_late"] > held["shipped_late"]
    if (held["difference"] >= 0 or is_later) and not loop.is_forced:
        how = "worse" if held["difference"] > 0 or is_later else "no better"
        raise Refusal(
            f"nothing is written: held out, the tuned numbers are {how} ({held['tuned_mean_cost']:.4g} a run, "
            f"{held['shipped_mean_cost']:.4g} before; late {held['tuned_late']}, {held['shipped_late']} before); "
            "search on other data with --again, or write them all the same with --force"
        )
    text = loop.candidate.read_text("utf-8")
    loop.file.parent.mkdir(parents=True, exist_ok=True)
    try:
        tuned_file.write(loop.file, text)
    except tuned_file.WriteError as error:
        exits.stop(exits.FAILED, [str(error)])
    own = own_strategies.of_path(str(loop.file))
    made = loop.records.write(
        "file", _now(),
        {"data": done["data"]["digest"], "seed": done["data"]["seed"], "file": str(loop.file), "numbers": own.digest,
         "is_forced": loop.is_forced, "text": text},
    )  # fmt: skip
    loop.say("file", f"{loop.file}, digest of its numbers {own.digest}")
    return made


def _shadow(loop: Loop, done: Mapping[str, Any]) -> dict[str, Any]:
    """Put it in the shadow of a workload: it decides on paper beside the live strategy, and spends nothing."""
    if not loop.config.exists():
        raise ValueError(f"there is no {loop.config}; write one with `gpubid init`, and run this again")
    work = done["data"]["asked"].get("workload") or _workload(loop)
    if work not in _workloads(loop):
        raise ValueError(f"{loop.config} has no workload {work} any more; begin anew with --again")
    changed = shadow_edit.put_in_shadow(loop.config, work, loop.name, loop.directory)
    made = loop.records.write(
        "shadow", _now(),
        {"data": done["data"]["digest"], "seed": done["data"]["seed"], "workload": work,
         "numbers": done["file"]["numbers"], "changed": [str(file) for file in changed]},
    )  # fmt: skip
    loop.say("shadow", f"{loop.name} is in the shadow of {work} in {', '.join(map(str, changed)) or loop.config}")
    return made


def _workloads(loop: Loop) -> list[str]:
    return [work.name for work in session.read(loop.config)[0].workloads]


def _workload(loop: Loop) -> str:
    names = _workloads(loop)
    if loop.workload is None and len(names) == 1:
        return names[0]
    if loop.workload not in names:
        raise ValueError(f"name the workload with --workload; there are {', '.join(names)}")
    return str(loop.workload)


def _day(loop: Loop, done: Mapping[str, Any]) -> dict[str, Any] | None:
    """Show how it did in the shadow; write it down once it has been there long enough."""
    before = loop.records.read("day")
    if before is not None and before["numbers"] != done["file"]["numbers"]:
        before = None
    work = done["shadow"]["workload"]
    row = _shadowed(loop, work)
    if row is None:
        what = "take it up with `gpubid reload`, or start `gpubid run`; run this again after a day"
        loop.say("day", f"{loop.name} has not decided yet; {what}")
        return before
    if row["digest"] != done["file"]["numbers"]:
        what = "take these up with `gpubid reload`, and run this again after a day"
        loop.say("day", f"{loop.name} is in the shadow of {work} with other numbers, since {row['since'][:16]}; {what}")
        return None
    span = datetime.fromisoformat(row["seen_at"]) - datetime.fromisoformat(row["since"])
    loop.say("day", f"{_hours(span):.1f} h in the shadow: {_beside(row)}")
    if span < loop.after:
        loop.say("day", f"it may be promoted after {_hours(loop.after):g} h; run this again then")
        return before
    made = loop.records.write(
        "day", _now(),
        {"data": done["data"]["digest"], "seed": done["data"]["seed"], "numbers": done["file"]["numbers"],
         "hours": _hours(span), "result": row},
    )  # fmt: skip
    if loop.records.read("promoted") is None:
        loop.say("day", f"written to {loop.records.file('day')}; next: gpubid tune {loop.name} --promote")
    return made


def _hours(span: timedelta) -> float:
    return span / timedelta(hours=1)


def _shadowed(loop: Loop, work: str) -> dict[str, Any] | None:
    """Return the account of the strategy in the shadow of a workload; None while there is none."""
    from agent.cli.watch import shadow
    from agent.config.settings import Config

    settings: Config = session.read(loop.config)[0]
    if session.may_read(settings.ledger) and not settings.ledger.exists():
        return None
    told = shadow.told(loop.config, work)
    return next((row for row in told["shadows"] if row["strategy"] == loop.name), None)


def _beside(row: Mapping[str, Any]) -> str:
    sides = []
    for name, figures in (("on paper", row["paper"]), ("live", row["live"])):
        each = figures["dollars_per_useful_hour"]
        per = "no useful hour" if each is None else f"${each:.4f} per useful hour"
        sides.append(f"{name} ${figures['dollars']:.4f}, {figures['useful_hours']:.1f} useful h, {per}")
    return "; ".join(sides)


def _promote(loop: Loop, done: Mapping[str, Any]) -> None:
    """Let it decide for the workload, if its day on paper was no dearer than the live one."""
    work = done["shadow"]["workload"]
    if loop.workload not in {None, work}:
        raise ValueError(
            f"{loop.name} is in the shadow of {work}; write gpubid tune {loop.name} --workload {work} --promote"
        )
    before = loop.records.read("promoted")
    if before is not None:
        loop.say("promoted", f"done {before['at'][:16]}; take it up with `gpubid reload`")
        return
    if not loop.is_forced:
        _refuse_promotion(loop, done)
    changed = shadow_edit.promote(loop.config, work, loop.name)
    loop.records.write(
        "promoted", _now(),
        {"data": done["data"]["digest"], "seed": done["data"]["seed"], "numbers": done["file"]["numbers"],
         "workload": work, "is_forced": loop.is_forced, "changed": [str(file) for file in changed]},
    )  # fmt: skip
    loop.say("promoted", f"{work} runs on {loop.name} once you take it up: gpubid reload")


def _refuse_promotion(loop: Loop, done: Mapping[str, Any]) -> None:
    day = done.get("day")
    if day is None:
        hours = _hours(loop.after)
        raise Refusal(f"{loop.name} has not been in the shadow for {hours:g} h; wait, or overrule with --force")
    if loop.file.exists() and own_strategies.of_path(str(loop.file)).digest != done["file"]["numbers"]:
        raise Refusal(f"{loop.file} was changed since it was tuned; begin anew with --again, or use --force")
    paper, live = (day["result"][side]["dollars_per_useful_hour"] for side in ("paper", "live"))
    if paper is None or (live is not None and paper > live):
        raise Refusal(f"on paper it did no better: {_beside(day['result'])}; keep it in the shadow, or use --force")
