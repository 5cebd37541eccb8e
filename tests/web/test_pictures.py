"""`make pictures`: the pictures of the page have their sizes, and without Chromium none is changed."""

from pathlib import Path

import pytest
from PIL import Image
from playwright.async_api import async_playwright

from tests.lab.test_cross_validate import write
from tests.web import pictures
from tests.web.browser import CHROMIUM

GROUNDS = {"light": (255, 255, 255), "dark": (13, 17, 23)}


def test_without_chromium_it_says_so_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pictures, "CHROMIUM", None)
    assert pictures.main(["--to", str(tmp_path)]) == 0
    assert capsys.readouterr().err == pictures.MISSING
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(CHROMIUM is None, reason="Debian's chromium is not here")
@pytest.mark.nightly
def test_it_takes_the_page_light_dark_and_on_a_phone(tmp_path: Path) -> None:
    assert pictures.main(["--to", str(tmp_path), "--hours", "0.2", "--page-only"]) == 0
    assert {file.name for file in tmp_path.iterdir()} == set(pictures.SCREENS)
    for name, (scheme, width) in pictures.SCREENS.items():
        with Image.open(tmp_path / name) as picture:
            assert picture.size == (width, pictures.HEIGHT)
            assert picture.getpixel((2, pictures.HEIGHT - 2)) == GROUNDS[scheme], name


@pytest.mark.nightly
@pytest.mark.long(12)
@pytest.mark.skipif(CHROMIUM is None, reason="Debian's chromium is not here")
async def test_it_takes_the_report_of_a_record(tmp_path: Path) -> None:
    # The hazards of a window are fitted on the other days, so there are many.
    write(tmp_path / "aws-2022", "zone-1a", 3.0, seed=1, days=15)
    async with async_playwright() as tools:
        browser = await tools.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        await pictures.record_report(browser, tmp_path, tmp_path, tmp_path / "aws-2022")
        await browser.close()
    with Image.open(tmp_path / "lab-report.png") as picture:
        assert picture.width == 1280
        assert picture.height > 2 * pictures.HEIGHT, "the table, the costs, one run and how long capacity lasts"
