"""Who looks at the page, and what they may: everybody may read it, who knows the token may order too.

1. A session is a random name in a cookie that no script and no other site gets; it ends after `SESSION_HOURS`.
2. An order carries a proof that it was made on our own page: a keyed hash of the session that other sites cannot know.
3. Guessing the token is slowed for everybody: after `MOST_GUESSES` wrong ones nobody logs in for `REST_SECONDS`.
"""

import hashlib
import hmac
import ipaddress
import secrets
from collections.abc import Callable
from urllib.parse import urlsplit

import structlog
from aiohttp import web

from agent.systemd import CredentialError

log = structlog.get_logger("gpubid.page")

COOKIE = "gpubid_session"
SESSION_HOURS = 12.0
MOST_GUESSES = 5
REST_SECONDS = 60.0
MOST_SESSIONS = 100


class Visitors:
    """The sessions of one daemon; none outlives it."""

    def __init__(self, token: Callable[[], str] | None, monotonic: Callable[[], float]) -> None:
        """Let those order who know what `token` returns; None lets nobody."""
        self._token = token
        self._monotonic = monotonic
        self._key = secrets.token_bytes(32)
        self._sessions: dict[str, float] = {}
        self._wrong = 0
        self._rests_until = 0.0

    @property
    def may_log_in(self) -> bool:
        """Whether there is a token at all."""
        return self._token is not None

    @property
    def is_resting(self) -> bool:
        """Whether too many wrong tokens were tried lately."""
        return self._monotonic() < self._rests_until

    def log_in(self, guess: str) -> str | None:
        """Return a new session for the right token, else None."""
        if self._token is None or self.is_resting:
            return None
        try:
            token = self._token()
        except CredentialError as error:
            log.warning("page.no_token", reason=str(error))
            return None
        if not hmac.compare_digest(guess.encode(), token.encode()):
            self._wrong += 1
            if self._wrong >= MOST_GUESSES:
                self._wrong, self._rests_until = 0, self._monotonic() + REST_SECONDS
            return None
        self._wrong = 0
        session = secrets.token_urlsafe(32)
        self._sessions[session] = self._monotonic() + SESSION_HOURS * 3600
        for oldest in list(self._sessions)[:-MOST_SESSIONS]:
            del self._sessions[oldest]
        return session

    def log_out(self, request: web.Request) -> None:
        """End the session of a request."""
        self._sessions.pop(request.cookies.get(COOKIE, ""), None)

    def session(self, request: web.Request) -> str | None:
        """Return the session of a request, or None where it has none that counts."""
        name = request.cookies.get(COOKIE, "")
        return name if self._sessions.get(name, 0.0) > self._monotonic() else None

    def proof(self, session: str) -> str:
        """Return what a form of ours carries, so that no other site's form is taken for it."""
        return hmac.new(self._key, session.encode(), hashlib.sha256).hexdigest()

    def may_order(self, request: web.Request, proof: str) -> bool:
        """Tell whether a posted order comes from our own page in a session that counts."""
        session = self.session(request)
        return session is not None and hmac.compare_digest(proof.encode(), self.proof(session).encode())


def is_addressed_to_us(request: web.Request) -> bool:
    """Tell whether the page was asked for by address: a name that anybody can point at us may be another site's."""
    try:
        host = urlsplit(f"//{request.host}").hostname or ""
    except ValueError:
        return False
    if host == "localhost":
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
