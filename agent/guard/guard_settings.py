"""The daemon's settings for the guard: the environment, read with bounds."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from typing import Any, Mapping
from urllib.parse import urlsplit

VERSION = 1
DONE, ASK_SIGUSR1, ASK_NONE = 0, "SIGUSR1", "none"
SECRET_VARIABLES = ("GPUBID_BUCKET_KEY_ID", "GPUBID_BUCKET_SECRET", "GPUBID_BUCKET_TOKEN")
OWN_VARIABLES = (*SECRET_VARIABLES, "GPUBID_GUARD", "GPUBID_GUARD_HOME", "GPUBID_GUARD_URL", "GPUBID_GUARD_SHA256")
"""Variables that the work does not get."""
SPEED_VARIABLE, PROGRESS_VARIABLE = "SIM_SPEED", "GPUBID_PROGRESS"
LEAST_INTERVAL_SECONDS, USUAL_INTERVAL_SECONDS, MOST_SECONDS = 5.0, 900.0, 7 * 86_400.0
MOST_PATHS, MOST_KEPT, MOST_CODES, MOST_TEXT = 100, 100, 256, 4_096
CODES = range(256)
INSTANCE = "{instance}"
"""The place of the instance's id in the path of a request."""
LEAST_SILENT_SECONDS, MOST_SILENT_SECONDS = 3_600.0, 30 * 86_400.0
MOST_CHECK_SECONDS = 60.0
MOST_VARIABLES = 256
_METHODS = frozenset({"PUT", "POST", "PATCH", "DELETE"})
_PATH = re.compile(r"/[!-~]{0,199}")
_INSTANCE, _KEY = re.compile(r"[A-Za-z0-9_-]{1,100}"), re.compile(r"[!-~]{1,4096}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,255}")
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class UnusableSettings(Exception):
    """The daemon's settings cannot be read. The message is one sentence."""


@dataclass(frozen=True)
class BucketPlace:
    """The place of the mailbox: address of the store, its region, the bucket, the folder in it, and the key."""

    endpoint: str
    region: str
    name: str
    root: str
    key_id: str
    secret: str
    token: str


@dataclass(frozen=True)
class StopRequest:
    """A request: method, the path below the market's address, and the JSON that is sent."""

    method: str
    path: str
    body: Mapping[str, str]


@dataclass(frozen=True)
class DeadmanSettings:
    """The dead man's switch: the daemon's longest silence in seconds, and how the market is asked to stop or end us.

    `api` is the address of the market without a slash at its end. `instance` and `key` are empty if the market did not
    give them.
    """

    after_seconds: float
    destroys: bool
    api: str
    stop: StopRequest
    end: StopRequest
    instance: str
    key: str = field(repr=False)

    @property
    def has_key(self) -> bool:
        """Return whether the market can be asked at all."""
        return bool(self.instance and self.key)


@dataclass(frozen=True)
class AcceptanceSettings:
    """The check of the host at a start: the most that it may take in seconds, and the operator's own command."""

    seconds: float
    script: str | None


@dataclass(frozen=True)
class GuardSettings:
    """All settings of the guard. Durations are in seconds."""

    paths: tuple[str, ...]
    complete: str | None
    ask: str
    keep: int
    final_within: float
    done_codes: tuple[int, ...]
    interval: float
    interval_by_age: tuple[tuple[float, float], ...]
    bucket: BucketPlace | None
    rclone: str | None
    lease: str
    run: int
    manifest_exists: bool
    deadman: DeadmanSettings | None
    acceptance: AcceptanceSettings | None
    carries_logs: bool
    rented: str
    """The name of the container's first task, which its rent began with."""
    next_variables: tuple[str, ...] | None
    """The variables for which another task on this host may have its own values; None: no other task follows."""

    def interval_at(self, age_seconds: float) -> float:
        """Return the seconds between two checkpoints at an age of the lease."""
        fitting = [interval for age, interval in self.interval_by_age if age <= age_seconds]
        return fitting[-1] if fitting else self.interval


def read(environment: Mapping[str, str]) -> GuardSettings:
    """Return the settings in an environment, or raise UnusableSettings."""
    try:
        settings = json.loads(environment["GPUBID_GUARD"])
    except (ValueError, KeyError, RecursionError):
        raise UnusableSettings("GPUBID_GUARD is no JSON") from None
    if not isinstance(settings, dict) or settings.get("version") != VERSION:
        raise UnusableSettings(f"GPUBID_GUARD is not of version {VERSION}")
    return GuardSettings(
        paths=_paths(settings.get("paths")),
        complete=_text(settings, "complete"),
        ask=ASK_NONE if settings.get("ask") == ASK_NONE else ASK_SIGUSR1,
        keep=int(_number(settings.get("keep"), 2, 1, MOST_KEPT)),
        final_within=_number(settings.get("final_within_seconds"), 8.0, 0.0, 3_600.0),
        done_codes=_codes(settings.get("done_codes")),
        interval=_interval(environment, settings),
        interval_by_age=_by_age(environment.get("GPUBID_CHECKPOINT_BY_AGE", "")),
        bucket=_bucket(settings.get("bucket"), environment),
        rclone=_text(settings, "rclone"),
        lease=_needed(settings, "lease"),
        run=int(_number(settings.get("run"), 1, 1, 2**31)),
        manifest_exists=settings.get("manifest_exists") is True,
        deadman=_deadman(settings.get("deadman"), environment),
        acceptance=_acceptance(settings.get("acceptance")),
        carries_logs=settings.get("logs") is True,
        rented=_text(settings, "rented") or _needed(settings, "lease"),
        next_variables=_names(settings.get("next_variables")),
    )


def speed(environment: Mapping[str, str]) -> float:
    """Return the simulated seconds per real second; 1 on a rented host."""
    return _number(_float(environment.get(SPEED_VARIABLE, "")), 1.0, 1.0, 1_000.0)


def work_environment(environment: Mapping[str, str], progress_file: str | None) -> dict[str, str]:
    """Return the work's environment: all but the guard's own variables, and the file for its progress."""
    kept = {name: value for name, value in environment.items() if name not in {*OWN_VARIABLES, PROGRESS_VARIABLE}}
    if progress_file is not None:
        kept[PROGRESS_VARIABLE] = progress_file
    return kept


def _interval(environment: Mapping[str, str], settings: Mapping[str, Any]) -> float:
    advised = _float(environment.get("GPUBID_CHECKPOINT_SECONDS", ""))
    given = settings.get("interval_seconds") if advised is None else advised
    return _number(given, USUAL_INTERVAL_SECONDS, LEAST_INTERVAL_SECONDS, MOST_SECONDS)


def _by_age(text: str) -> tuple[tuple[float, float], ...]:
    """Read pairs of seconds as in `0:210 600:246`: age, and seconds between two checkpoints from there on."""
    pairs = [pair.partition(":") for pair in text.split()[:MOST_PATHS]]
    read_pairs = [(_float(age), _float(interval)) for age, _, interval in pairs]
    return tuple(
        sorted(
            (age, _number(interval, USUAL_INTERVAL_SECONDS, LEAST_INTERVAL_SECONDS, MOST_SECONDS))
            for age, interval in read_pairs
            if age is not None and interval is not None
        )
    )


def _float(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _number(value: object, usual: float, least: float, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return usual
    if isinstance(value, float) and not math.isfinite(value):
        return usual
    return min(max(value, least), most)


def _paths(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or len(value) > MOST_PATHS:
        raise UnusableSettings(f"paths must be 1 to {MOST_PATHS} absolute paths")
    paths = [path for path in value if isinstance(path, str) and path.startswith("/") and "\0" not in path]
    if len(paths) != len(value):
        raise UnusableSettings("paths must be absolute")
    return tuple(paths)


def _codes(value: object) -> tuple[int, ...]:
    if not isinstance(value, list):
        return (DONE,)
    return tuple(code for code in value[:MOST_CODES] if isinstance(code, int) and code in CODES)


def _text(settings: Mapping[str, Any], key: str) -> str | None:
    value = settings.get(key)
    return value if isinstance(value, str) and 0 < len(value) <= MOST_TEXT else None


def _names(value: object) -> tuple[str, ...] | None:
    """Read the variables of another task; our own settings and keys are never among them."""
    if not isinstance(value, list) or len(value) > MOST_VARIABLES:
        return None
    names = tuple(name for name in value if isinstance(name, str) and _VARIABLE.fullmatch(name))
    return names if len(names) == len(value) and not set(names) & {*OWN_VARIABLES, PROGRESS_VARIABLE} else None


def _needed(settings: Mapping[str, Any], key: str) -> str:
    value = _text(settings, key)
    if value is None:
        raise UnusableSettings(f"{key} is missing")
    return value


def _bucket(value: object, environment: Mapping[str, str]) -> BucketPlace | None:
    if not isinstance(value, dict):
        return None
    key_id, secret, token = (environment.get(name, "") for name in SECRET_VARIABLES)
    if not key_id or not secret:
        raise UnusableSettings("the bucket's key is missing")
    texts = {key: _needed(value, key) for key in ("endpoint", "name", "root")}
    region = _text(value, "region") or "us-east-1"
    return BucketPlace(texts["endpoint"], region, texts["name"], texts["root"].strip("/"), key_id, secret, token)


def _deadman(value: object, environment: Mapping[str, str]) -> DeadmanSettings | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise UnusableSettings("deadman must say how the market is asked")
    # There is no default: it would stop paid work at a time that nobody chose.
    after = _number(value.get("after_seconds"), 0.0, LEAST_SILENT_SECONDS, MOST_SILENT_SECONDS)
    if not after:
        raise UnusableSettings("deadman has no after_seconds")
    # The market's variables for the container's own id, and for a key of this instance alone. The work gets both.
    instance, key = (environment.get(_needed(value, name), "") for name in ("instance_from", "key_from"))
    instance = instance if _INSTANCE.fullmatch(instance) else ""
    return DeadmanSettings(
        after_seconds=after,
        destroys=value.get("destroy") is True,
        api=_api(_needed(value, "api")),
        stop=_request(value.get("stop"), instance),
        end=_request(value.get("end"), instance),
        instance=instance,
        key=key if _KEY.fullmatch(key) else "",
    )


def _request(value: object, instance: str) -> StopRequest:
    """Return a request about an instance."""
    asked = value if isinstance(value, dict) else {}
    method, path, body = asked.get("method"), asked.get("path"), asked.get("body")
    if not isinstance(path, str) or _PATH.fullmatch(path) is None or INSTANCE not in path:
        raise UnusableSettings("deadman has a request without a path to the instance")
    if not isinstance(method, str) or method not in _METHODS:
        raise UnusableSettings("deadman has a request without a method")
    if not isinstance(body, dict) or not all(isinstance(each, str) for each in body.values()):
        raise UnusableSettings("deadman has no usable request to the market")
    return StopRequest(method, path.replace(INSTANCE, instance), body)


def _acceptance(value: object) -> AcceptanceSettings | None:
    if not isinstance(value, dict):
        return None
    seconds = _number(value.get("seconds"), MOST_CHECK_SECONDS, 1.0, MOST_CHECK_SECONDS)
    return AcceptanceSettings(seconds, _text(value, "script"))


def _api(text: str) -> str:
    """Return the address of a market. A key is sent there, so it must be https, except on this machine itself."""
    try:
        address = urlsplit(text)
        is_usable = bool(address.hostname) and (address.port is None or address.port > 0)
    except ValueError:
        raise UnusableSettings("the market's api is no address") from None
    is_safe = address.scheme == "https" or (address.scheme == "http" and address.hostname in _LOOPBACK)
    is_plain = address.username is None and not address.query and not address.fragment and text.isprintable()
    if not is_usable or not is_safe or not is_plain or " " in text:
        raise UnusableSettings("the market's api is no https address")
    return text.rstrip("/")
