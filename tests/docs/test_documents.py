"""The documents agree with the program: every verb, metric, card and rule, and every link and path that they name."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from agent.cli import main
from agent.telemetry.metric_updates import Metrics
from tests.markets.benches import EXEMPT
from tests.markets.card import Card
from tests.markets.cards import CARDS

ROOT = Path(__file__).parents[2]
HANDBOOK = ROOT / "deploy/handbook/pages"
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "deploy").glob("*.md"), *HANDBOOK.rglob("*.md")])
LINK = re.compile(r"\[[^\]]+\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)")
RULES = range(1, 22)
WORDS_OF_THE_MAP = 2_200
COMMON_CHANGES = 10


def verbs() -> Iterator[str]:
    """Yield every command as a person types it."""
    yield from _commands(typer.main.get_command(main.app), "gpubid")


def _commands(command: object, typed: str) -> Iterator[str]:
    inner = getattr(command, "commands", None)
    if not inner:
        yield typed
        return
    for name, one in inner.items():
        yield from _commands(one, f"{typed} {name}")


def blocks(text: str) -> list[str]:
    """Return the text between fences."""
    return re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def anchors(text: str) -> set[str]:
    """Return the anchors of a document's headings, as the usual renderers make them."""
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def metrics() -> Iterator[tuple[str, str, str]]:
    """Yield name, labels and meaning of every metric, in the program's order."""
    made = Metrics(CollectorRegistry(), (), ())
    parts = (made, made.named, made.lead, made.run_times)
    for value in (each for part in parts for each in vars(part).values()):
        if isinstance(value, Counter | Gauge | Histogram):
            name = value._name + ("_total" if isinstance(value, Counter) else "")
            yield name, ", ".join(value._labelnames) or "-", value._documentation


def test_every_verb_is_in_the_handbook() -> None:
    reference = (HANDBOOK / "verbs.md").read_text()
    assert [verb for verb in verbs() if f"`{verb}" not in reference] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_every_command_that_is_named_exists(document: Path) -> None:
    known = set(verbs())
    groups = {verb.rsplit(" ", 1)[0] for verb in known} - {"gpubid"}
    text = document.read_text()
    inline = re.findall(r"`gpubid ([a-z][a-z -]*[a-z])", text)
    for words in (*inline, *re.findall(r"^(?:\$ )?gpubid ([a-z-]+)", "\n".join(blocks(text)), re.MULTILINE)):
        typed = f"gpubid {words}"
        assert any(typed == one or typed.startswith(f"{one} ") for one in known | groups), typed


def test_every_target_that_is_named_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    texts = [document.read_text() for document in DOCUMENTS]
    inline = {target for text in texts for target in re.findall(r"`make ([a-z]+)`", text)}
    typed = {
        target for text in texts for target in re.findall(r"^make ([a-z]+)", "\n".join(blocks(text)), re.MULTILINE)
    }
    named = inline | typed
    assert named <= targets
    assert "demo" in named


def test_metrics_are_documented_one_for_one() -> None:
    rows = re.findall(r"^\| `(\S+)` \| (.+?) \| (.+) \|$", (ROOT / "deploy/metrics.md").read_text(), re.MULTILINE)
    assert rows == list(metrics())


def test_the_table_of_cards_is_current() -> None:
    cell = r"(done|exempt: [^|]+)"
    cells = rf" \| {cell}" * len(EXEMPT)
    rows = re.findall(rf"^\| (MC-\d+) \| ([^|]+){cells} \|$", _page("markets"), re.MULTILINE)
    assert rows == [(card.card_id, card.title, *(_told(market, card) for market in EXEMPT)) for card in CARDS]


def _page(name: str) -> str:
    return (HANDBOOK / f"{name}.md").read_text()


def _told(market: str, card: Card) -> str:
    why = EXEMPT[market].get(card.card_id)
    return "done" if why is None else f"exempt: {why}"


def test_the_table_of_rules_names_a_file_for_each_that_is_there() -> None:
    rows = re.findall(r"^\| (\d+) \| .+ \| (.+) \|$", _page("money-rules"), re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(RULES)
    for number, held in rows:
        files = re.findall(r"`(tests/[^`]+)`", held)
        assert files or held.startswith("not yet"), number
        assert all((ROOT / file).is_file() for file in files), files
    told = {file for _, held in rows for file in re.findall(r"`(tests/rules/[^`]+)`", held)}
    assert told == {str(path.relative_to(ROOT)) for path in (ROOT / "tests/rules").glob("test_rule_*.py")}


def test_links_lead_somewhere() -> None:
    lost = [f"{document.name}: {link}" for document in DOCUMENTS for link in _lost(document)]
    assert lost == []


def _lost(document: Path) -> Iterator[str]:
    text = document.read_text()
    for target, anchor in LINK.findall(text):
        path = (document.parent / target).resolve() if target else document
        if not path.exists() or (anchor and anchor not in anchors(path.read_text())):
            yield f"{target}#{anchor}"


def test_paths_that_are_named_exist() -> None:
    path = re.compile(r"`((?:agent|tests|strategies|migrations|deploy)/[\w./]+)`")
    named = [(document.name, each) for document in DOCUMENTS for each in path.findall(document.read_text())]
    assert [(document, each) for document, each in named if not (ROOT / each).exists()] == []


def test_the_map_is_read_in_ten_minutes() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    assert len(text.split()) <= WORDS_OF_THE_MAP, "move what is reference to a page of the handbook"
    rules = text.split("\n## The money rules\n")[1].split("\n## ")[0]
    assert [int(number) for number in re.findall(r"^(\d+)\. ", rules, re.MULTILINE)] == list(RULES)
    starts = text.split("\n## Where to start\n")[1]
    assert len(re.findall(r"^\| [^|]+ \| [^|]*`[^|]+ \| [^|]+ \|$", starts, re.MULTILINE)) == COMMON_CHANGES


def test_every_package_has_its_room_on_the_page_of_rooms_and_its_name_on_the_map() -> None:
    rooms, on_map = _page("rooms"), (ROOT / "ARCHITECTURE.md").read_text()
    packages = sorted(
        path.parent.relative_to(ROOT).as_posix()
        for folder in ("agent", "strategies")
        for path in (ROOT / folder).rglob("__init__.py")
        if path.parent != ROOT / "agent"
    )
    listed = {name for line in rooms.splitlines() for name in re.findall(r"`([a-z0-9_.]+)`", line.split(" | ")[0])}
    dotted = {package.replace("/", ".") for package in packages}
    assert dotted <= listed
    assert {name for name in listed if name.startswith("agent.") and not name.endswith(".toml")} <= dotted
    named = {name for text in re.findall(r"`([\w/]+)/`", on_map) for name in (text, text.split("/")[-1])}
    # Packages of the third level and below are on the page of rooms alone.
    near = [package for package in packages if package.count("/") <= 2]
    assert [package for package in near if package.split("/")[-1] not in named] == []
