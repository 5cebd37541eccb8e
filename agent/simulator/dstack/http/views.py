"""Runs, machines, fleets and offers in the server's JSON, with every field that its own document requires."""

import base64
from collections.abc import Mapping
from typing import Any

from agent.simulator.dstack.http.calls import stamp
from agent.simulator.dstack.model import Kind, Machine, Run
from agent.simulator.dstack.world import World

_MIB = 1024
_AVAILABILITY = {True: "available", False: "not_available", None: "unknown"}
PROBE_SECONDS = 15.0
"""Seconds between two probes if the order does not say them, as in the server's own document."""


def user(world: World) -> dict[str, Any]:
    """Return the server's administrator, without the keys that the real one shows."""
    return {
        "id": world.user_id,
        "username": "admin",
        "created_at": stamp(world.start_time),
        "global_role": "admin",
        "email": None,
        "active": True,
        "permissions": {"can_create_projects": True},
    }


def project(world: World, name: str, suffix: str = "") -> dict[str, Any]:
    """Return the project with its clouds. With a suffix it is another project."""
    last = world.project_id[-1:]
    return {
        "project_id": world.project_id[:-1] + (suffix or last),
        "project_name": name,
        "owner": user(world),
        "created_at": stamp(world.start_time),
        "backends": [{"name": backend, "config": {"type": backend}} for backend in world.backends],
        "members": [],
        "is_public": False,
    }


def fleet(world: World, made: Mapping[str, Any], project_name: str) -> dict[str, Any]:
    """Return a fleet with its machines."""
    name = str(made["configuration"].get("name"))
    here = [machine for machine in world.machines.values() if machine.fleet == name]
    return {
        "id": made["uuid"],
        "name": name,
        "project_name": project_name,
        "spec": {
            "configuration": made["configuration"],
            "configuration_path": None,
            "profile": {"name": "default", "default": False},
            "autocreated": False,
        },
        "created_at": stamp(made["created"]),
        "status": "active",
        "status_message": None,
        "instances": [machine_row(one, project_name) for one in here if one.status != "terminated"],
    }


def instance_type(kind: Kind, disk_gb: float) -> dict[str, Any]:
    """Return a type of machine."""
    gpu = {"name": kind.gpu, "memory_mib": kind.memory_gb * _MIB, "vendor": "nvidia"}
    return {
        "name": kind.name,
        "resources": {
            "cpus": 8 * kind.count,
            "memory_mib": 64 * _MIB * kind.count,
            "gpus": [dict(gpu) for _ in range(kind.count)],
            "spot": kind.is_spot,
            "disk": {"size_mib": int(disk_gb * _MIB)},
            "cpu_arch": "x86",
            "description": "",
        },
    }


def offer(kind: Kind, disk_gb: float, *, is_free: bool | None) -> dict[str, Any]:
    """Return a row of a plan; `is_free` is None where the cloud does not tell."""
    return {
        "backend": kind.backend,
        "instance": instance_type(kind, disk_gb),
        "region": kind.region,
        "price": kind.cents / 100,
        "backend_data": {},
        "availability": _AVAILABILITY[is_free],
        "availability_zones": None,
        "instance_runtime": "shim",
        "blocks": 1,
        "total_blocks": 1,
    }


def machine_row(machine: Machine, project_name: str) -> dict[str, Any]:
    """Return a machine."""
    return {
        "id": machine.uuid,
        "project_name": project_name,
        "backend": machine.kind.backend,
        "instance_type": instance_type(machine.kind, 100),
        "name": machine.name,
        "fleet_name": machine.fleet,
        "instance_num": machine.number,
        "hostname": machine.address,
        "status": machine.status,
        "unreachable": machine.offline_until is not None,
        "created": stamp(machine.created),
        "finished_at": stamp(machine.finished) if machine.finished is not None else None,
        "region": machine.kind.region,
        "price": machine.kind.cents / 100,
    }


def run_row(run: Run, project_name: str, now: float) -> dict[str, Any]:
    """Return a run with its one job."""
    submission = _submission(run, now)
    return {
        "id": run.uuid,
        "project_name": project_name,
        "user": "admin",
        "submitted_at": stamp(run.created),
        "last_processed_at": stamp(run.processed),
        "status": run.status,
        "status_message": run.status,
        "termination_reason": _run_reason(run),
        "run_spec": run.spec,
        "jobs": [{"job_spec": job_spec(run.name, run.configuration), "job_submissions": [submission]}],
        "latest_job_submission": submission,
        "cost": 0.0,
        "deployment_num": 0,
        "deleted": run.is_deleted,
    }


def job_spec(name: str, order: Mapping[str, Any]) -> dict[str, Any]:
    """Return the one job that the server made of an order."""
    return {
        "replica_num": 0,
        "job_num": 0,
        "job_name": f"{name}-0-0",
        "jobs_per_replica": 1,
        "app_specs": [],
        "user": {"username": str(order.get("user") or "root")},
        "commands": ["/bin/sh", "-i", "-c", " && ".join(order.get("commands") or [])],
        "env": order.get("env") or {},
        "image_name": str(order.get("image") or ""),
        "max_duration": None,
        "stop_duration": 300,
        "registry_auth": None,
        "requirements": {"resources": order.get("resources") or {}, "max_price": order.get("max_price")},
        "retry": None,
        "working_dir": None,
    }


def event(machine: Machine, world: World, project_name: str) -> dict[str, Any]:
    """Return the event of the creation of a machine."""
    own = {"project_id": world.project_id, "project_name": project_name}
    return {
        "id": machine.uuid,
        "message": "Instance created for job. Instance status: PENDING",
        "recorded_at": stamp(machine.created),
        "targets": [
            {"type": "instance", "id": machine.uuid, "name": machine.name, **own},
            {"type": "job", "id": machine.job_uuid, "name": f"{machine.run_name}-0-0", **own},
        ],
    }


def log_line(at: float, line: str) -> dict[str, Any]:
    """Return a piece of a log."""
    message = base64.b64encode(f"{line}\n".encode()).decode()
    return {"timestamp": stamp(at), "log_source": "stdout", "message": message}


def _submission(run: Run, now: float) -> dict[str, Any]:
    return {
        "id": run.job_uuid,
        "submission_num": 0,
        "deployment_num": 0,
        "submitted_at": stamp(run.created),
        "last_processed_at": stamp(run.processed),
        "finished_at": stamp(run.finished) if run.finished is not None else None,
        "status": run.job_status,
        "status_message": run.job_status,
        "termination_reason": run.reason,
        "termination_reason_message": run.message,
        "exit_status": run.exit_status,
        "job_provisioning_data": _provisioned(run),
        "job_runtime_data": None,
        "probes": [{"success_streak": run.success_streak(now, every)} for every in _paces(run)],
    }


def _paces(run: Run) -> list[float]:
    """Return the seconds between two requests of each probe of a service."""
    return [float(probe.get("interval") or PROBE_SECONDS) for probe in run.configuration.get("probes") or ()]


def _provisioned(run: Run) -> dict[str, Any] | None:
    machine = run.machine
    if machine is None:
        return None
    size = ((run.configuration.get("resources") or {}).get("disk") or {}).get("size") or {}
    return {
        "backend": machine.kind.backend,
        "instance_type": instance_type(machine.kind, float(size.get("min") or 100)),
        "instance_id": f"i-{machine.machine_id}",
        "hostname": machine.address,
        "region": machine.kind.region,
        "price": machine.kind.cents / 100,
        "username": "ubuntu",
        "ssh_port": 22,
        "dockerized": True,
    }


def _run_reason(run: Run) -> str | None:
    reasons = {
        "aborted_by_user": "aborted_by_user",
        "terminated_by_user": "stopped_by_user",
        "done_by_runner": "all_jobs_done",
        None: None,
    }
    return reasons.get(run.reason, "job_failed")
