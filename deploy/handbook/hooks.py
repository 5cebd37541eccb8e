"""What MkDocs must know of this repository: documents outside of pages/ are pages too, and links to files are no links.

A page links to its neighbours and to the repository's other documents relative to where it lies, so that the Markdown
can be read where it is. The site has all documents in one folder; a link to a file of the source becomes its text.
"""

import os
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "deploy/handbook/pages"
OUTSIDE = tuple(
    ROOT / name
    for name in (
        "deploy/json-output.md",
        "deploy/metrics.md",
        "deploy/runbook.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
    )
)
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the documents that lie outside of the folder of pages."""
    for path in OUTSIDE:
        files.append(File.generated(config, path.name, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Return the page with its links leading to the pages of the site."""
    source = Path(page.file.abs_src_path or "")
    folder = Path(page.file.src_uri).parent
    return LINK.sub(lambda link: _link_on_the_site(link, source, folder), markdown)


def _link_on_the_site(link: re.Match[str], source: Path, folder: Path) -> str:
    bang, text, target, anchor = link[1], link[2], link[3], link[4] or ""
    path = Path(os.path.normpath(source.parent / target))
    if path in OUTSIDE:
        place = Path(path.name)
    elif path.is_relative_to(PAGES):
        place = path.relative_to(PAGES)
    else:
        return text
    return f"{bang}[{text}]({os.path.relpath(place, folder)}{anchor})"
