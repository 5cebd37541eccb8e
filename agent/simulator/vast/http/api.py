"""The vendor's HTTP API: its endpoints, and the way of a call through weather, gate and endpoint.

1. Before a call is answered, the world is moved to the clock's present. The answer itself awaits nothing, so a call is
   applied whole or not at all.
2. Faults "before" leave the world untouched; faults "after" come when the call was applied. Field lies come last, in
   `api_calls.dressed`, and change only bytes.
3. Every call is written down with its status; 0 stands for a dropped connection.
"""

import collections
import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from agent.simulator import api_calls, http_wire
from agent.simulator.api_calls import DROPPED, Reply
from agent.simulator.faults import Fault
from agent.simulator.http_wire import Answer, Asked
from agent.simulator.simulated_clock import Clock
from agent.simulator.vast import calls
from agent.simulator.vast.calls import Call
from agent.simulator.vast.http import (
    account_money,
    call_gate,
    create,
    inbox,
    instance_keys,
    instance_list,
    manage,
    minor_routes,
    refusals,
    rises,
    volumes,
    webhooks,
)
from agent.simulator.vast.http.surface import Surface

Endpoint = Callable[[Surface, Call], Reply]

MOST_CALLS_KEPT = 200_000
_PATH = re.compile(r"^/api/v(\d+)(/.*?)/?$")
_NUMBER = re.compile(r"(?<=/)\d+(?=/|$)")
_FORBIDDEN_PAGE = b"<html><head><title>403 Forbidden</title></head><body><h1>403 Forbidden</h1>nginx</body></html>\r\n"


def _search(surface: Surface, call: Call) -> Reply:
    return surface.search.answer(call)


ENDPOINTS: Mapping[tuple[str, str], Endpoint] = {
    ("POST", "/bundles"): _search,
    ("GET", "/bundles"): _search,
    ("PUT", "/bundles"): _search,
    ("PUT", "/search/asks"): _search,
    ("GET", "/search/asks"): _search,
    ("POST", "/search/asks"): _search,
    ("GET", "/gpu_names/unique"): minor_routes.gpu_names,
    ("PUT", "/asks/{id}"): create.rent,
    ("POST", "/asks/bulk"): create.rent_many,
    ("PUT", "/launch_instance"): create.launch,
    ("GET", "/instances"): instance_list.show_all,
    ("GET", "/instances/filters"): instance_list.show_filters,
    ("GET", "/instances/{id}"): instance_list.show_one,
    ("PUT", "/instances/{id}"): manage.manage,
    ("DELETE", "/instances/{id}"): manage.destroy,
    ("PUT", "/instances"): manage.manage_many,
    ("DELETE", "/instances"): manage.destroy_many,
    ("PUT", "/instances/bid_price/{id}"): manage.change_bid,
    ("PUT", "/instances/reboot/{id}"): manage.reboot,
    ("PUT", "/instances/recycle/{id}"): manage.recycle,
    ("PUT", "/instances/request_logs/{id}"): manage.request_logs,
    ("PUT", "/instances/command/{id}"): manage.execute,
    ("GET", "/instances/balance/{id}"): account_money.show_balance,
    ("PUT", "/instances/prepay/{id}"): account_money.prepay,
    ("PUT", "/instances/update_template/{id}"): minor_routes.on_instance,
    ("POST", "/instances/take_snapshot/{id}"): minor_routes.on_instance,
    ("GET", "/instances/{id}/ssh"): instance_keys.show,
    ("POST", "/instances/{id}/ssh"): instance_keys.attach,
    ("DELETE", "/instances/{id}/ssh/{id}"): instance_keys.detach,
    ("GET", "/instances/pending-price-increases"): rises.show,
    ("PUT", "/instances/accept-price-increase"): rises.accept,
    ("PUT", "/instances/reject-price-increase"): rises.reject,
    ("GET", "/users/current"): account_money.show_user,
    ("GET", "/charges"): account_money.show_charges,
    ("GET", "/invoices"): account_money.show_invoices,
    ("GET", "/notifications/inbox"): inbox.show_inbox,
    ("PUT", "/notifications/inbox"): inbox.mark_seen,
    ("GET", "/notification-types"): inbox.show_types,
    ("GET", "/webhooks"): webhooks.show_webhooks,
    ("POST", "/webhooks"): webhooks.add_webhook,
    ("PUT", "/webhooks/{id}"): webhooks.change_webhook,
    ("DELETE", "/webhooks/{id}"): webhooks.remove_webhook,
    ("POST", "/webhooks/{id}/rotate-secret"): webhooks.rotate_secret,
    ("POST", "/webhooks/{id}/test"): webhooks.try_out,
    ("GET", "/ssh"): minor_routes.show_ssh_keys,
    ("POST", "/ssh"): minor_routes.add_ssh_key,
    ("PUT", "/ssh/{id}"): minor_routes.change_ssh_key,
    ("DELETE", "/ssh/{id}"): minor_routes.remove_ssh_key,
    ("POST", "/volumes/search"): volumes.search,
    ("GET", "/volumes"): volumes.show,
    ("PUT", "/volumes"): volumes.rent,
    ("DELETE", "/volumes"): volumes.remove,
    ("PUT", "/commands/copy_direct"): minor_routes.copy,
    ("DELETE", "/commands/copy_direct"): minor_routes.accepted,
    ("PUT", "/commands/rsync"): minor_routes.copy,
    ("DELETE", "/commands/rsync"): minor_routes.accepted,
    ("POST", "/commands/rclone"): minor_routes.copy,
    ("GET", "/commands/schedule_job"): minor_routes.show_scheduled_jobs,
    ("POST", "/commands/schedule_job"): minor_routes.accepted,
    ("PUT", "/commands/schedule_job/{id}"): minor_routes.accepted,
    ("DELETE", "/commands/schedule_job/{id}"): minor_routes.accepted,
    ("GET", "/template"): minor_routes.show_templates,
}
# The only routes of version 1. All others have version 0 alone, and the list of version 0 is gone.
SECOND_VERSION = frozenset({("GET", "/instances"), ("GET", "/invoices")})


class VastApi:
    """Answers requests to one market."""

    def __init__(self, surface: Surface, clock: Clock) -> None:
        """Answer for one surface, by one clock."""
        self._surface = surface
        self._clock = clock
        self._count = 0
        self.calls: collections.deque[tuple[float, str, str, int]] = collections.deque(maxlen=MOST_CALLS_KEPT)

    async def answer(self, asked: Asked) -> Answer:
        """Answer one request."""
        surface, path = self._surface, asked.path
        surface.weather.advance_to(self._clock.time())
        version, route, numbers = take_apart(path)
        struck = surface.weather.struck(asked.method, route)
        if (slow := struck.get("slow")) is not None:
            await self._clock.sleep(slow.number("delay", 30.0))
            surface.weather.advance_to(self._clock.time())
        self._count += 1
        now = surface.world.now
        surface.records.doors.attend(surface.world.live_contracts(), now)
        surface.deliveries.attend(now)
        call = _call(asked, route, version, numbers, now, self._count, struck)
        reply = _before(call) or api_calls.dropped_before(struck) or self._after(call, self._answer(call, path))
        self.calls.append((now, asked.method, path, 0 if reply is DROPPED else reply.status))
        place = api_calls.Place(asked.method, route, path)
        return api_calls.dressed(reply, place, struck, surface.weather, calls.VOCABULARY, self._clock.time())

    def _answer(self, call: Call, path: str) -> Reply:
        if path.startswith("/s3/"):
            return self._surface.file(path)
        if path == "/static/jvastai_root.cer":
            return minor_routes.root_certificate()
        endpoint = ENDPOINTS.get((call.method, call.route))
        if endpoint is None or not _is_spoken(call):
            return calls.refuse(404, "not_found", f"There is no {call.method} {path} here.")
        return self._surface.gate.challenge(call) or self._surface.gate.pace(call) or endpoint(self._surface, call)

    def _after(self, call: Call, reply: Reply) -> Reply:
        struck = call.struck
        if not struck:
            return reply
        if "reset" in struck:
            return DROPPED
        if (fault := struck.get("server_error_after")) is not None:
            return _server_error(fault)
        if "malformed" in struck:
            return Reply(b'{"success": tru' + reply.body[: len(reply.body) // 2], reply.status, reply.content_type)
        return reply


def _is_spoken(call: Call) -> bool:
    if call.version == 1:
        return (call.method, call.route) in SECOND_VERSION
    return call.version == 0 and call.route != "/invoices"


def take_apart(path: str) -> tuple[int, str, tuple[int, ...]]:
    """Take a path apart: version (-1 outside the API), route with {id} for numbers, the numbers."""
    match = _PATH.match(path)
    if match is None:
        return -1, path, ()
    route = match.group(2)
    numbers = tuple(int(digits) for digits in _NUMBER.findall(route))
    return int(match.group(1)), _NUMBER.sub("{id}", route) if numbers else route, numbers


def _call(
    asked: Asked,
    route: str,
    version: int,
    numbers: tuple[int, ...],
    now: float,
    number: int,
    struck: Mapping[str, Fault],
) -> Call:
    body, is_broken = http_wire.decoded(asked.body if asked.method != "GET" else b"")
    return Call(
        method=asked.method,
        route=route,
        version=version,
        numbers=numbers,
        query=asked.query,
        body=body,
        is_body_broken=is_broken,
        # A revoked key is answered as an unknown one.
        key="revoked" if asked.key and "revoked_key" in struck else asked.key,
        peer=asked.peer,
        base_url=asked.base_url,
        now=now,
        number=number,
        struck=struck,
    )


def _before(call: Call) -> Reply | None:
    struck = call.struck
    if "html_403" in struck:
        return Reply(_FORBIDDEN_PAGE, 403, "text/html")
    if "soft_refusal" in struck:
        return refusals.soft(call)
    if "session_expired" in struck:
        return refusals.session_expired()
    if "invalid_request" in struck:
        return calls.refuse(400, "invalid_args", "error 400/3467: Invalid args")
    if "search_quota" in struck and call.route in call_gate.SEARCH_ROUTES:
        return call_gate.quota_exceeded(call.now)
    if (fault := struck.get("server_error_before")) is not None:
        return _server_error(fault)
    return _throttled(struck)


def _throttled(struck: Mapping[str, Fault]) -> Reply | None:
    if "throttle_text" in struck:
        return api_calls.plain(429, "API requests too frequent")
    if (fault := struck.get("throttle_json")) is not None:
        fields: dict[str, Any] = {"detail": "API requests too frequent endpoint threshold=1.0"}
        if "retry_after" in fault.extra:
            fields["retry_after"] = fault.extra["retry_after"]
        return Reply(msgspec.json.encode(fields), 429)
    if (fault := struck.get("throttle_retry_after")) is not None:
        reply = calls.refuse(429, "rate_limit_exceeded", "API requests too frequent endpoint threshold=1.0")
        reply.headers = {"Retry-After": fault.text("retry_after", 5.0)}
        return reply
    return None


def _server_error(fault: Fault) -> Reply:
    status = int(fault.number("status", 503.0))
    return api_calls.plain(status, f"<html><body><h1>{status} Service Temporarily Unavailable</h1></body></html>")
