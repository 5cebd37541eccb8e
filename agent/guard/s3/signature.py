"""Signature version 4 of a request to S3."""

from __future__ import annotations

import hashlib
import hmac
import time
from dataclasses import dataclass
from typing import Mapping
from urllib.parse import quote

EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()
_ALGORITHM = "AWS4-HMAC-SHA256"


@dataclass(frozen=True)
class SigningKey:
    """The key that signs requests. `token` is empty unless the key is temporary."""

    key_id: str
    secret: str
    token: str
    region: str


def encoded_path(path: str) -> str:
    """Return a path as it is sent and signed."""
    return quote(path, safe="/~")


def encoded_query(query: Mapping[str, str]) -> str:
    """Return a query as it is sent and signed."""
    return "&".join(f"{quote(name, safe='~')}={quote(value, safe='~')}" for name, value in sorted(query.items()))


def signed(
    key: SigningKey, method: str, path: str, query: str, headers: Mapping[str, str], payload_sha256: str, wall: float
) -> dict[str, str]:
    """Return the headers with those that sign them. Path and query are encoded; `wall` is seconds since 1970."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(wall))
    all_headers = {name.lower(): value for name, value in headers.items()}
    all_headers.update({"x-amz-date": stamp, "x-amz-content-sha256": payload_sha256})
    if key.token:
        all_headers["x-amz-security-token"] = key.token
    names = ";".join(sorted(all_headers))
    lines = "".join(f"{name}:{' '.join(all_headers[name].split())}\n" for name in sorted(all_headers))
    request = f"{method}\n{path}\n{query}\n{lines}\n{names}\n{payload_sha256}"
    scope = f"{stamp[:8]}/{key.region}/s3/aws4_request"
    text = f"{_ALGORITHM}\n{stamp}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    proof = hmac.new(_derived(key, stamp[:8]), text.encode(), hashlib.sha256).hexdigest()
    all_headers["authorization"] = (
        f"{_ALGORITHM} Credential={key.key_id}/{scope}, SignedHeaders={names}, Signature={proof}"
    )
    return all_headers


def _derived(key: SigningKey, day: str) -> bytes:
    derived = f"AWS4{key.secret}".encode()
    for part in (day, key.region, "s3", "aws4_request"):
        derived = hmac.new(derived, part.encode(), hashlib.sha256).digest()
    return derived
