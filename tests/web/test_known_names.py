"""Under which names the daemon answers, over real HTTP: a name that somebody else pointed here reads nothing."""

import asyncio
import json
from pathlib import Path

import pytest

from agent.markets.vast import events
from agent.web.request_checks.known_names import is_ours
from tests.web.page import SECRET, TOKEN, Served, served

ROUTES = (
    "/metrics",
    "/services",
    "/front/a.caddy.json",
    "/readyz",
    "/healthz",
    "/",
    "/events",
    "/login",
    "/static/page.css",
    "/nothing",
)
FOREIGN = (
    "gpubid.example",
    "gpubid.example:9477",
    "127.0.0.1.example:80",
    "localhost.example",
    "gpu-box.lan.example",
    "",
)


async def asked(page: Served, path: str, *hosts: str) -> int:
    """Ask with these Host lines, as they are."""
    lines = [f"GET {path} HTTP/1.1", *(f"Host: {host}" for host in hosts), "Connection: close"]
    reader, writer = await asyncio.open_connection(*page.place)
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
    raw = await reader.read()
    writer.close()
    return int(raw.split()[1])


async def test_no_route_answers_to_a_foreign_name(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        for path in ROUTES:
            assert await asked(page, path, "127.0.0.1") in {200, 404, 503}, path
            for host in FOREIGN:
                assert await asked(page, path, host) == 421, (path, host)
        status, text = await page.get("/metrics", Host="rebound.example")
    assert status == 421
    assert "gpubid_" not in text
    assert "`names` in [web]" in text


async def test_names_of_the_configuration_are_answered_to(tmp_path: Path) -> None:
    async with served(tmp_path, names=("gpu-box.lan",)) as page:
        for path in ("/metrics", "/services", "/"):
            for host in ("gpu-box.lan", "GPU-Box.lan:9477", "gpu-box.lan.", "localhost:1", "[::1]:9477", "10.0.0.7"):
                assert await asked(page, path, host) == 200, (path, host)
            for host in FOREIGN:
                assert await asked(page, path, host) == 421, (path, host)


async def test_every_name_that_a_request_gives_must_be_ours(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        assert await asked(page, "http://gpubid.example/metrics", "127.0.0.1") == 421
        assert await asked(page, "http://127.0.0.1/metrics", "gpubid.example") == 421
        assert await asked(page, "http://127.0.0.1/metrics", "127.0.0.1") == 200
        assert await asked(page, "/metrics", "127.0.0.1", "gpubid.example") in {400, 421}
        assert await asked(page, "/metrics") in {200, 400}


async def test_a_signed_delivery_comes_by_whatever_public_name_leads_here(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        now = page.world.app.clock.now()
        told = {"event_id": "e", "notif_type": "client:outbid", "timestamp": now.timestamp(), "message": "instance 1"}
        raw = json.dumps(told).encode()
        headers = events.signed(raw, now, SECRET) | {
            "Host": "hooks.example",
            "Origin": "https://hooks.example",
        }
        async with page.client.post(f"{page.url}/webhooks/vast", data=raw, headers=headers) as answer:
            assert answer.status == 204


@pytest.mark.parametrize(
    ("site", "origin", "status"),
    [
        (None, None, 303),
        (None, "{own}", 303),
        ("same-origin", "{own}", 303),
        ("none", None, 303),
        (None, "https://gpu-box.lan", 303),
        (None, "http://evil.example", 403),
        (None, "null", 403),
        (None, "http://127.0.0.1:1", 403),
        (None, "http://[::1", 403),
        (None, "", 403),
        ("cross-site", None, 403),
        ("same-site", "{own}", 403),
        ("same-origin", "http://evil.example", 403),
    ],
)
async def test_a_form_of_another_page_is_refused_before_anything_is_read(
    tmp_path: Path, site: str | None, origin: str | None, status: int
) -> None:
    async with served(tmp_path, names=("gpu-box.lan",)) as page:
        headers = {"Sec-Fetch-Site": site, "Origin": origin and origin.format(own=page.url)}
        given = {name: value for name, value in headers.items() if value is not None}
        for path in ("/login", "/logout"):
            form = {"token": TOKEN, "proof": ""}
            post = page.client.post(page.url + path, data=form, headers=given, allow_redirects=False)
            async with post as answer:
                assert answer.status == status, path


@pytest.mark.parametrize("host", ["", ":", "a b", "[::1", "[::1]x", "::1", "\udcff", "1.2.3", "0x7f.1", "gpu-box"])
def test_what_is_no_address_is_not_ours(host: str) -> None:
    assert not is_ours(host, frozenset({"gpu-box.lan"}))
