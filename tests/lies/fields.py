"""The fields that a decision reads, by market, and the ways in which each is told wrong.

A field is a word of `agent/simulator/field_lies.py` or a key at any depth of the vendor's answers.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

Change = Mapping[str, Any]
"""The keys `how` and `value` of a field lie."""


def _set(*values: Any) -> tuple[Change, ...]:
    return tuple({"how": "set", "value": value} for value in values)


ABSENT: Sequence[Change] = ({"how": "null"}, {"how": "missing"})
OTHER_TYPES: Sequence[Change] = _set("", "junk", True)
NUMBER: Sequence[Change] = (
    *ABSENT,
    *OTHER_TYPES,
    *({"how": how} for how in ("string", "nan", "inf", "minus")),
    *_set(0, 1e300),
    *({"how": "times", "value": factor} for factor in (1e-3, 0.5, 2, 1000)),
)
TEXT: Sequence[Change] = (*ABSENT, *_set("", "junk", 0, "x" * 5000))
FLAG: Sequence[Change] = (*ABSENT, *_set(True, False, "junk", 0))


@dataclasses.dataclass(frozen=True, slots=True)
class Field:
    """A field of some answers, and the ways in which it is told wrong."""

    name: str
    changes: Sequence[Change]
    route: str = "*"


@dataclasses.dataclass(frozen=True, slots=True)
class Lie:
    """One way in which one field is told wrong."""

    field: Field
    change: Change

    def __str__(self) -> str:
        value = f" {self.change['value']!r:.24}" if "value" in self.change else ""
        return f"{self.field.route} {self.field.name}: {self.change['how']}{value}"


def lies_of_fields(fields: Iterable[Field]) -> Iterator[Lie]:
    """Yield every lie about some fields."""
    for field in fields:
        for change in field.changes:
            yield Lie(field, change)


def lies(market: str) -> Iterator[Lie]:
    """Yield every lie about a market."""
    yield from lies_of_fields(FIELDS[market])


def lies_of_rents(market: str) -> Iterator[Lie]:
    """Yield every lie about a market that may be told during a rent."""
    yield from lies_of_fields((*FIELDS[market], *OF_RENTS[market]))


_PODS, _CATALOGUE, _GRAPH = "GET /v2/pods", "GET /v2/catalog", "POST /graphql"
_WORDS = ("PROVISIONING", "STARTING", "RUNNING", "EXITED", "ERROR", "TERMINATED", "DEAD")
_PAST, _FUTURE = "2020-01-01T00:00:00Z", "2099-01-01T00:00:00Z"
_CHANGES = ("Outbid", "Exited by user", "Exited by Runpod", "Terminated by user", "Rented by User", "")
_AT = "Mon Jul 27 2026 00:20:00 GMT+0000 (Coordinated Universal Time)"

_BIDS, _INSTANCES, _PRICES = "GET /v2/spot/bids", "GET /v2/instances", "GET /v2/pricing"
_MACHINES = ("STATUS_PAUSED", "STATUS_ERROR", "STATUS_PREEMPTED", "STATUS_TERMINATED", "STATUS_NEW", "STATUS_RUNNING")
_ROWS, _OFFERED, _CREATED = "GET /instances", "POST /bundles", "PUT /asks"
_LISTED_RUNS, _LISTED_MACHINES = "*", "POST /api/instances"
_RUNS = ("pending", "submitted", "provisioning", "running", "terminating", "terminated", "failed", "done")

FIELDS: Mapping[str, Sequence[Field]] = {
    "runpod": (
        Field("status", (*TEXT, *_set(*_WORDS)), _PODS),
        Field("cost", NUMBER, _PODS),
        Field("label", (*TEXT, *_set("gpubid-elsewhere")), _PODS),
        Field("id", (*_set("x" * 14), *TEXT), _PODS),
        Field("gpu", TEXT, _PODS),
        Field("gpu.count", NUMBER, _PODS),
        Field("gpu.id", (*TEXT, *_set("NVIDIA B200")), _PODS),
        Field("cloud", (*TEXT, *_set("SECURE", "COMMUNITY")), _PODS),
        Field("disk", NUMBER, _PODS),
        Field("mounts", TEXT, _PODS),
        Field("mounts.persistent.size", NUMBER, _PODS),
        Field("dataCenterId", (*TEXT, *_set("XX-YY-1")), _PODS),
        Field("createdAt", (*TEXT, *_set(_PAST, _FUTURE)), _PODS),
        Field("runtime", TEXT, _PODS),
        Field("uptime", NUMBER, _PODS),
        Field("util", NUMBER, _PODS),
        Field("ports", TEXT, _PODS),
        Field("ssh", TEXT, _PODS),
        Field("clientBalance", NUMBER, _GRAPH),
        Field("podType", (*TEXT, *_set("INTERRUPTABLE", "RESERVED", "BID", "BACKGROUND")), _GRAPH),
        Field("costPerHr", NUMBER, _GRAPH),
        Field("gpuCount", NUMBER, _GRAPH),
        Field("desiredStatus", (*TEXT, *_set("EXITED", "RUNNING", "TERMINATED")), _GRAPH),
        Field("lastStatusChange", (*TEXT, *_set(*(f"{words}: {_AT}" for words in _CHANGES))), _GRAPH),
        Field("minimumBidPrice", NUMBER, _GRAPH),
        Field("uninterruptablePrice", NUMBER, _GRAPH),
        Field("myself", TEXT, _GRAPH),
        Field("data.myself.id", TEXT, _GRAPH),
        Field("maintenanceStart", (*TEXT, *_set(_PAST, _FUTURE)), _GRAPH),
        Field("price.secure", NUMBER, _CATALOGUE),
        Field("price.community", NUMBER, _CATALOGUE),
        Field("availability", (*TEXT, *_set("NONE", "HIGH")), _CATALOGUE),
        Field("maxCount", NUMBER, _CATALOGUE),
        Field("secure", FLAG, _CATALOGUE),
        Field("memory", NUMBER, _CATALOGUE),
    ),
    "mithril": (
        Field("status", (*TEXT, *_set("Open", "Allocated", "Preempting", "Terminated", "Paused", "Relocating")), _BIDS),
        Field("limit_price", (*NUMBER, *_set("$0.01", "$31.00", "$3000.00", "-$1.00", "$NaN")), _BIDS),
        Field("name", TEXT, _BIDS),
        Field("fid", (*TEXT, *_set("bid_elsewhere")), _BIDS),
        Field("project", (*TEXT, *_set("proj_other")), _BIDS),
        Field("created_at", (*TEXT, *_set(_PAST, _FUTURE)), _BIDS),
        Field("deactivated_at", (*TEXT, *_set(_PAST, _FUTURE)), _BIDS),
        Field("instance_quantity", NUMBER, _BIDS),
        Field("instance_type", (*TEXT, *_set("it_other")), _BIDS),
        Field("region", (*TEXT, *_set("xx-yy-1")), _BIDS),
        Field("instances", TEXT, _BIDS),
        Field("startup_script", TEXT, _BIDS),
        Field("launch_specification", TEXT, _BIDS),
        Field("next_cursor", ({"how": "set", "value": "junk"}, {"how": "null"}, {"how": "missing"})),
        Field("status", (*TEXT, *_set(*_MACHINES)), _INSTANCES),
        Field("bid", (*TEXT, *_set("bid_elsewhere")), _INSTANCES),
        Field("fid", (*TEXT, *_set("inst_elsewhere")), _INSTANCES),
        Field("created_at", (*TEXT, *_set(_PAST, _FUTURE)), _INSTANCES),
        Field("ssh_destination", TEXT, _INSTANCES),
        Field("spot_price_cents", NUMBER, _PRICES),
        Field("minimum_price_cents", NUMBER, _PRICES),
        Field("lowest_allocated_bid_cents", NUMBER, _PRICES),
        Field("dynamic_win_price_cents", NUMBER, _PRICES),
        Field("available_capacity", NUMBER, _PRICES),
        Field("last_instance_price", (*NUMBER, *_set("$0.00", "$9999.00"))),
        Field("price_cents", NUMBER),
        Field("num_gpus", NUMBER),
        Field("gpu_memory_gb", NUMBER),
        Field("gpu_type", TEXT),
        Field("total_quantity", NUMBER),
        Field("used_quantity", NUMBER),
        Field("product_type", TEXT),
    ),
    "dstack": (
        Field("/status", (*TEXT, *_set(*_RUNS)), _LISTED_RUNS),
        Field("latest_job_submission.status", (*TEXT, *_set(*_RUNS)), _LISTED_RUNS),
        Field("id", (*TEXT, *_set("00000000-0000-4000-8000-000000000000")), _LISTED_RUNS),
        Field("run_name", (*TEXT, *_set("elsewhere")), _LISTED_RUNS),
        Field("tags", TEXT, _LISTED_RUNS),
        Field("gpubid", TEXT, _LISTED_RUNS),
        Field("price", NUMBER, _LISTED_RUNS),
        Field("max_price", NUMBER, _LISTED_RUNS),
        Field("backend", (*TEXT, *_set("gcp")), _LISTED_RUNS),
        Field("region", (*TEXT, *_set("xx-yy-1")), _LISTED_RUNS),
        Field("spot", FLAG, _LISTED_RUNS),
        Field("spot_policy", TEXT, _LISTED_RUNS),
        Field("deleted", FLAG, _LISTED_RUNS),
        Field("size_mib", NUMBER, _LISTED_RUNS),
        Field("min", NUMBER, _LISTED_RUNS),
        Field("gpus", TEXT, _LISTED_RUNS),
        Field("memory_mib", NUMBER, _LISTED_RUNS),
        Field("instance_type", TEXT, _LISTED_RUNS),
        Field("job_provisioning_data", TEXT, _LISTED_RUNS),
        Field("latest_job_submission", TEXT, _LISTED_RUNS),
        Field("hostname", TEXT, _LISTED_RUNS),
        Field("submitted_at", (*TEXT, *_set(_PAST, _FUTURE)), _LISTED_RUNS),
        Field("finished_at", (*TEXT, *_set(_PAST, _FUTURE)), _LISTED_RUNS),
        Field("termination_reason", (*TEXT, *_set("interrupted_by_no_capacity", "terminated_by_user"))),
        Field("exit_status", NUMBER),
        Field("success_streak", NUMBER),
        Field("status", (*TEXT, *_set("pending", "idle", "busy", "terminating", "terminated")), _LISTED_MACHINES),
        Field("price", NUMBER, _LISTED_MACHINES),
        Field("id", TEXT, _LISTED_MACHINES),
        Field("name", TEXT, _LISTED_MACHINES),
        Field("fleet_name", TEXT, _LISTED_MACHINES),
        Field("project_id", TEXT),
        Field("availability", (*TEXT, *_set("available", "no_quota", "not_available"))),
    ),
    "vast": (
        Field("status_msg", (*TEXT, *_set("Error: no such container", "success, running")), _ROWS),
        Field("actual_status", (*TEXT, *_set("running", "exited", "offline", "loading", "created", "stopped")), _ROWS),
        Field("cur_state", (*TEXT, *_set("running", "stopped", "unloaded")), _ROWS),
        Field("intended_status", (*TEXT, *_set("running", "stopped")), _ROWS),
        Field("next_state", (*TEXT, *_set("running", "stopped")), _ROWS),
        Field("min_bid", NUMBER, _ROWS),
        Field("gpu_util", NUMBER, _ROWS),
        Field("start_date", NUMBER, _ROWS),
        Field("is_bid", FLAG, _ROWS),
        Field("total_instances", NUMBER, _ROWS),
        Field("credit_discount", NUMBER),
        Field("min_bid", NUMBER, _OFFERED),
    ),
}
"""The fields of each market's answers."""

OF_RENTS: Mapping[str, Sequence[Field]] = {
    "runpod": (
        Field("id", TEXT, "POST /v2/pods"),
        Field("status", (*TEXT, *_set(*_WORDS)), "POST /v2/pods"),
        Field("podRentInterruptable", TEXT, _GRAPH),
    ),
    "mithril": (
        Field("fid", TEXT, "POST /v2/spot/bids"),
        Field("status", TEXT, "POST /v2/spot/bids"),
        Field("limit_price", NUMBER, "POST /v2/spot/bids"),
    ),
    "dstack": (Field("id", TEXT, "POST /api/project"), Field("run_name", TEXT, "POST /api/project")),
    "vast": (
        Field("gpu_name", (*TEXT, *_set("GTX 1080")), _ROWS),
        Field("num_gpus", NUMBER, _ROWS),
        Field("machine_id", NUMBER, _ROWS),
        Field("dph_base", NUMBER, _ROWS),
        Field("dph_total", NUMBER, _ROWS),
        Field("gpuCostPerHour", NUMBER, _ROWS),
        Field("storage_total_cost", NUMBER, _ROWS),
        Field("disk_space", NUMBER, _ROWS),
        Field("is_bid", FLAG, _ROWS),
        Field("dph_base", NUMBER, _OFFERED),
        Field("gpu_name", (*TEXT, *_set("GTX 1080")), _OFFERED),
        Field("num_gpus", NUMBER, _OFFERED),
        Field("machine_id", NUMBER, _OFFERED),
        Field("new_contract", (*NUMBER, {"how": "plus", "value": 1}), _CREATED),
        Field("success", FLAG, _CREATED),
    ),
}
"""The fields that a rent alone reads: of the answer to it, and of its offer and its readback."""

_ACTED, _CHANGED_BID = "POST /v2/pods", "PATCH /v2/spot/bids"
_STATE, _KEYS, _NO_SUCH = "PUT /instances", "GET /instances", ("no_such_instance", "insufficient_credit", "auth_error")
_WORDS_OF_BIDS = ("Open", "Allocated", "Preempting", "Terminated", "Paused")

OF_WRITES: Mapping[str, Mapping[str, Sequence[Field]]] = {
    "vast": {
        "pause": (Field("success", FLAG, _STATE),),
        "release": (Field("success", FLAG, "DELETE /instances"),),
        "queue": (
            Field("success", FLAG, _STATE),
            Field("error", (*TEXT, *_set(*_NO_SUCH, "missing_billing", "not_found")), _STATE),
            Field("msg", TEXT, _STATE),
        ),
        "outbid": (
            Field("success", FLAG, "PUT /instances/bid_price"),
            Field("notif_type", (*TEXT, *_set("client:stopped", "client:resumed")), "GET /notifications"),
            Field("instance_id", (*NUMBER, {"how": "plus", "value": 1}), "GET /notifications"),
            Field("created_at", NUMBER, "GET /notifications"),
            Field("your_bid", NUMBER, "GET /notifications"),
            Field("new_min_bid", NUMBER, "GET /notifications"),
        ),
        "watch": (
            Field("success", FLAG, "POST /instances"),
            Field("ssh_keys", (*TEXT, *_set("[]", "[{}]")), _KEYS),
            Field("success", FLAG, "PUT /instances/request_logs"),
            Field(
                "result_url", (*TEXT, *_set("http://127.0.0.1/", "file:///etc/passwd")), "PUT /instances/request_logs"
            ),
        ),
    },
    "runpod": {
        "pause": (
            Field("status", (*TEXT, *_set(*_WORDS)), _ACTED),
            Field("id", (*TEXT, *_set("x" * 14)), _ACTED),
            Field("podBidResume", TEXT, _GRAPH),
            Field("desiredStatus", (*TEXT, *_set("EXITED", "RUNNING", "TERMINATED")), _GRAPH),
        ),
        "release": (Field("status", (*TEXT, *_set(*_WORDS)), _ACTED),),
        "outbid": (Field("status", (*TEXT, *_set(*_WORDS)), _PODS),),
    },
    "mithril": {
        "pause": (
            Field("status", (*TEXT, *_set(*_WORDS_OF_BIDS)), _CHANGED_BID),
            Field("fid", (*TEXT, *_set("bid_elsewhere")), _CHANGED_BID),
            Field("limit_price", (*NUMBER, *_set("$0.01", "$3000.00")), _CHANGED_BID),
        ),
        "release": (Field("status", (*TEXT, *_set(*_WORDS_OF_BIDS)), _CHANGED_BID),),
        "outbid": (Field("status", (*TEXT, *_set(*_WORDS_OF_BIDS)), _BIDS),),
    },
}
"""The fields of the answers to other writes than rents, and of reads that only some deeds need, by market and deed."""
