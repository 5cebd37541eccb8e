"""The candidate of a tuning loop: the numbers of a search, with held-out scores, a chart and a file."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agent.cli.lab import running
from agent.cli.lab import tune as lab_tune
from agent.cli.shared import exits, own_strategies, session
from agent.cli.tune_loop import loop_data
from agent.cli.tune_loop.loop import Loop, Refusal, now

if TYPE_CHECKING:
    from agent.lab.bench.comparison import Tunable


def search(loop: Loop, done: Mapping[str, Any]) -> dict[str, Any]:
    """Search, score held out, and keep the tuned numbers beside the records. A stopped search continues."""
    from agent.lab.tuning import number_search, tuned_file
    from agent.lab.tuning import study as studies

    asked, start = loop_data.asked_of(loop, done), loop_data.started(loop, done)
    storage = f"sqlite:///{(loop.records.folder / 'search.sqlite3').absolute()}"
    order = number_search.Order(
        storage=storage,
        ends=studies.Ends(asked["trials"], asked["trials"]),
        folds=asked["folds"],
        seed=asked["seed"],
        workers=loop.workers,
        keys=loop_data.keys_of(asked),
        beside=start.shipped,
    )
    with running.honest(), session.waiting("searching"):
        tuning = number_search.tune(start.problem, start.strategy, order)
        tuned_file.write(loop.candidate, lab_tune.text(tuning, start.file, loop.candidate))
    document = lab_tune.document(tuning, asked["problem"], studies.shown(storage), asked["seed"])
    record = loop.records.write(
        "search", now(), {"data": done["data"]["digest"], "seed": asked["seed"], "result": document}
    )
    loop.say("search", _held_out(record))
    return record


def _held_out(record: Mapping[str, Any]) -> str:
    held, shipped = record["result"]["held_out"], record["result"].get("held_out_beside_shipped")
    tuned = ", ".join(f"{key} = {value}" for key, value in record["result"]["tuned"].items())
    others = f"; {shipped['shipped_mean_cost']:.4g} with the shipped numbers" if shipped else ""
    low, high = held["ci95"]
    sure = "not known" if low is None or high is None else f"{low:+.3g} to {high:+.3g}"
    return (
        f"{tuned}; held out, {held['runs']} runs: {held['tuned_mean_cost']:.4g} a run, "
        f"{held['shipped_mean_cost']:.4g} before ({held['difference']:+.3g}, 95 % {sure}){others}"
    )


def chart(loop: Loop, done: Mapping[str, Any]) -> dict[str, Any]:
    """Draw the tuned numbers beside the earlier ones and the lab's baseline, as one HTML page."""
    from agent.lab.page import html, plots, saved_table

    start, asked = loop_data.started(loop, done), loop_data.asked_of(loop, done)
    own = own_strategies.of_path(str(loop.candidate))
    problem: Tunable = start.problem.with_params(own.name, own.params)
    names = (own.name, start.strategy, problem.baseline)
    tables = running.compared(running.Contest(problem, names, start.strategy), loop.workers, asked["seed"])
    saved = [saved_table.table(each.document()) for each in tables]
    note = f"{_held_out(done['search'])}. The tables are of all runs, including the runs of the fit."
    drawn = [each for each in plots.of_saved(saved) if not isinstance(each, str)]
    page = loop.records.folder / "side-by-side.html"
    page.write_text(html.page(saved, drawn, [note]), "utf-8")
    record = loop.records.write(
        "chart", now(),
        {"data": done["data"]["digest"], "seed": asked["seed"], "page": str(page),
         "tables": [each.document() for each in tables]},
    )  # fmt: skip
    loop.say("chart", f"{own.name} beside {start.strategy}: {page}")
    return record


def write(loop: Loop, done: Mapping[str, Any]) -> dict[str, Any]:
    """Write the own file, unless the numbers are no better on held-out data."""
    from agent.lab.tuning import tuned_file

    held = done["search"]["result"]["held_out"]
    is_later = held["tuned_late"] > held["shipped_late"]
    if (held["difference"] >= 0 or is_later) and not loop.is_forced:
        how = "worse" if held["difference"] > 0 or is_later else "no better"
        raise Refusal(
            f"nothing is written: held out, the tuned numbers are {how} ({held['tuned_mean_cost']:.4g} a run, "
            f"{held['shipped_mean_cost']:.4g} before; late {held['tuned_late']}, {held['shipped_late']} before); "
            "search on other data with --again, or write them anyway with --force"
        )
    text = loop.candidate.read_text("utf-8")
    loop.file.parent.mkdir(parents=True, exist_ok=True)
    try:
        tuned_file.write(loop.file, text)
    except tuned_file.WriteError as error:
        exits.stop(exits.FAILED, [str(error)])
    own = own_strategies.of_path(str(loop.file))
    record = loop.records.write(
        "file", now(),
        {"data": done["data"]["digest"], "seed": done["data"]["seed"], "file": str(loop.file), "numbers": own.digest,
         "is_forced": loop.is_forced, "text": text},
    )  # fmt: skip
    loop.say("file", f"{loop.file}, digest of its numbers {own.digest}")
    return record
