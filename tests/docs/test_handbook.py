"""The handbook is whole: every page is in its table of contents, and MkDocs builds it without a warning."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HANDBOOK = ROOT / "deploy/handbook"
PAGES = sorted((HANDBOOK / "pages").glob("*.md"))


def test_every_page_is_in_the_table_of_contents() -> None:
    contents = (HANDBOOK / "mkdocs.yml").read_text().split("\nnav:\n")[1]
    assert {page.name for page in PAGES} <= set(re.findall(r": (\S+\.md)$", contents, re.MULTILINE))


def test_the_first_page_names_every_other() -> None:
    first = (HANDBOOK / "pages/index.md").read_text()
    assert [page.name for page in PAGES if page.name != "index.md" and f"({page.name})" not in first] == []


@pytest.mark.skipif(find_spec("mkdocs") is None, reason="mkdocs is not here: `make setup` installs it")
def test_the_handbook_is_built_without_a_warning(tmp_path: Path) -> None:
    config = str(HANDBOOK / "mkdocs.yml")
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--config-file",
        config,
        "--site-dir",
        str(tmp_path),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loaded = [page.name for page in tmp_path.glob("*.html") if re.search(r'<script src="https?:', page.read_text())]
    assert loaded == [], "these pages load a script from elsewhere"
    assert {f"{page.stem}.html" for page in PAGES} <= {page.name for page in tmp_path.glob("*.html")}
