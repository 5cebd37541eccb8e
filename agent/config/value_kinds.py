"""The kinds of values in agent.toml (text, numbers, dollars, durations), and the values that each kind refuses."""

import ipaddress
import math
import re
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, Strict, WithJsonSchema
from pydantic_core import PydanticCustomError

from agent.config import problems
from agent.decide import strategy

_MULTILINE = frozenset("\n\t")
_YEAR = timedelta(days=365)
_LARGEST = 10**9
_MILLIONTH = Decimal("0.000001")
_CREDENTIAL_NAME = re.compile(r"[A-Za-z0-9_.-]{1,48}")
_HOST_NAME = re.compile(r"(?=.*[a-z])[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_KEY_LIKE = re.compile(r"[0-9a-fA-F]{32,}|.{49,}")

WORKLOAD_NAME = r"^[A-Za-z0-9._-]{1,64}$"
VARIABLE_NAME = r"^[A-Za-z_][A-Za-z0-9_]{0,127}$"
IMAGE_NAME = r"^\S+$"
ONE_WORD = r"^[A-Za-z0-9][!-~]*$"
SSH_KEY = r"^(ssh-|ecdsa-|sk-)[A-Za-z0-9@.-]+ [A-Za-z0-9+/=]+( [A-Za-z0-9@._ -]+)?$"
URL_PATH = r"^/[!-~]*$"
SENTENCES: Mapping[str, tuple[str, str]] = {
    WORKLOAD_NAME: (
        "bad_name",
        "is no name for a workload; write 1 to 64 letters, digits, dots, dashes or underscores",
    ),
    VARIABLE_NAME: ("bad_name", "is no name for a variable; write letters, digits and underscores, no digit first"),
    ONE_WORD: ("bad_text", "must be one word that begins with a letter or digit"),
    SSH_KEY: ("bad_key", "is no public ssh key; copy the one line of a .pub file"),
    URL_PATH: ("bad_path", 'must begin with / and have no spaces; write for example ready_path = "/health"'),
    IMAGE_NAME: ("bad_image", "must be an image name without spaces"),
}
"""The code and the message for a text that does not match its pattern."""


def refused(code: str, sentence: str) -> PydanticCustomError:
    """Return the error that becomes a problem with this code and sentence."""
    return PydanticCustomError(code, "{sentence}", {"sentence": sentence})  # pyright: ignore[reportArgumentType]


def no_private_key(value: object) -> object:
    """Return a value that is no private key, for other checks."""
    if isinstance(value, str) and "PRIVATE KEY" in value.upper():
        raise refused(
            "private_key",
            "is a private key, which belongs on your machine alone; write the one line of its .pub file, and replace "
            "the pair if anybody else may have read this file",
        )
    return value


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise refused("wrong_type", f"must be a number without quotes, not {problems.shown(value)}")
    if not (isinstance(value, int) or math.isfinite(value)) or not -_LARGEST <= value <= _LARGEST:
        raise refused("not_finite", f"must be a finite number of usual size, not {problems.shown(value)}")
    return float(value)


def _dollars(value: object) -> Decimal:
    _number(value)
    amount = Decimal(str(value))
    if amount != amount.quantize(_MILLIONTH):
        shown = problems.shown(amount)
        raise refused("too_fine", f"has more than six decimals: {shown}; write whole millionths of a dollar")
    return amount


def _line(value: str) -> str:
    return _printed(value, frozenset())


def _lines(value: str) -> str:
    return _printed(value, _MULTILINE)


def _printed(value: str, allowed: frozenset[str]) -> str:
    for place, character in enumerate(value):
        if character not in allowed and not problems.is_printed(character):
            sentence = f"holds the control character U+{ord(character):04X} at place {place + 1}; remove it"
            raise refused("control_character", sentence)
    return value


def _span(value: object) -> timedelta:
    try:
        span = strategy.duration(value)
    except OverflowError:
        span = strategy.NEVER
    except ValueError:
        raise refused("bad_duration", f"must be a duration in quotes, not {problems.shown(value)}") from None
    if not timedelta(seconds=1) <= span <= _YEAR:
        raise refused("out_of_range", "must be at least a second and at most a year")
    return span


Line = Annotated[str, Strict(), BeforeValidator(lambda value: _line(value) if isinstance(value, str) else value)]
"""Text on one line."""

Script = Annotated[str, Strict(), BeforeValidator(lambda value: _lines(value) if isinstance(value, str) else value)]
"""Text of any number of lines."""

Whole = Annotated[int, Strict()]
Flag = Annotated[bool, Strict()]
Number = Annotated[float, BeforeValidator(_number)]

Dollars = Annotated[Decimal, BeforeValidator(_dollars), WithJsonSchema({"type": "number", "minimum": 0})]
"""Dollars, read from their decimal text and never through a binary float."""

Span = Annotated[
    timedelta,
    BeforeValidator(_span),
    WithJsonSchema({"type": "string", "pattern": r"^(\d+d)?(\d+h)?(\d+m)?(\d+s)?$", "minLength": 2}),
]

Price = Annotated[Dollars, Field(gt=0, le=1000)]
"""Dollars per hour of one instance. More than a thousand is a misplaced decimal point."""


MOST_SHARE = 100.0
"""The most that an hour may be worth, as a multiple of the on-demand price. More is a misplaced decimal point."""
_VALUE = re.compile(r"(\d{1,3}(?:\.\d{1,6})?) x on_demand")


def share_of_on_demand(text: str) -> float:
    """Return the share that `text` such as "0.8 x on_demand" names, for `value`."""
    read = _VALUE.fullmatch(text)
    if read is None or not 0 < float(read[1]) <= MOST_SHARE:
        sentence = f"is no share of the on-demand price, above 0 and at most {MOST_SHARE:g}"
        raise refused("bad_value", f'{sentence}; write for example value = "0.8 x on_demand"')
    return float(read[1])


def _named_share(text: str) -> str:
    share_of_on_demand(text)
    return text


ShareOfOnDemand = Annotated[Line, Field(max_length=32, examples=["0.8 x on_demand"]), AfterValidator(_named_share)]
"""A share of the on-demand price, as written."""


def web_address(value: str) -> str:
    """Return an http address without its last slash, or refuse it."""
    try:
        parts = urlsplit(value)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise refused("bad_url", 'is no address; write for example url = "https://console.vast.ai"') from error
    if parts.scheme not in {"http", "https"} or not host or parts.username or parts.query or parts.fragment:
        raise refused(
            "bad_url", 'must be scheme, host and path only; write for example url = "https://console.vast.ai"'
        )
    if parts.scheme == "http" and not _is_loopback(host):
        raise refused("bad_url", "would send the key in clear text; write https://, http is for this machine only")
    return value.rstrip("/")


def page_address(value: str) -> str:
    """Return the http address of a page that is asked without a key, or refuse it."""
    try:
        parts = urlsplit(value)
        host, _ = parts.hostname, parts.port
    except ValueError:
        parts, host = urlsplit(""), None
    if parts.scheme not in {"http", "https"} or not host or parts.username or parts.fragment:
        raise refused("bad_url", "must be an address of http or https, without a user and without #")
    return value


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def credential_name(value: str) -> str:
    """Return the name of a credential, or refuse a text that is no name, above all a key."""
    if _KEY_LIKE.fullmatch(value):
        sentence = "looks like the key itself; write the name of a credential and keep the key out of this file"
        raise refused("key_in_file", sentence)
    if not _CREDENTIAL_NAME.fullmatch(value):
        raise refused(
            "bad_name", 'may hold letters, digits and . _ - only; write for example credential = "vast_api_key"'
        )
    return value


def host_name(value: str) -> str:
    """Return a host name in lower case, or refuse an address, a URL or a name with a port."""
    name = value.lower().removesuffix(".")
    if not _HOST_NAME.fullmatch(name):
        sentence = 'is no host name; write it without scheme, port and stars, for example names = ["gpu-box.lan"]'
        raise refused("bad_name", sentence)
    return name
