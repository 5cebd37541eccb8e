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
    rooms = f"agent/markets/{market}", f"agent/markets/{market}/*", f"agent/simulator/{market}"
    allowed = *(f"{room}/*.py" for room in rooms), f"agent/simulator/{market}/http/*.py"
    assert list(matches(VENDOR_WORDS[market], *allowed)) == []


def test_no_vendor_is_named_where_decisions_are_made() -> None:
    """Decisions read the rules of a market, so that the next market needs no change there."""
    records = registered_markets.installed().values()
    names = "|".join(re.escape(word) for record in records for word in {record.name, record.title.partition(".")[0]})
    named = re.compile(rf"\b({names})", re.IGNORECASE)
    deciding = [path for path in PROGRAM if name(path).startswith(("agent/decide/", "strategies/"))]
    assert len(deciding) > MANY
    assert [name(path) for path in deciding if named.search(path.read_text())] == []


VENDORS = "|".join(registered_markets.shipped())
OF_VENDORS = re.compile(rf"agent/(markets|simulator)/({VENDORS})/")
NAMING = {
    "agent/cli/lab/import_traces.py": "an example of a market",
    "agent/config/document.py": "an example of a name",
    "agent/config/value_kinds.py": "an example of an address and of a name",
    "agent/config/workload_tables/workload_table.py": "an example of a market",
    "agent/simulator/recorded_figures.py": "where figures were recorded",
    "agent/telemetry/logging.py": "the name of a library",
}
"""Files outside the vendors' folders whose code names one, and why; the bench of bids plays the auction of one."""


def test_code_that_markets_share_names_no_vendor() -> None:
    """A new market touches its own folders: whatever else differs between markets is in its records."""
    named = re.compile(VENDORS, re.IGNORECASE)
    shared = [path for path in PROGRAM if not OF_VENDORS.match(name(path))]
    found = {name(path) for path in shared if any(map(named.search, _words(ast.parse(path.read_text()))))}
    assert {file for file in found if not file.startswith("agent/lab/bids/")} == NAMING.keys()


def _words(tree: ast.AST) -> Iterator[str]:
    """Yield names and texts of a module, without what only describes."""
    nodes = list(ast.walk(tree))
    described = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in described:
            yield node.value
        elif isinstance(node, ast.Name | ast.Attribute | ast.alias | ast.arg | ast.FunctionDef | ast.ClassDef):
            yield next(str(value) for key, value in ast.iter_fields(node) if key in {"id", "attr", "name", "arg"})
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def test_only_the_clock_reads_the_time() -> None:
    assert list(matches(r"datetime\.(now|utcnow|today)\(|\btime\.(time|monotonic|perf_counter)\(", *CLOCKS)) == []


def test_nobody_sleeps_on_the_thread() -> None:
    assert list(matches(r"\btime\.sleep\(")) == []


def test_tasks_start_where_they_are_waited_for() -> None:
    waiting = (
        "agent/app.py",
        "agent/act/executor.py",
        "agent/markets/dstack/cloud_clients.py",
        "agent/notify/dispatcher.py",
    )
    assert list(matches(r"asyncio\.(create_task|ensure_future)\(", *waiting)) == []


def test_a_module_opens_with_a_sentence() -> None:
    texts = {name(path): path.read_text() for path in PROGRAM}
    assert [file for file, text in texts.items() if text and not ast.get_docstring(ast.parse(text))] == []


def test_folders_of_one_machine_and_registries_stay_out() -> None:
    # A folder of one machine, a checkout in a temporary folder, and files beside the project. A page may link to
    # the page beside it.
    folders = r"(?<![\w.])/(?:home|Users|work\w*|tmp/\w+/\w+)/"
    folders += r"|(?<![\w/])\.\./(?!deploy/schema/|[\w-]+\.md(?:#[\w-]+)?\))\w+(?![\w ])"
    words = re.compile(folders + r"|pypi\.org|pythonhosted|registry\.npmjs")
    tracked = [*FILES, *ROOT.glob("*.toml"), *ROOT.glob("*.md"), ROOT / "Makefile", ROOT / "requirements.lock"]
    tracked += [*ROOT.glob("strategies/*.toml"), *ROOT.glob("tests/**/*.sql"), *ROOT.glob("deploy/**/*.md")]
    here = Path(__file__).resolve()
    assert [name(path) for path in tracked if path.resolve() != here and words.search(path.read_text())] == []
