"""The owner of the key, the projects, the quotas and the reservations."""

from agent.simulator.api_calls import Reply
from agent.simulator.mithril import assumed_figures, models
from agent.simulator.mithril.http import calls
from agent.simulator.mithril.http.calls import Call
from agent.simulator.mithril.http.surface import Surface


def me(surface: Surface, call: Call) -> Reply:
    """Answer GET /v2/me."""
    world, suffix = surface.world, surface.suffix(call)
    return calls.ok(
        {
            "id": world.user_id.removeprefix("user_") + suffix,
            "fid": world.user_id + suffix,
            "email": "renter@example.com",
            "user_name": "Renter",
            "organization_id": world.organization + suffix,
            "organization_role": "admin",
        }
    )


def projects(surface: Surface, call: Call) -> Reply:
    """Answer GET /v2/projects."""
    world = surface.world
    row = {
        "fid": world.project + surface.suffix(call),
        "name": "default",
        "created_at": calls.stamp(world.start_time - 30 * 86_400.0),
    }
    return calls.ok([row])


def reservations(surface: Surface, call: Call) -> Reply:
    """Answer GET /v2/reservation: this account has none; those that take capacity are of others."""
    surface.project(call, call.required("project"))
    return calls.ok({"data": [], "next_cursor": None})


def quotas(surface: Surface, call: Call) -> Reply:
    """Answer GET /v2/quotas."""
    project = call.required("project")
    surface.project(call, project)
    rows = [
        {
            "fid": f"quota_{kind.fid.removeprefix('it_')}",
            "project": project,
            "instance_type": kind.fid,
            "product_type": "Spot",
            "total_quantity": assumed_figures.QUOTA_INSTANCES,
            "used_quantity": surface.world.desk.used_quota(kind.fid),
            "units": "instances",
            "name": f"Spot {kind.name}",
        }
        for kind in models.TYPES
    ]
    storage = {
        "fid": "quota_storage",
        "project": project,
        "instance_type": None,
        "product_type": "Storage",
        "total_quantity": assumed_figures.QUOTA_STORAGE_GB,
        "used_quantity": surface.world.belongings.used_gb(),
        "units": "GB",
        "name": "Storage",
    }
    return calls.ok([*rows, storage])
