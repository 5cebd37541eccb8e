"""`gpubid deploy show` prints the shipped files, and the packages ship them."""

import sys
from pathlib import Path

import pytest

from agent.cli.setup import deploy
from tests.support.programs import gpubid

DEPLOY = Path(__file__).parents[2] / "deploy"


@pytest.mark.parametrize("kind", deploy.KINDS)
async def test_what_is_shipped_is_shown(kind: str, tmp_path: Path) -> None:
    shipped = deploy.files(DEPLOY, deploy.KINDS[kind])
    assert shipped, "the kind names no file"
    for file in shipped:
        shown = await gpubid(tmp_path, "deploy", "show", kind, file.name)
        assert shown.code == 0, shown
        assert shown.out == file.read_text().replace("/usr/bin/gpubid", f"{sys.prefix}/bin/gpubid")
    if len(shipped) > 1:
        which = await gpubid(tmp_path, "deploy", "show", kind)
        assert which.code == 2
        assert all(file.name in which.err for file in shipped)


async def test_a_folder_is_filled_once(tmp_path: Path) -> None:
    target = tmp_path / "units"
    assert (await gpubid(tmp_path, "deploy", "show", "backup", "--to", target)).code == 0
    assert {file.name for file in target.iterdir()} == {"gpubid-backup.service", "gpubid-backup.timer"}
    (target / "gpubid-backup.timer").write_text("mine")
    again = await gpubid(tmp_path, "deploy", "show", "backup", "--to", target)
    assert (again.code, "nothing was written" in again.err) == (2, True)
    assert (target / "gpubid-backup.timer").read_text() == "mine"


async def test_what_is_not_shipped_is_bad_input(tmp_path: Path) -> None:
    for words in (("units",), ("unit", "other.service")):
        said = await gpubid(tmp_path, "deploy", "show", *words)
        assert (said.code, said.out) == (2, ""), words
