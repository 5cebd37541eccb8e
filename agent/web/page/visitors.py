"""Visitors of the page and their rights: everybody may read; a visitor with the token may give orders too.

1. A session is a random name in a cookie that no script and no other site gets. It ends after `SESSION_HOURS`.
2. An order has a proof that it comes from our own page: a keyed hash of the session, which other sites cannot know.
3. Guesses of the token are slowed for each client separately: see agent/web/request_checks/token_guesses.py.
"""

import hashlib
import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass

import structlog
from aiohttp import web

from agent.systemd import CredentialError
from agent.web.request_checks.refusal_log import Refusals
from agent.web.request_checks.token_guesses import Browsers, Guesses, site

log = structlog.get_logger("gpubid.page")

COOKIE = "gpubid_session"
KNOWN = "gpubid_browser"
SESSION_HOURS = 12.0
KNOWN_DAYS = 90
MOST_SESSIONS = 100


@dataclass(frozen=True, slots=True)
class Entry:
    """The cookies for the right token: the session's name, and the mark that identifies the browser later."""

    session: str
    mark: str

    def give(self, answer: web.StreamResponse) -> None:
        """Set both cookies in an answer."""
        hours, days = int(SESSION_HOURS * 3600), KNOWN_DAYS * 86_400
        answer.set_cookie(COOKIE, self.session, httponly=True, samesite="Strict", max_age=hours)
        answer.set_cookie(KNOWN, self.mark, httponly=True, samesite="Strict", path="/login", max_age=days)


class Visitors:
    """The sessions of one daemon. They end with the daemon."""

    def __init__(
        self, token: Callable[[], str] | None, monotonic: Callable[[], float], refusals: Refusals | None = None
    ) -> None:
        """Allow orders from visitors who know the result of `token`. With None, nobody may give orders."""
        self._token = token
        self._monotonic = monotonic
        self._refusals = refusals or Refusals(monotonic)
        self._key = secrets.token_bytes(32)
        self._sessions: dict[str, float] = {}
        self._browsers = Browsers()
        self._guesses = {is_known: Guesses(monotonic) for is_known in (False, True)}

    @property
    def may_log_in(self) -> bool:
        """Whether a token is configured."""
        return self._token is not None

    def must_wait(self, request: web.Request) -> bool:
        """Return whether the sender of a request tried too many wrong tokens recently."""
        guesses, client = self._counted(request)
        return guesses.must_wait(client)

    def log_in(self, request: web.Request, guess: str) -> Entry | None:
        """Return a new session for the right token, else None."""
        guesses, client = self._counted(request)
        if self._token is None or guesses.must_wait(client):
            return None
        try:
            token = self._token()
        except CredentialError as error:
            log.warning("page.no_token", reason=str(error))
            return None
        if not hmac.compare_digest(_bytes(guess), token.encode()):
            guesses.was_wrong(client)
            self._refusals.refused("wrong_token", request.remote)
            return None
        guesses.was_right(client)
        session = secrets.token_urlsafe(32)
        self._sessions[session] = self._monotonic() + SESSION_HOURS * 3600
        for oldest in list(self._sessions)[:-MOST_SESSIONS]:
            del self._sessions[oldest]
        log.info("page.entered", client=request.remote)
        return Entry(session, self._mark(request) or self._browsers.mark())

    def log_out(self, request: web.Request) -> None:
        """End the session of a request."""
        self._sessions.pop(request.cookies.get(COOKIE, ""), None)

    def session(self, request: web.Request) -> str | None:
        """Return the session of a request, or None without a valid one."""
        name = request.cookies.get(COOKIE, "")
        return name if self._sessions.get(name, 0.0) > self._monotonic() else None

    def proof(self, session: str) -> str:
        """Return the proof for our own forms. Other sites' forms cannot have it."""
        return hmac.new(self._key, session.encode(), hashlib.sha256).hexdigest()

    def may_order(self, request: web.Request, proof: str) -> bool:
        """Return whether a posted order comes from our own page in a valid session."""
        session = self.session(request)
        return session is not None and hmac.compare_digest(_bytes(proof), self.proof(session).encode())

    def _counted(self, request: web.Request) -> tuple[Guesses, str]:
        """Return the counter of a request's guesses, and the client's name in it."""
        mark = self._mark(request)
        return self._guesses[bool(mark)], mark or site(request.remote)

    def _mark(self, request: web.Request) -> str:
        """Return the mark of a browser that logged in before, else an empty text."""
        mark = request.cookies.get(KNOWN, "")
        return mark if self._browsers.is_known(mark) else ""


def _bytes(sent: str) -> bytes:
    return sent.encode("utf-8", "surrogateescape")
