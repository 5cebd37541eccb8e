"""The routes of this market that a renter's program uses. All are POSTs."""

import re
from collections.abc import Callable, Sequence
from typing import Any

from agent.simulator.api_calls import Reply
from agent.simulator.dstack import assumed_figures
from agent.simulator.dstack.climate_table import Dstack
from agent.simulator.dstack.http import calls, views
from agent.simulator.dstack.http.calls import Call
from agent.simulator.dstack.model import Kind, Refused, Run
from agent.simulator.dstack.world import EMPTY, World
from agent.simulator.faults import Fault
from agent.simulator.instances import program

_NAME = re.compile(r"[a-z][a-z0-9-]{1,40}")
_UNKNOWN = "resource_not_exists"
_MOST_RUNS = 100
_MOST_LINES = 1000
Frozen = dict[Fault, tuple[list[dict[str, Any]], list[dict[str, Any]]]]


class Surface:
    """The server's surface: its world, and what a stale list showed when it froze."""

    def __init__(self, world: World) -> None:
        """Show a world."""
        self.world = world
        self._frozen: Frozen = {}

    def freeze(self, fault: Fault) -> None:
        """Freeze the lists for as long as a fault shows them."""
        if fault.name == "stale_list":
            runs = [views.run_row(run, self.world.project, self.world.now) for run in self.world.runs.values()]
            machines = [views.machine_row(one, self.world.project) for one in self.world.machines.values()]
            self._frozen[fault] = runs[::-1], machines[::-1]

    def runs(self, call: Call) -> list[dict[str, Any]]:
        """Return the runs that this caller sees, the newest first, with deleted ones as on the real server."""
        rows = [views.run_row(run, self.world.project, self.world.now) for run in self.world.runs.values()]
        return self._shown(call, rows[::-1], 0)

    def machines(self, call: Call) -> list[dict[str, Any]]:
        """Return the machines that this caller sees, the newest first."""
        rows = [views.machine_row(one, self.world.project) for one in self.world.machines.values()]
        return self._shown(call, rows[::-1], 1)

    def _shown(self, call: Call, rows: list[dict[str, Any]], which: int) -> list[dict[str, Any]]:
        struck = call.struck
        if "wrong_account" in struck or "empty_list" in struck:
            return []
        if (fault := struck.get("stale_list")) is not None:
            return self._frozen[fault][which] if fault in self._frozen else []
        if (fault := struck.get("partial_list")) is not None:
            return rows[len(rows) - int(len(rows) * fault.number("keep", 0.5)) :]
        return rows


def project(surface: Surface, call: Call) -> Reply:
    """Answer with the project and its clouds."""
    return calls.ok(views.project(surface.world, surface.world.project, "f" if "wrong_account" in call.struck else ""))


def get_fleet(surface: Surface, call: Call) -> Reply:
    """Answer with one fleet."""
    name = str(call.take("name", "id").get("name"))
    if name not in surface.world.fleets:
        raise Refused(400, "Resource not found", _UNKNOWN)
    return calls.ok(views.fleet(surface.world, surface.world.fleets[name], surface.world.project))


def make_fleet(surface: Surface, call: Call) -> Reply:
    """Make a fleet."""
    spec = call.take(needed=("plan", "force"))["plan"].get("spec") or {}
    made = surface.world.make_fleet(spec.get("configuration") or {})
    return calls.ok(views.fleet(surface.world, made, surface.world.project))


def plan(surface: Surface, call: Call) -> Reply:
    """Answer with the offers for an order."""
    body = call.take(
        *("max_offers", "reverse_offers", "full_offers", "unallocated_resources", "for_offers_only"),
        needed=("run_spec",),
    )
    spec, world = _spec(body["run_spec"]), surface.world
    order = spec["configuration"]
    size = ((order.get("resources") or {}).get("disk") or {}).get("size") or {}
    found = world.offered(order)
    rows = [views.offer(kind, float(size.get("min") or 100), is_free=_told_free(world, kind)) for kind in found]
    job = views.job_spec(str(spec.get("run_name") or "dry-run"), order)
    most = int(body.get("max_offers") or 50)
    dearest = max((kind.cents for kind in found), default=0) / 100
    jobs = [{"job_spec": job, "offers": rows[:most], "total_offers": len(rows), "max_price": dearest}]
    document = {"project_name": world.project, "user": "admin", "run_spec": spec, "job_plans": jobs, "action": "create"}
    return calls.ok({**document, "current_resource": None, "effective_run_spec": None})


def _told_free(world: World, kind: Kind) -> bool | None:
    """Return whether a machine of a type is free, or None where its cloud does not tell the server."""
    is_told = kind.backend not in assumed_figures.TELLS_NO_AVAILABILITY
    return world.free(kind) > 0 if is_told and world.climate.table(Dstack).tells_capacity else None


def apply(surface: Surface, call: Call) -> Reply:
    """Take an order."""
    ordered = call.take(needed=("plan", "force"))["plan"]
    if not isinstance(ordered, dict) or "run_spec" not in ordered:
        raise Refused(422, "Field required", where=("body", "plan", "run_spec"))
    spec = _spec(ordered["run_spec"])
    name = str(spec.get("run_name") or spec["configuration"].get("name") or "")
    if not _NAME.fullmatch(name):
        raise Refused(400, "Resource name should match regex '^[a-z][a-z0-9-]{1,40}$'", "error")
    if "sold_out" in call.struck:
        raise Refused(400, "No fleets found", "error")
    return calls.ok(views.run_row(surface.world.submit(spec, name), surface.world.project, surface.world.now))


def list_runs(surface: Surface, call: Call) -> Reply:
    """Answer with a page of runs."""
    body = call.take(
        *("project_name", "repo_id", "username", "only_active", "include_jobs", "job_submissions_limit"),
        *("prev_submitted_at", "prev_run_id", "limit", "ascending"),
    )
    if body.get("project_name") not in {None, surface.world.project}:
        return calls.ok([])
    most = min(int(body.get("limit") or _MOST_RUNS), _MOST_RUNS)
    page = _page(surface.runs(call), body.get("prev_run_id"), most)
    return calls.ok([row for row in page if not surface.world.runs[row["id"]].is_unreadable])


def get_run(surface: Surface, call: Call) -> Reply:
    """Answer with one run, also a deleted one by its id."""
    body = call.take("run_name", "id")
    for run in reversed(surface.world.runs.values()):
        is_meant = run.uuid == body.get("id") or (run.name == body.get("run_name") and not run.is_deleted)
        if is_meant and "wrong_account" not in call.struck:
            return calls.ok(views.run_row(run, surface.world.project, surface.world.now))
    raise Refused(400, "Run not found", _UNKNOWN)


def stop(surface: Surface, call: Call) -> Reply:
    """End runs by their names."""
    body = call.take(needed=("runs_names", "abort"))
    for name in body["runs_names"]:
        surface.world.stop(str(name), is_abort=bool(body["abort"]))
    return calls.ok(None)


def delete(surface: Surface, call: Call) -> Reply:
    """Hide finished runs by their names."""
    for name in call.take(needed=("runs_names",))["runs_names"]:
        surface.world.delete(str(name))
    return calls.ok(None)


def list_machines(surface: Surface, call: Call) -> Reply:
    """Answer with a page of machines."""
    body = call.take(
        *("project_names", "fleet_ids", "only_active", "include_imported", "prev_created_at", "prev_id"),
        *("limit", "ascending"),
    )
    if surface.world.project not in (body.get("project_names") or [surface.world.project]):
        return calls.ok([])
    return calls.ok(_page(surface.machines(call), body.get("prev_id"), int(body.get("limit") or 1000)))


def events(surface: Surface, call: Call) -> Reply:
    """Answer with the events of the creation of machines. The real server has more kinds, which nobody here needs."""
    wanted = call.fields.get("target_instances") or []
    if not 0 < len(wanted) <= 16:  # noqa: PLR2004 - as the server
        raise Refused(422, "List should have at least 1 item after validation", where=("body", "target_instances"))
    oldest = surface.world.now - assumed_figures.EVENT_SECONDS
    found = [one for one in surface.world.machines.values() if one.uuid in wanted and one.created >= oldest]
    return calls.ok([views.event(machine, surface.world, surface.world.project) for machine in found])


def poll_logs(surface: Surface, call: Call) -> Reply:
    """Answer with the last lines of a job, the newest first."""
    body = call.fields
    run = next((one for one in surface.world.runs.values() if one.job_uuid == body.get("job_submission_id")), None)
    if run is None or run.name != body.get("run_name"):
        raise Refused(400, "Job submission not found", _UNKNOWN)
    lines = _lines(run, surface.world.now)[::-1][: min(int(body.get("limit") or 100), _MOST_LINES)]
    return calls.ok(
        {"logs": [views.log_line(at, line) for at, line in lines], "external_url": None, "next_token": None}
    )


def _lines(run: Run, now: float) -> list[tuple[float, str]]:
    if run.running_since is not None:
        return program.lines(run, run.running_since, now)
    return program.lines(run, *run.ran) if run.ran is not None else []


def _spec(given: object) -> dict[str, Any]:
    if not isinstance(given, dict) or not isinstance(given.get("configuration"), dict):
        raise Refused(422, "Field required", where=("body", "run_spec", "configuration"))
    order = given["configuration"]
    if order.get("type") not in {"task", "service"}:
        raise Refused(422, "Input should be 'task'", where=("body", "run_spec", "configuration", "type"))
    if order["type"] == "service" and "port" not in order:
        raise Refused(422, "Field required", where=("body", "run_spec", "configuration", "service", "port"))
    for name in ("backends", "regions", "instance_types"):
        if order.get(name) is not None and not isinstance(order[name], list):
            raise Refused(422, "Input should be a valid list", where=("body", "run_spec", "configuration", name))
    return given


def _page(rows: Sequence[dict[str, Any]], after: object, most: int) -> list[dict[str, Any]]:
    ids = [row["id"] for row in rows]
    first = ids.index(after) + 1 if after in ids else 0
    return list(rows[first : first + most])


_OF_PROJECT: dict[str, Callable[[Surface, Call], Reply]] = {
    "fleets/get": get_fleet,
    "fleets/apply": make_fleet,
    "runs/get_plan": plan,
    "runs/apply": apply,
    "runs/get": get_run,
    "runs/stop": stop,
    "runs/delete": delete,
    "logs/poll": poll_logs,
}
_OF_SERVER: dict[str, Callable[[Surface, Call], Reply]] = {
    "/api/runs/list": list_runs,
    "/api/instances/list": list_machines,
    "/api/events/list": events,
}
_NOTHING_TO_DO = frozenset({"runs/stop", "runs/delete"})
_PATH = re.compile(r"/api/(project|projects)/([^/]+)/(.+)")


def _of_empty(surface: Surface, route: str) -> Reply:
    """Answer a call of the project that has no cloud, no fleet and no run."""
    if route == "get":
        return calls.ok({**views.project(surface.world, EMPTY, "e"), "backends": []})
    if route in _NOTHING_TO_DO:
        return calls.ok(None)
    raise Refused(400, "Resource not found", _UNKNOWN)


def answer(surface: Surface, call: Call) -> Reply:
    """Answer a call, or raise Refused."""
    match = _PATH.fullmatch(call.path)
    found = _OF_SERVER.get(call.path)
    if match is not None and match[1] == "project":
        found = _OF_PROJECT.get(match[3])
    elif match is not None and match[3] == "get":
        found = project
    if found is None:
        raise Refused(404, "Not Found")
    if call.method != "POST":
        raise Refused(405, "Method Not Allowed")
    # As on the real server: a path's project has any case, the project of a list its own (`list_runs`).
    if match is not None and match[2].casefold() != surface.world.project.casefold():
        if match[2] == EMPTY:
            return _of_empty(surface, match[3])
        raise Refused(404, "Not found")
    return found(surface, call)
