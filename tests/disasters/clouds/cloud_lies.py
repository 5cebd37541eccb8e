"""Lies of dstack's server: in the rows of runs and machines, and in the clouds of its project."""

from collections.abc import Callable
from typing import Any

Row = dict[str, Any]
RUN_STATES = ("terminated", "failed", "done", "terminating", "submitted", "pending", "running", "?")
MACHINE_STATES = ("terminated", "terminating", "idle", "?")
LABELS = (None, "somebody else's")


def identity(row: Row) -> None:
    """Give a run or a machine another id."""
    row["id"] = ("0" if row["id"][0] != "0" else "1") + row["id"][1:]


def label(row: Row, amount: float, other: str) -> None:
    """Give a run another label: in its tag alone, or with a name that is made of it."""
    if "run_spec" not in row:
        return
    told = (*LABELS, other, other)[int(amount) % 4]
    order = {**row["run_spec"]["configuration"], "tags": {"gpubid": told} if told is not None else None}
    row["run_spec"] = {**row["run_spec"], "configuration": order}


def price(row: Row, change: Callable[[float], Any], *, is_left_out: bool) -> None:
    """Change the price of a run's machine."""
    submission = row.get("latest_job_submission") or {}
    machine = submission.get("job_provisioning_data")
    if machine is None:
        return
    told = {**machine, "price": change(machine["price"])}
    if is_left_out:
        del told["price"]
    row["latest_job_submission"] = {**submission, "job_provisioning_data": told}


def state(row: Row, amount: float) -> None:
    """Give a run or a machine another state; one field, as every lie."""
    states = RUN_STATES if "run_spec" in row else MACHINE_STATES
    row["status"] = states[int(amount) % len(states)]


def place(row: Row) -> None:
    """Give the machine of a run another region, or a machine another cloud."""
    submission = row.get("latest_job_submission") or {}
    machine = submission.get("job_provisioning_data")
    if machine is not None:
        row["latest_job_submission"] = {**submission, "job_provisioning_data": {**machine, "region": "xx-yy-1"}}
    elif "run_spec" not in row:
        row["backend"] = "elsewhere"


def deleted(row: Row) -> None:
    """Call a run deleted."""
    row["deleted"] = True


def without_cloud(project: Row, amount: float) -> None:
    """Leave one cloud out of the project."""
    clouds = project["backends"]
    if clouds:
        del clouds[int(amount) % len(clouds)]
