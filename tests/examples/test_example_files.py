"""The shipped examples of workers are configurations that `gpubid check` takes."""

from pathlib import Path

import pytest

from agent import config

EXAMPLES = sorted((Path(__file__).parents[2] / "deploy" / "examples").glob("*/agent.toml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_an_example_is_a_sound_configuration(path: Path) -> None:
    loaded = config.load(path, strategies=("patient",))
    (work,) = loaded.workloads
    assert work.demand is not None


def test_there_are_examples() -> None:
    assert {path.parent.name for path in EXAMPLES} >= {"celery", "optuna", "wandb"}
