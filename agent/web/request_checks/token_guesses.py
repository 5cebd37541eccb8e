"""Wrong tokens, counted for each client: a client that guesses must wait, but other clients need not.

1. A client is a browser that logged in before, else an address (for IPv6, the /64 network of one site).
2. After `MOST_GUESSES` wrong tokens a client waits until `REST_SECONDS` have passed since the last one. During the wait
   its tokens are not checked.
3. A browser that logged in before is counted by itself: a stranger behind the same address cannot lock it out.
4. At most `MOST_CLIENTS` are counted. If more guess at once, an address that is not counted yet waits too.
"""

import hashlib
import hmac
import ipaddress
import secrets
from collections import OrderedDict
from collections.abc import Callable

MOST_GUESSES = 5
REST_SECONDS = 60.0
MOST_CLIENTS = 1_000
SITE_BITS = 64


class Guesses:
    """Counts wrong guesses by client."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        """Measure waits with `monotonic`, in seconds."""
        self._monotonic = monotonic
        # client -> (wrong guesses, when they are forgotten), the soonest forgotten first
        self._wrong: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def __len__(self) -> int:
        """Return how many clients are counted."""
        return len(self._wrong)

    def must_wait(self, client: str) -> bool:
        """Return whether a client must wait."""
        self._forget()
        times, _ = self._wrong.get(client, (0, 0.0))
        is_full = not times and len(self._wrong) >= MOST_CLIENTS
        return is_full or times >= MOST_GUESSES

    def was_wrong(self, client: str) -> None:
        """Count a wrong guess."""
        times, _ = self._wrong.pop(client, (0, 0.0))
        self._wrong[client] = (times + 1, self._monotonic() + REST_SECONDS)

    def was_right(self, client: str) -> None:
        """Forget the wrong guesses of a client."""
        self._wrong.pop(client, None)

    def _forget(self) -> None:
        now = self._monotonic()
        while self._wrong and next(iter(self._wrong.values()))[1] <= now:
            self._wrong.popitem(last=False)


class Browsers:
    """Marks browsers that logged in, so that they are counted by themselves. A mark gives no other right."""

    def __init__(self) -> None:
        """Create the key with which this process signs its marks."""
        self._key = secrets.token_bytes(32)

    def mark(self) -> str:
        """Return a new mark."""
        name = secrets.token_urlsafe(16)
        return f"{name}.{self._seal(name)}"

    def is_known(self, mark: str) -> bool:
        """Return whether this process made a mark."""
        name, _, seal = mark.partition(".")
        return hmac.compare_digest(_bytes(seal), self._seal(name).encode())

    def _seal(self, name: str) -> str:
        return hmac.new(self._key, _bytes(name), hashlib.sha256).hexdigest()


def site(address: str | None) -> str:
    """Return the network that counts as one client: an IPv4 address, or the /64 of an IPv6 address."""
    try:
        address_of = ipaddress.ip_address(address or "")
    except ValueError:
        return ""
    if isinstance(address_of, ipaddress.IPv4Address):
        return str(address_of)
    if address_of.ipv4_mapped is not None:
        return str(address_of.ipv4_mapped)
    return str(ipaddress.ip_network((int(address_of), SITE_BITS), strict=False))


def _bytes(sent: str) -> bytes:
    return sent.encode("utf-8", "surrogateescape")
