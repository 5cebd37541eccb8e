"""All code of the program is reached from its entry points; code that only tests need is in `tests/`."""

from pathlib import Path

import pytest

from tests.docs.reached import unreached

ROOT = Path(__file__).parents[2]
ALSO = {
    "agent.cli.shared.stray_path.Verb.parse_args": "typer calls it to read the words of a command",
    "agent.cli.watch.top_screen.Confirm.action_no": "Textual calls it for its key",
    "agent.cli.watch.top_screen.Confirm.action_yes": "Textual calls it for its key",
    "agent.cli.watch.top_screen.Confirm.compose": "Textual calls it to lay out the screen",
    "agent.cli.watch.top_screen.Top.action_kill": "Textual calls it for its key",
    "agent.cli.watch.top_screen.Top.action_lift": "Textual calls it for its key",
    "agent.cli.watch.top_screen.Top.action_order": "Textual calls it for its keys",
    "agent.cli.watch.top_screen.Top.compose": "Textual calls it to lay out the screen",
    "agent.cli.watch.top_screen.Top.on_data_table_row_highlighted": "Textual calls it when the cursor moves",
    "agent.cli.watch.top_screen.Top.on_mount": "Textual calls it when the screen is there",
    "agent.cli.watch.top_screen.Top.on_resize": "Textual calls it when the terminal changes its size",
    "agent.config.config_schema._Generator.encode_default": "pydantic calls it to write a schema",
    "agent.config.config_schema._Generator.timedelta_schema": "pydantic calls it to write a schema",
    "agent.domain.record.event_kind.EventKind._missing_": "enum calls it for a value that is no member",
    "agent.lab.tuning.study._ByNumber.before_trial": "optuna calls it to draw a trial",
    "agent.lab.tuning.study._ByNumber.infer_relative_search_space": "optuna calls it to draw a trial",
    "agent.lab.tuning.study._ByNumber.sample_independent": "optuna calls it to draw a trial",
    "agent.lab.tuning.study._ByNumber.sample_relative": "optuna calls it to draw a trial",
    "agent.ledger.server.dialect._Columns.get_column_specification": "SQLAlchemy calls it to write SQL",
    "agent.ledger.server.dialect._Columns.visit_create_index": "SQLAlchemy calls it to write SQL",
    "agent.ledger.server.dialect._Statements._on_conflict_target": "SQLAlchemy calls it to write SQL",
    "agent.ledger.server.dialect._Types.visit_INTEGER": "SQLAlchemy calls it to write SQL",
    "agent.ledger.server.dialect._Types.visit_REAL": "SQLAlchemy calls it to write SQL",
    "agent.ledger.server.dialect._Types.visit_TEXT": "SQLAlchemy calls it to write SQL",
    "agent.ledger.tables.types._Converted.process_bind_param": "SQLAlchemy calls it for each value that it writes",
    "agent.ledger.tables.types._Converted.process_result_value": "SQLAlchemy calls it for each value that it reads",
    "agent.simulator.mithril.assumed_figures": "as in recorded_figures",
    "agent.simulator.recorded_figures": "`recorded` and `assumed` keep every figure for `gpubid simulate --about`",
    "agent.simulator.runpod.assumed_figures": "as in recorded_figures",
    "agent.simulator.weather.StillLand": "simulated markets of other packages begin with it",
}
"""Units that are reached in a way that no source shows, or stay although nothing reaches them, and why."""


def test_nothing_in_the_program_is_reached_by_tests_alone() -> None:
    assert [f"{unit}: remove it, or move it to tests/" for unit in unreached(ROOT, ALSO)] == []


def test_the_list_of_what_is_reached_otherwise_only_shrinks() -> None:
    found = {name for unit in unreached(ROOT) for name in (str(unit), unit.module)}
    assert [name for name in ALSO if name not in found] == []


TREE = {
    "pyproject.toml": '[project.scripts]\nrun = "agent.main:main"\n',
    "agent/__init__.py": "",
    "agent/main.py": (
        "from agent import used\n"
        "from agent.named import direct\n"
        "def main():\n    from agent import lazy\n    used.Thing().act(direct, lazy)\n"
        "def orphan():\n    used.only_of_an_orphan()\n"
    ),
    "agent/used.py": (
        "LIMIT = 1\nUNUSED = 2\n"
        "def only_of_an_orphan(): ...\n"
        "class Thing:\n"
        "    def act(self, *given):\n        return self.bound + LIMIT\n"
        "    @property\n    def bound(self): ...\n"
        "    def never(self): ...\n"
        "    @registered\n    def hook(self): ...\n"
        "@command\ndef verb(): ...\n"
    ),
    "agent/named.py": "def direct(): ...\ndef indirect(): ...\nTABLE = {'a': indirect}\n",
    "agent/lazy.py": "def at_import(): ...\nat_import()\n",
    "agent/dead.py": "def alone(): ...\n",
    "tests/test_dead.py": "from agent.dead import alone\nalone()\n",
    "deploy/write.py": "from agent import scripted\nscripted.write()\n",
    "agent/scripted.py": "def write(): ...\n",
}


@pytest.mark.parametrize("also", [(), ("agent.dead", "agent.used.Thing.never", "agent.named.TABLE")])
def test_what_is_unreached_is_seen(tmp_path: Path, also: tuple[str, ...]) -> None:
    for name, text in TREE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    always = {"agent.main.orphan", "agent.used.UNUSED", "agent.used.only_of_an_orphan"}
    more = {"agent.dead.alone", "agent.used.Thing.never", "agent.named.TABLE", "agent.named.indirect"}
    assert {str(unit) for unit in unreached(tmp_path, also)} == (always if also else always | more)
