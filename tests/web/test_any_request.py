"""Whatever bytes arrive, neither surface answers 500 or ends a handler by an exception, and both go on answering."""

import json
import re
from collections.abc import Iterator
from urllib.parse import quote, quote_from_bytes, urlencode

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agent.web.web_server import MOST_BODY
from tests.support import odd
from tests.support.raw import Answer, Surfaces, surfaces
from tests.web.page import TOKEN

EXAMPLES, NIGHTLY = 60, 6_000


@st.composite
def requests(draw: st.DrawFn, paths: tuple[str, ...]) -> bytes:
    """Return a request in the shape of one, with odd things in every place."""
    method = draw(st.sampled_from((*odd.METHODS[:2] * 4, *odd.METHODS)))
    lines = [
        method
        + b" "
        + draw(targets(paths))
        + b" "
        + draw(st.sampled_from((b"HTTP/1.1",) * 9 + (b"HTTP/1.0", b"HTTP/2.0")))
    ]
    headers = draw(st.lists(st.sampled_from(odd.HEADERS), max_size=3))
    if draw(st.integers(0, 9)):
        headers.append((b"Host", b"127.0.0.1"))
    body = draw(bodies()) if method != b"GET" else b""
    if body:
        charset = draw(st.sampled_from((b"",) * 6 + tuple(b"; charset=" + each for each in odd.CHARSETS)))
        headers.append((b"Content-Type", draw(st.sampled_from(odd.TYPES)) + charset))
    if method != b"GET":
        headers.append((b"Content-Length", str(len(body)).encode()))
    lines += [name + b": " + value for name, value in draw(st.permutations(headers))]
    return b"\r\n".join([*lines, b"Connection: close", b"", body])


@st.composite
def targets(draw: st.DrawFn, paths: tuple[str, ...]) -> bytes:
    """Return the path and the query."""
    if not draw(st.integers(0, 4)):
        return draw(st.sampled_from(odd.TARGETS))
    value = st.one_of(
        st.sampled_from(odd.VALUES), st.binary(max_size=12).map(lambda raw: quote_from_bytes(raw).encode())
    )
    asked = draw(st.lists(st.tuples(st.sampled_from(odd.KEYS), value), max_size=3))
    query = b"&".join(key + b"=" + each for key, each in asked)
    return draw(st.sampled_from(paths)).encode() + (b"?" + query if query else b"")


def bodies() -> st.SearchStrategy[bytes]:
    """Return the body."""
    return st.one_of(st.sampled_from(odd.BODIES), st.binary(max_size=64))


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Surfaces]:
    with surfaces(tmp_path_factory.mktemp("s")) as made:
        yield made


def check(both: Surfaces, raw: bytes, answer: Answer) -> None:
    """Insist that it was answered as a mistake of who asked, if at all, and that nothing broke."""
    is_not_ready = answer.status == 503 and b"/readyz" in raw
    assert answer.status == 0 or 200 <= answer.status < 500 or is_not_ready, (raw[:300], answer.raw[:300])
    assert both.complaints == [], (raw[:300], both.complaints)
    assert b"Traceback" not in answer.raw


def is_whole(raw: bytes) -> bool:
    """Return whether an answer may be waited for: nothing in the head announces more than was sent."""
    head = raw.partition(b"\r\n\r\n")[0].lower()
    return not re.search(
        rb"transfer-encoding|upgrade|content-length: (?!\d+(\r|$))|content-length.*content-length", head, re.DOTALL
    )


def still_answers(both: Surfaces) -> None:
    """Insist that both surfaces still serve."""
    assert both.over_tcp(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n").status in {200, 503}
    assert both.over_socket(b"GET /running HTTP/1.1\r\nHost: gpubid\r\nConnection: close\r\n\r\n").status == 200


def tcp(both: Surfaces, raw: bytes) -> None:
    answer = both.over_tcp(raw, is_whole=is_whole(raw))
    # Who sends more than is read may lose the refusal with the connection.
    assert answer.status or not is_whole(raw) or len(raw) > MOST_BODY, raw[:300]
    check(both, raw, answer)


def unix(both: Surfaces, raw: bytes) -> None:
    answer = both.over_socket(raw, is_whole=is_whole(raw))
    # Who sends more than is read may lose the refusal with the connection.
    assert answer.status or not is_whole(raw) or len(raw) > MOST_BODY, raw[:300]
    check(both, raw, answer)


def post(path: str, body: bytes, *headers: bytes) -> bytes:
    lines = [f"POST {path} HTTP/1.1".encode(), b"Host: 127.0.0.1", b"Connection: close", *headers]
    return b"\r\n".join([*lines, f"Content-Length: {len(body)}".encode(), b"", body])


FEW = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
MANY = settings(max_examples=NIGHTLY, deadline=None, suppress_health_check=list(HealthCheck))


@FEW
@given(requests(odd.PAGES))
@example(post("/webhooks/vast", b"{}", b"X-Vast-Timestamp: 1", b"X-Vast-Signature-256: sha256=\xff"))
@example(post("/webhooks/vast", b"{}", b"X-Vast-Timestamp: \xff", b"X-Vast-Signature-256: sha256=0"))
@example(post("/login", b"token=x", b"Content-Type: application/x-www-form-urlencoded; charset=undefined"))
@example(post("/login", b"token=\\ud800", b"Content-Type: application/x-www-form-urlencoded; charset=unicode_escape"))
@example(post("/login", b"--x\r\n\r\nv\r\n--x--\r\n", b"Content-Type: multipart/form-data; boundary=x"))
@example(b"GET /lease/\xff HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
@example(b"GET http:///x HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
def test_the_web_server_takes_any_request(both: Surfaces, raw: bytes) -> None:
    tcp(both, raw)


@FEW
@given(requests(odd.VERBS))
@example(post("/order", b"[" * 60_000, b"Content-Type: application/json"))
@example(post("/say", b'{"verb": "drain", "target": "\\ud800"}', b"Content-Type: application/json"))
@example(post("/order", b'{"a":' * 10_000, b"Content-Type: application/json"))
@example(post("/say", b'{"verb": "drain", "target": "train", "seconds": 3e11}', b"Content-Type: application/json"))
@example(post("/say", b"{}", b"Content-Type: application/json; charset=undefined"))
def test_the_operators_socket_takes_any_request(both: Surfaces, raw: bytes) -> None:
    unix(both, raw)


TEXTS = st.one_of(st.sampled_from(odd.WORDS), st.text(max_size=30))
VERBS = st.one_of(st.sampled_from(("kill", "release", "drain", "unlock")), TEXTS)
NUMBERS = st.one_of(st.none(), st.integers(), st.floats(), TEXTS)


def said() -> st.SearchStrategy[object]:
    """Return bodies of POST /say, nearly right."""
    say = {"verb": TEXTS, "target": TEXTS, "seconds": NUMBERS, "into": TEXTS, "hours": NUMBERS}
    kill = {"verb": TEXTS, "target": TEXTS, "keep_disks": st.booleans() | TEXTS}
    return st.one_of(st.fixed_dictionaries(say), st.fixed_dictionaries(kill), st.dictionaries(TEXTS, NUMBERS))


def ordered(both: Surfaces, body: object) -> None:
    for path in ("/say", "/order"):  # the second is no route of the socket
        unix(both, post(path, json.dumps(body).encode("utf-8", "surrogatepass"), b"Content-Type: application/json"))


def visited(both: Surfaces, visitor: tuple[bytes, str], verb: str, target: str, typed: str) -> None:
    cookie, proof = visitor
    fields = {"verb": verb, "target": target, "typed": typed, "keep_disks": typed, "proof": proof}
    form = urlencode(fields, errors="surrogatepass").encode()
    tcp(both, post("/order", form, cookie, b"Content-Type: application/x-www-form-urlencoded"))
    asked = f"GET /confirm?{form.decode()} HTTP/1.1".encode()
    tcp(both, b"\r\n".join([asked, b"Host: 127.0.0.1", cookie, b"Connection: close", b"", b""]))


@pytest.fixture(scope="module")
def visitor(both: Surfaces) -> tuple[bytes, str]:
    """Return the cookie and the proof of somebody who logged in."""
    form = b"token=" + quote(TOKEN).encode()
    answer = both.over_tcp(post("/login", form, b"Content-Type: application/x-www-form-urlencoded"))
    assert answer.status == 303, answer.raw
    cookie = re.search(rb"gpubid_session=[^;]+", answer.raw)
    assert cookie is not None
    head = b"Cookie: " + cookie[0]
    page = both.over_tcp(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n" + head + b"\r\n\r\n")
    proof = re.search(rb'name="proof" value="([0-9a-f]{64})"', page.raw)
    assert proof is not None, page.raw
    return head, proof[1].decode()


@FEW
@given(said())
def test_the_operators_socket_takes_any_order(both: Surfaces, body: object) -> None:
    ordered(both, body)


@FEW
@given(VERBS, TEXTS, TEXTS)
def test_who_logged_in_may_send_anything(
    both: Surfaces, visitor: tuple[bytes, str], verb: str, target: str, typed: str
) -> None:
    visited(both, visitor, verb, target, typed)


@FEW
@given(st.binary(max_size=400))
def test_bytes_that_are_no_request(both: Surfaces, raw: bytes) -> None:
    for ask in (both.over_tcp, both.over_socket):
        check(both, raw, ask(raw + b"\r\n\r\n", is_whole=False))
    still_answers(both)


@pytest.mark.nightly
@MANY
@given(requests(odd.PAGES))
def test_the_web_server_takes_any_request_all_night(both: Surfaces, raw: bytes) -> None:
    tcp(both, raw)


@pytest.mark.nightly
@MANY
@given(requests(odd.VERBS))
def test_the_operators_socket_takes_any_request_all_night(both: Surfaces, raw: bytes) -> None:
    unix(both, raw)


@pytest.mark.nightly
@MANY
@given(said())
def test_the_operators_socket_takes_any_order_all_night(both: Surfaces, body: object) -> None:
    ordered(both, body)


@pytest.mark.nightly
@MANY
@given(VERBS, TEXTS, TEXTS)
def test_who_logged_in_may_send_anything_all_night(
    both: Surfaces, visitor: tuple[bytes, str], verb: str, target: str, typed: str
) -> None:
    visited(both, visitor, verb, target, typed)


def test_both_surfaces_still_answer(both: Surfaces) -> None:
    still_answers(both)
