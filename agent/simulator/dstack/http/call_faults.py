"""The faults that answer a call instead of the server, before the call is applied."""

from collections.abc import Mapping

from agent.simulator import api_calls
from agent.simulator.api_calls import TEXT, Reply
from agent.simulator.dstack.http import calls
from agent.simulator.dstack.model import Refused
from agent.simulator.faults import Fault

_FORBIDDEN_PAGE = b"<html><head><title>403 Forbidden</title></head><body><h1>403 Forbidden</h1></body></html>"


def before(struck: Mapping[str, Fault]) -> Reply | None:
    """Return the answer to a call that leaves the server untouched; None lets it through."""
    if not struck:
        return None
    if "html_403" in struck:
        return Reply(_FORBIDDEN_PAGE, 403, "text/html")
    if "session_expired" in struck:
        return Reply(b"Unauthorized", 401, TEXT)
    if "invalid_request" in struck:
        return calls.refuse(Refused(422, "Extra inputs are not permitted", where=("body",)))
    if (fault := struck.get("server_error_before")) is not None:
        return api_calls.server_error(fault)
    if (throttled := _throttled(struck)) is not None:
        return throttled
    return api_calls.dropped_before(struck)


def _throttled(struck: Mapping[str, Fault]) -> Reply | None:
    """Return the refusal of a proxy in front of the server. The server itself refuses no call in this way."""
    for name in ("throttle_text", "throttle_json", "throttle_retry_after"):
        if (fault := struck.get(name)) is not None:
            reply = Reply(b"Too Many Requests", 429, TEXT)
            if name == "throttle_retry_after" or "retry_after" in fault.extra:
                reply.headers = {"Retry-After": fault.text("retry_after", 5.0)}
            return reply
    return None
