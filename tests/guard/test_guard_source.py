"""The guard runs on any Python from 3.8 on, without a package; its archive is the same bytes from the same source."""

import ast
import hashlib
import os
import shutil
import sys
from pathlib import Path

import pytest

from agent.config import guard_archive
from tests.support import programs
from tests.support.guarded import Instance

FOLDER = Path(guard_archive.__file__).parents[1] / "guard"
FILES = sorted(FOLDER.rglob("*.py"))
MOST_BYTES = 100_000
NEWER_THAN_3_8 = {"graphlib", "tomllib", "zoneinfo"}


def oldest_python() -> str | None:
    """Return a Python 3.8 of this machine; CI has none."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [str(each / "bin/python") for each in sorted(pyenv.glob("3.8.*"))]
    return found[0] if found else shutil.which("python3.8")


def test_every_file_has_the_grammar_of_python_3_8() -> None:
    assert len(FILES) > 20
    for file in FILES:
        ast.parse(file.read_text(), str(file), feature_version=(3, 8))
    with pytest.raises(SyntaxError):
        ast.parse("with (open('a') as b, open('c') as d): pass\nmatch b:\n    case 1: pass", feature_version=(3, 8))


def imported(text: str) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return names


def test_it_imports_the_standard_library_and_itself_alone() -> None:
    known = sys.stdlib_module_names - NEWER_THAN_3_8
    names = {name for file in FILES for name in imported(file.read_text())}
    assert {
        name for name in names if name.partition(".")[0] not in known and not f"{name}.".startswith("agent.guard.")
    } == set()
    assert imported("import numpy.linalg\nfrom agent.domain import money") == {"numpy.linalg", "agent.domain"}


def test_two_checkouts_give_the_same_archive_under_100_kb(tmp_path: Path) -> None:
    other = tmp_path / "guard"
    shutil.copytree(FOLDER, other, ignore=shutil.ignore_patterns("__pycache__"))
    for number, file in enumerate(sorted(other.rglob("*.py"))):
        os.utime(file, (number * 1e6, number * 1e6))
        file.chmod(0o600)
    archive = guard_archive.packed()
    assert guard_archive.packed(other) == archive
    assert len(archive) <= MOST_BYTES
    (other / "guard_clock.py").write_text("")
    assert guard_archive.digest(guard_archive.packed(other)) != guard_archive.digest(archive)


async def test_the_verb_writes_the_archive_with_its_size_and_digest(tmp_path: Path) -> None:
    done = await programs.gpubid(tmp_path, "guard", "build", "--to", "it.pyz")
    archive = (tmp_path / "it.pyz").read_bytes()
    assert archive == guard_archive.packed()
    assert done.out == f"it.pyz: {len(archive)} bytes, SHA-256 {hashlib.sha256(archive).hexdigest()}\n"
    refused = await programs.gpubid(tmp_path, "guard", "build", "--to", "nowhere/it.pyz")
    sentence = (
        "cannot be written (No such file or directory); name one in a folder that exists and that you may write to"
    )
    assert (refused.code, refused.err) == (2, f"gpubid: nowhere/it.pyz {sentence}\n")


@pytest.mark.skipif(oldest_python() is None, reason="no Python 3.8 is here; only its grammar is checked")
def test_it_runs_on_python_3_8(tmp_path: Path) -> None:
    instance = Instance(tmp_path, str(oldest_python()))
    with instance.started("sh", "-c", "exit 3") as guard:
        assert guard.ended() == 3
        assert guard.phase("failed")["lease"] == "L1"
