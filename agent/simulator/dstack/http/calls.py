"""A call of this market's surface and the shapes of its answers."""

import dataclasses
import datetime as dt
from collections.abc import Mapping
from typing import Any

import msgspec

from agent.simulator import api_calls
from agent.simulator.api_calls import Reply
from agent.simulator.dstack.model import Refused
from agent.simulator.field_lies import Vocabulary

VOCABULARY = Vocabulary(
    fields={
        "id": ("id", "job_plans.offers.instance.name"),
        "label": ("run_spec.configuration.tags.gpubid", "run_spec.run_name"),
        "price": ("job_plans.offers.price", "latest_job_submission.job_provisioning_data.price", "price"),
        "state": ("status", "latest_job_submission.status"),
        "host": ("latest_job_submission.job_provisioning_data.region", "region"),
    },
    lists=("offers",),
    cursor="next_token",
    marks=frozenset({"id"}),
)
"""The paths of the fields that field lies change."""


@dataclasses.dataclass(slots=True)
class Call(api_calls.Call):
    """One request."""

    @property
    def fields(self) -> Mapping[str, Any]:
        """Return the object that the body must be, or raise Refused."""
        if self.is_body_broken:
            raise Refused(422, "JSON decode error", where=("body",))
        if self.body is None:
            return {}
        if not isinstance(self.body, dict):
            raise Refused(422, "Input should be a valid dictionary or object to extract fields from", where=("body",))
        return self.body

    def take(self, *known: str, needed: tuple[str, ...] = ()) -> Mapping[str, Any]:
        """Return the body, or raise Refused for a field that is missing or not known."""
        given = self.fields
        for name in needed:
            if name not in given:
                raise Refused(422, "Field required", where=("body", name))
        for name in given:
            if name not in known and name not in needed:
                raise Refused(422, "Extra inputs are not permitted", where=("body", name))
        return given


def ok(document: object) -> Reply:
    """Answer a document."""
    return Reply(msgspec.json.encode(document))


def refuse(refused: Refused) -> Reply:
    """Return the answer of a refusal, in the server's form for its status."""
    reason = {"msg": refused.sentence, "code": refused.code}
    if refused.status == 422:  # noqa: PLR2004 - the status of a validation
        kind = "missing" if refused.sentence == "Field required" else "value_error"
        detail: Any = [{"type": kind, "loc": list(refused.where), "msg": refused.sentence}]
    elif refused.status == 405 or refused.sentence == "Not Found":  # noqa: PLR2004 - of its framework, not its own
        detail = refused.sentence
    else:
        detail = [reason] if refused.code is not None else reason
    return Reply(msgspec.json.encode({"detail": detail}), refused.status)


def stamp(at: float) -> str:
    """Return an instant in the server's form."""
    return dt.datetime.fromtimestamp(at, dt.UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
