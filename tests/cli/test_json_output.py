"""`deploy/json-output.md` is the contract of `--json`: what is printed is documented, what is documented is printed."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import contract, programs
from tests.support.programs import LIVE, Market, Ran, gpubid, until

SECTIONS = contract.sections()
VERBS: dict[str, tuple[str, ...]] = {
    "check": ("check",),
    "plan": ("plan",),
    "explain": ("explain",),
    "fleet": ("fleet",),
    "ledger events": ("ledger", "events"),
    "ledger prices": ("ledger", "prices"),
    "ledger verify": ("ledger", "verify"),
    "strategy list": ("strategy", "list"),
    "strategy show": ("strategy", "show", "patient"),
    "strategy diff": ("strategy", "diff", "patient", "ondemand"),
    "rehearse": ("rehearse", "--hours", "2", "--climate", "bidding_war"),
    "release": ("drain", "train/0"),
}
UNSEEN = {"ledger verify": {"findings[]"}}
"""What a sound ledger has none of; the damaged one of tests/cli/test_ledger.py has."""

UNTIMELY = {"leases[].ports.<port>"}
"""What a lease that still loads has none of; tests/cli/test_reach.py waits for it."""


def configured(place: Path, market: Market, slots: int) -> None:
    text = LIVE.format(url=market.url).replace("slots = 1", f"slots = {slots}")
    (place / "agent.toml").write_text(text.replace("max_instances = 4", "max_instances = 3"))


async def _count(market: Market, count: int) -> bool:
    return len(await market.billing()) == count


async def _samples(place: Path) -> dict[str, list[Any]]:
    """Run every verb on a fleet of one lease, one doubt and an empty slot, and then under a kill that is refused."""
    made: dict[str, list[Any]] = {}

    async def sample(name: str, *verb: str) -> Ran:
        ran = await gpubid(place, *verb, "--json")
        made.setdefault(name, []).append(ran.json)
        return ran

    async with programs.running(place) as (market, daemon):
        await until(market.billing, "a rent")
        await market.weather("server_error_after", route="PUT /asks")
        configured(place, market, 2)
        await daemon.reload()
        await until(lambda: _count(market, 2), "a second rent")
        daemon.process.kill()
        await daemon.ended()
        configured(place, market, 3)
        for name, verb in VERBS.items():
            assert (await sample(name, *verb)).code == 0, verb
        await market.weather("throttle_text", route="DELETE /instances")
        await market.weather("html_403", route="GET /instances")
        assert (await sample("kill", "kill")).code == 1
        await market.still()
        await market.weather("throttle_text", route="DELETE /instances")
        await sample("plan", "plan")
        await sample("explain", "explain")
        await sample("fleet", "fleet")
        await market.still()
        assert (await sample("release", "release", "train/0")).code == 0
        made["simulate"] = [{"vast_url": market.url, "control_url": market.control_url}]
    return made


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    return asyncio.run(_samples(tmp_path_factory.mktemp("json")))


def leaves(documents: list[Any]) -> Iterator[tuple[str, Any]]:
    """Yield each plain value of all the documents with its path in its own."""
    for document in documents:
        yield from contract.leaves(document)


def test_every_verb_is_documented() -> None:
    assert SECTIONS.keys() == {*VERBS, "kill", "simulate"}


@pytest.mark.parametrize("name", SECTIONS)
def test_what_is_printed_is_documented(samples: dict[str, list[Any]], name: str) -> None:
    for path, value in leaves(samples[name]):
        keys = [key for key in SECTIONS[name] if key.pattern.fullmatch(path)]
        assert keys, f"{path} is not in {contract.PAGE.name}"
        assert any(key.allows(value) for key in keys), f"{path} is {value!r}, documented as {keys[0].kind}"


@pytest.mark.parametrize("name", SECTIONS)
def test_what_is_documented_is_printed(samples: dict[str, list[Any]], name: str) -> None:
    seen = [path for path, _ in leaves(samples[name])]
    missing = {key.path for key in SECTIONS[name] if not any(key.pattern.fullmatch(path) for path in seen)}
    assert missing - UNTIMELY == UNSEEN.get(name, set())


@pytest.mark.parametrize("name", SECTIONS)
def test_what_is_not_said_to_be_missing_at_times_is_always_there(samples: dict[str, list[Any]], name: str) -> None:
    for key in SECTIONS[name]:
        table, _, last = key.path.rpartition(".")
        if key.is_sometimes or "<" in last or last.endswith("[]"):
            continue
        for document in samples[name]:
            for entry in _entries(document, table):
                assert last in entry, f"{key.path} is missing in {entry}"


def _entries(document: Any, table: str) -> Iterator[dict[str, Any]]:
    """Yield the tables that a path leads to."""
    step, _, rest = table.partition(".")
    if not step:
        yield document
        return
    name, is_list = step.removesuffix("[]"), step.endswith("[]")
    inner = document[name] if name and name[0] != "<" else document
    for entry in inner if is_list else inner.values() if name[:1] == "<" else [inner]:
        yield from _entries(entry, rest)
