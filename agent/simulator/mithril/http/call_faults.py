"""The faults that answer a call in the place of the market, before or after it was applied."""

from collections.abc import Mapping

from agent.simulator.api_calls import TEXT, Reply
from agent.simulator.faults import Fault
from agent.simulator.mithril.http import calls
from agent.simulator.mithril.model import Refused

DROPPED = Reply(b"", 0)
_FORBIDDEN_PAGE = b"<html><head><title>403 Forbidden</title></head><body><h1>403 Forbidden</h1></body></html>"


def before(struck: Mapping[str, Fault]) -> Reply | None:
    """Return the answer to a call that leaves the market untouched; None lets it through."""
    if not struck:
        return None
    if "html_403" in struck:
        return Reply(_FORBIDDEN_PAGE, 403, "text/html")
    if "session_expired" in struck:
        return Reply(b"Unauthorized", 401, TEXT)
    if "invalid_request" in struck:
        return calls.refuse(Refused(422, "Extra inputs are not permitted", ("body",)))
    if (fault := struck.get("server_error_before")) is not None:
        return _server_error(fault)
    if (throttled := _throttled(struck)) is not None:
        return throttled
    reset = struck.get("reset")
    return DROPPED if reset is not None and reset.extra.get("when") == "before" else None


def after(struck: Mapping[str, Fault], reply: Reply) -> Reply:
    """Return the answer to a call that was applied."""
    if not struck:
        return reply
    if "reset" in struck:
        return DROPPED
    if (fault := struck.get("server_error_after")) is not None:
        return _server_error(fault)
    if "malformed" in struck:
        return Reply(b'{"data": tru' + reply.body[: len(reply.body) // 2], reply.status, reply.content_type)
    return reply


def _throttled(struck: Mapping[str, Fault]) -> Reply | None:
    if "throttle_text" in struck:
        return Reply(b"Too Many Requests", 429, TEXT)
    for name in ("throttle_json", "throttle_retry_after"):
        if (fault := struck.get(name)) is not None:
            reply = calls.refuse(Refused(429, "Rate limit exceeded"))
            if name == "throttle_retry_after" or "retry_after" in fault.extra:
                reply.headers = {"Retry-After": fault.text("retry_after", 5.0)}
            return reply
    return None


def _server_error(fault: Fault) -> Reply:
    status = int(fault.number("status", 503.0))
    page = f"<html><body><h1>{status} Service Temporarily Unavailable</h1></body></html>"
    return Reply(page.encode(), status, "text/html")
