"""The faults that a tester may declare: their names and keys, and the check of a declaration.

| fault | strikes | what it does | further keys (default) |
|---|---|---|---|
| throttle_text | before | 429, plain text | |
| throttle_json | before | 429, JSON with `detail` | `retry_after` in the body (none) |
| throttle_retry_after | before | 429, JSON, header Retry-After | `retry_after`, a number or any text (5) |
| search_quota | searches | 429 search_quota_exceeded until midnight UTC | |
| html_403 | before | 403, a proxy's HTML page | |
| soft_refusal | before | Vast alone: 200 with `success: false` and no code; a list has no rows then, a look-up null | |
| server_error_before | before | 503, and the call is not applied | `status` (503) |
| server_error_after | after | 503, although the call was applied | `status` (503) |
| slow | before | waits, then answers as usual | `delay` simulated seconds (30) |
| truncated | after | the body ends in the middle | |
| malformed | after | the body is not JSON | |
| reset | either | the connection is dropped without a reply | `when` "before" or "after" ("after") |
| empty_list | lists | the list has no rows, and looks complete | |
| partial_list | lists | the list has some of its rows, and looks complete | `keep` share of the rows (0.5) |
| paged_list | lists | RunPod and Mithril: lists come in pages, each but the last with a cursor | `rows` of a page (2) |
| stale_list | lists | instances as they were when the fault began | |
| unknown_status | reads | instances report a status that means nothing | `status` ("unknown") |
| host_offline | world | hosts fall silent for `seconds` | `machine_id` (the hosts we rent on) |
| host_gone | world | hosts vanish with their contracts | `machine_id` (the hosts we rent on) |
| stuck_loading | world | image pulls hang | `contract_id` (all) |
| pull_failure | world | image pulls fail | `contract_id` (all) |
| gpu_lie | world | `nvidia-smi` of starting real processes lies | `gpu`, `gpus`, `errors`, `machine_id` (all) |
| interruption_notice | world | real processes that are outbid get SIGTERM first | `notice` seconds until SIGKILL (10) |
| no_credit | world | the account's credit becomes `credit`; the difference comes back at the end | `credit` (0) |
| sold_out | creates | RunPod: no instance is available, whatever the catalogue lists; Mithril: the quota is used up | |
| no_price | reads | Mithril alone: 404 for the current price of every pool | |
| wrong_account | calls | the key belongs to somebody else | |
| revoked_key | calls | the key is no longer known | |
| session_expired | before | refused as an ended session, without a code: Vast 404 in JSON, RunPod 401 in plain text | |
| invalid_request | before | refused as a request that the market does not take: Vast 400 `invalid_args`, RunPod 422 | |
| clock_skew | replies | the Date header is off | `skew` seconds (120) |
| field_lie | replies | one field of the answer is wrong | `field`, `how`, `value`, `instance`: see field_lies.py |
| label_edit | world | a person edits labels until the end | `label` ("a person's"), `contract_id` (all) |

Keys of every fault:

- `market`: the name of a market, or "*" for all. Default: the first market.
- `route`: "*", a method ("PUT"), a path ("/asks") or both ("PUT /asks"). A path is a prefix, without a leading /api/vN.
  A world fault ignores the route.
- `probability`: the chance to strike a call, drawn for each call; for a world fault drawn once. Default: 1.0.
- `seconds`: the duration. Default: until the fault is cleared.
- `count`: the number of calls to strike before the fault ends. Default: any number. A world fault takes no `count`.

Several field lies may be active at once. Of any other fault only the newest is. A `contract_id` is the `number` of a
contract in the truth, where it has one. An `instance` is the id that the market gives.
"""

import dataclasses
import math
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from agent.simulator import field_lies

WORLD_FAULTS = frozenset(
    {
        "host_offline",
        "host_gone",
        "stuck_loading",
        "pull_failure",
        "no_credit",
        "label_edit",
        "interruption_notice",
        "gpu_lie",
    }
)
FIELD_LIE = "field_lie"

_NUMBER = "a number"
_WORD = "a string"
_EITHER = "a number or a string"
_SCALAR = "a number, a string, true or false"
_KINDS: Mapping[str, tuple[type, ...]] = {
    _NUMBER: (int, float),
    _WORD: (str,),
    _EITHER: (int, float, str),
    _SCALAR: (int, float, str, bool),
}
# Per fault: the keys it takes besides the common ones, and the kind of each value.
PARAMETERS: Mapping[str, Mapping[str, str]] = {
    "throttle_text": {},
    "throttle_json": {"retry_after": _NUMBER},
    "throttle_retry_after": {"retry_after": _EITHER},
    "search_quota": {},
    "html_403": {},
    "soft_refusal": {},
    "server_error_before": {"status": _NUMBER},
    "server_error_after": {"status": _NUMBER},
    "slow": {"delay": _NUMBER},
    "truncated": {},
    "malformed": {},
    "reset": {"when": _WORD},
    "empty_list": {},
    "partial_list": {"keep": _NUMBER},
    "paged_list": {"rows": _NUMBER},
    "stale_list": {},
    "unknown_status": {"status": _WORD},
    "host_offline": {"machine_id": _NUMBER},
    "host_gone": {"machine_id": _NUMBER},
    "stuck_loading": {"contract_id": _NUMBER},
    "pull_failure": {"contract_id": _NUMBER},
    "interruption_notice": {"notice": _NUMBER},
    "gpu_lie": {"machine_id": _NUMBER, "gpu": _WORD, "gpus": _NUMBER, "errors": _NUMBER},
    "no_credit": {"credit": _NUMBER},
    "sold_out": {},
    "no_price": {},
    "wrong_account": {},
    "revoked_key": {},
    "session_expired": {},
    "invalid_request": {},
    "clock_skew": {"skew": _NUMBER},
    FIELD_LIE: {"field": _WORD, "how": _WORD, "value": _SCALAR, "instance": _EITHER},
    "label_edit": {"contract_id": _NUMBER, "label": _WORD},
}
_COMMON = frozenset({"fault", "market", "route", "probability", "seconds", "count", "at_seconds"})
ALL = "*"
_METHODS = frozenset({"GET", "PUT", "POST", "PATCH", "DELETE", "*"})
_VERSION = re.compile(r"^/api/v\d+")


class BadFaultError(ValueError):
    """A declaration is wrong; the text names the key and the right value."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Fault:
    """One declaration. `method` and `prefix` are its route taken apart; inf seconds last until cleared."""

    name: str
    market: str = ""  # empty: the first
    method: str = "*"
    prefix: str = ""
    probability: float = 1.0
    seconds: float = math.inf
    count: float = math.inf
    extra: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def matches(self, method: str, path: str) -> bool:
        """Return whether a call of `method` on `path` (without /api/vN) is on its route."""
        return self.method in ("*", method) and path.startswith(self.prefix)

    def number(self, key: str, default: float) -> float:
        """Return one of its number keys."""
        return float(self.extra.get(key, default))

    def text(self, key: str, default: float) -> str:
        """Return one of its keys as the text of a header. A string is returned unchanged."""
        value = self.extra.get(key, default)
        return f"{value:.10g}" if isinstance(value, int | float) else str(value)

    @property
    def lie(self) -> field_lies.FieldLie:
        """Return the lie of a field_lie."""
        return field_lies.read(self.extra)


def parse(declaration: Mapping[str, Any]) -> Fault:
    """Read a declaration in the shape of POST /weather; raise BadFaultError with a sentence."""
    name = declaration.get("fault")
    if not isinstance(name, str) or name not in PARAMETERS:
        raise BadFaultError(f"fault: {name!r} is unknown; the names are {', '.join(sorted(PARAMETERS))}.")
    allowed = PARAMETERS[name]
    known = _COMMON | allowed.keys()
    for key in declaration.keys() - known:
        raise BadFaultError(f"{key}: no key of {name}; it takes {', '.join(sorted(known))}.")
    method, prefix = _route(declaration.get("route", "*"))
    probability = _number(declaration, "probability", 1.0)
    if not 0.0 <= probability <= 1.0:
        raise BadFaultError("probability: must be between 0 and 1.")
    seconds = _number(declaration, "seconds", math.inf) if declaration.get("seconds") is not None else math.inf
    extra = {key: declaration[key] for key in allowed if declaration.get(key) is not None}
    _check_extra(name, extra)
    market = declaration.get("market", "")
    if not isinstance(market, str):
        raise BadFaultError("market: must be the name of a market, or *.")
    return Fault(name, market, method, prefix, probability, seconds, _count(name, declaration), extra)


def check_markets(declared: Iterable[Fault], markets: Collection[str]) -> None:
    """Raise BadFaultError for a fault of a market that is none of these."""
    for fault in declared:
        if fault.market not in ("", ALL, *markets):
            raise BadFaultError(f"market: {fault.market!r} is none of {', '.join((*markets, ALL))}.")


def _check_extra(name: str, extra: Mapping[str, Any]) -> None:
    for key, value in extra.items():
        kinds = _KINDS[PARAMETERS[name][key]]
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise BadFaultError(f"{key}: must be {PARAMETERS[name][key]}.")
    if not extra.get("rows", 1) >= 1:
        raise BadFaultError("rows: must be at least 1.")
    if extra.get("when", "after") not in ("before", "after"):
        raise BadFaultError('when: must be "before" or "after".')
    if not str(extra.get("retry_after", 5)).isprintable():
        raise BadFaultError("retry_after: must be printable.")
    if name == FIELD_LIE:
        try:
            field_lies.read(extra)
        except ValueError as error:
            raise BadFaultError(str(error)) from error


def _count(name: str, declaration: Mapping[str, Any]) -> float:
    if declaration.get("count") is None:
        return math.inf
    if name in WORLD_FAULTS:
        raise BadFaultError(f"count: {name} strikes no calls; give it seconds.")
    count = _number(declaration, "count", 1.0)
    if count < 1 or count != int(count):
        raise BadFaultError("count: must be a whole number of at least 1.")
    return count


def _number(declaration: Mapping[str, Any], key: str, default: float) -> float:
    value = declaration.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value) or value < 0:
        raise BadFaultError(f"{key}: must be a number of at least 0.")
    return float(value)


def _route(text: object) -> tuple[str, str]:
    if not isinstance(text, str):
        raise BadFaultError('route: must be a string such as "*", "PUT /asks" or "/instances".')
    words = text.split()
    method = words.pop(0) if words and not words[0].startswith("/") else "*"
    prefix = words.pop(0) if words else ""
    if words or method not in _METHODS or prefix == "*":
        raise BadFaultError(f'route: {text!r} is not "*", a method, a path or a method and a path.')
    return method, _VERSION.sub("", prefix)
