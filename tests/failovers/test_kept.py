"""What is kept of a run of failovers: by all that a round depends on."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

from tests.failovers import kept

ROOT = Path(__file__).parents[2]
LOADED = "import sys, tests.failovers.__main__; print(*(each for each in sys.modules if each.startswith('tests.')))"


def test_a_round_is_kept_by_every_module_that_it_loads() -> None:
    ran = subprocess.run([sys.executable, "-c", LOADED], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = [each for each in ran.stdout.split() if each.startswith("tests.support.")]
    assert "tests.support.boxes" in loaded
    assert {f"{each.replace('.', '/')}.py" for each in loaded} <= set(kept.PLAYED)
    assert all((ROOT / each).exists() for each in kept.PLAYED)


def test_a_run_that_broke_off_goes_on_with_what_is_kept(tmp_path: Path) -> None:
    place = tmp_path / "new" / "a-cut.json"
    assert kept.rounds(place) == []
    first, second = {"gaps": [1.5], "wrong": []}, {"gaps": [2.5], "wrong": ["late"]}
    kept.keep(place, [first], {"blows": [1]})
    kept.keep(place, [*kept.rounds(place), second], {"blows": [2]})
    assert kept.rounds(place) == [first, second]
    evidence = json.loads(gzip.decompress(place.with_name("a-cut-1.json.gz").read_bytes()))
    assert evidence == {"blows": [2]}
