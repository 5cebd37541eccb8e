"""Host names of the daemon, and whether a request that changes something comes from its own page.

1. A page of another site can point its own name at this machine (DNS rebinding) and then read our answers. So we
   answer only to an address, to `localhost`, and to the names that the configuration lists.
2. A page of another site can make a browser post a form here. A browser names the origin of a form in `Origin`, and
   mostly in `Sec-Fetch-Site` too. A request with neither is not from a browser and has no browser's cookie.
"""

import ipaddress
import re
from collections.abc import Collection
from urllib.parse import urlsplit

from aiohttp import hdrs, web

OWN_SITES = frozenset({"same-origin", "none"})
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+)(:\d{0,5})?")
SAFE_METHODS = frozenset({hdrs.METH_GET, hdrs.METH_HEAD, hdrs.METH_OPTIONS})


def is_ours(authority: str, names: Collection[str]) -> bool:
    """Return whether `authority` (a host with or without a port) is an address, `localhost` or one of `names`."""
    host = _host(authority)
    return host == "localhost" or host in names or _is_address(host)


def is_addressed_to_us(request: web.Request, names: Collection[str]) -> bool:
    """Return whether every server name in a request is ours. A request without any name is accepted."""
    target = request.raw_path if "://" in request.raw_path.partition("?")[0] else ""
    asked = [*request.headers.getall(hdrs.HOST, ()), *([_authority(target)] if target else ())]
    return all(is_ours(each, names) for each in asked)


def is_from_elsewhere(request: web.Request, names: Collection[str]) -> bool:
    """Return whether a browser reports that a changing request comes from another site's page."""
    if request.method in SAFE_METHODS:
        return False
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None and site not in OWN_SITES:
        return True
    origin = request.headers.get(hdrs.ORIGIN)
    if origin is None:
        return False
    authority = _authority(origin)
    is_same = bool(authority) and authority.lower() == request.headers.get(hdrs.HOST, "").lower()
    # Behind a proxy that ends TLS, the browser's headers name the proxy, and the proxy's may name us.
    return not is_same and _host(authority) not in names


def _authority(url: str) -> str:
    try:
        return urlsplit(url).netloc
    except ValueError:
        return ""


def _host(authority: str) -> str:
    match = _AUTHORITY.fullmatch(authority)
    return match[1].strip("[]").lower().removesuffix(".") if match is not None else ""


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
