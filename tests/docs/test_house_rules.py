"""House rules that can be checked by reading the source."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.markets import registered_markets

ROOT = Path(__file__).parents[2]
OURS = ("agent", "strategies", "migrations")
FILES = sorted(path for folder in (*OURS, "tests") for path in (ROOT / folder).rglob("*.py"))
PROGRAM = [path for path in FILES if path.relative_to(ROOT).parts[0] in OURS]
# The simulator and the guard share no code with the agent.
CLOCKS = ("agent/clock.py", "agent/simulator/simulated_clock.py", "agent/guard/guard_clock.py")
MANY = 100
"""There are more modules that decide, so an empty search is a mistake of the search."""
VENDOR_WORDS = {
    "vast": r"dph_(total|base)|min_bid|(cur|next|actual|intended)_(state|status)|status_msg|gpu_ram|inet_(down|up)_cost"
    r"|reliability2|storage_(total_)?cost|ask_contract_id|image_uuid",
    "runpod": r"podId|desiredStatus|lastStatusChange|dataCenterId|clientBalance|bidPerGpu|minimumBidPrice|podRent",
}


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def matches(pattern: str | re.Pattern[str], *allowed: str) -> Iterator[str]:
    """Yield the places in the program, outside the allowed files, that match."""
    for path in PROGRAM:
        if any(path.match(glob) for glob in allowed):
            continue
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            if re.search(pattern, line):
                yield f"{name(path)}:{number}: {line.strip()}"


@pytest.mark.parametrize("market", VENDOR_WORDS)
def test_vendor_words_stay_with_the_adapter_and_the_simulated_surface(market: str) -> None:
    allowed = f"agent/markets/{market}/*.py", f"agent/simulator/{market}/*.py", f"agent/simulator/{market}/http/*.py"
    # A saved answer of a vendor is read where it is imported.
    imported = f"agent/lab/importers/{market}.py"
    # Where a call of either market is read, the columns that may be lied about are named.
    called = "agent/simulator/api_calls.py"
    assert list(matches(VENDOR_WORDS[market], *allowed, imported, called)) == []


def test_no_vendor_is_named_where_decisions_are_made() -> None:
    """Decisions read the rules of a market, so that the next market needs no change there."""
    records = registered_markets.installed().values()
    names = "|".join(re.escape(word) for record in records for word in {record.name, record.title.partition(".")[0]})
    named = re.compile(rf"\b({names})", re.IGNORECASE)
    deciding = [path for path in PROGRAM if name(path).startswith(("agent/decide/", "strategies/"))]
    assert len(deciding) > MANY
    assert [name(path) for path in deciding if named.search(path.read_text())] == []


def test_only_the_clock_reads_the_time() -> None:
    assert list(matches(r"datetime\.(now|utcnow|today)\(|\btime\.(time|monotonic|perf_counter)\(", *CLOCKS)) == []


def test_nobody_sleeps_on_the_thread() -> None:
    assert list(matches(r"\btime\.sleep\(")) == []


def test_tasks_start_where_they_are_waited_for() -> None:
    assert list(matches(r"asyncio\.(create_task|ensure_future)\(", "agent/app.py", "agent/act/executor.py")) == []


def test_a_module_opens_with_a_sentence() -> None:
    texts = {name(path): path.read_text() for path in PROGRAM}
    assert [file for file, text in texts.items() if text and not ast.get_docstring(ast.parse(text))] == []


def test_folders_of_one_machine_and_registries_stay_out() -> None:
    # A folder of one machine, a checkout in a temporary folder, and files beside the project. A page may link to
    # the page beside it.
    folders = r"(?<![\w.])/(?:home|Users|work\w*|tmp/\w+/\w+)/"
    folders += r"|(?<![\w/])\.\./(?!deploy/schema/|[\w-]+\.md\))\w+(?![\w ])"
    words = re.compile(folders + r"|pypi\.org|pythonhosted|registry\.npmjs")
    tracked = [*FILES, *ROOT.glob("*.toml"), *ROOT.glob("*.md"), ROOT / "Makefile", ROOT / "requirements.lock"]
    tracked += [*ROOT.glob("strategies/*.toml"), *ROOT.glob("tests/**/*.sql"), *ROOT.glob("deploy/**/*.md")]
    here = Path(__file__).resolve()
    assert [name(path) for path in tracked if path.resolve() != here and words.search(path.read_text())] == []
