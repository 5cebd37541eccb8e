"""`gpubid run` says each decision in a line that reads, or in JSON with the same figures."""

import json
import re
from pathlib import Path

from agent.telemetry import terminal_lines
from tests.support import programs
from tests.support.programs import LIVE, gpubid, until

LINE = re.compile(r"^\d\d:\d\d:\d\d train/0 rent vast/\d+ \$\d+\.\d{4}/h: \S.+$")


async def test_a_decision_is_a_line_with_slot_host_price_and_why(tmp_path: Path) -> None:
    async with programs.market(tmp_path) as market:
        (tmp_path / "agent.toml").write_text(LIVE.format(url=market.url))
        async with programs.daemon(tmp_path, "--log", "text") as daemon:
            await until(lambda: [line for line in daemon.err if LINE.match(line)], f"a rent in a line: {daemon.err}")
            assert not [line for line in daemon.err if line.startswith("{") or "\x1b" in line], "a pipe has no colours"


async def test_without_a_terminal_it_is_json_with_the_same_figures(tmp_path: Path) -> None:
    async with programs.running(tmp_path) as (_, daemon):
        (made, *_) = await daemon.until_logged("decision.made")
        (row, *_) = (await gpubid(tmp_path, "fleet", "--json")).json["leases"]
        assert (made["slot"], made["market"], made["host"]) == ("train/0", "vast", row["host"])
        assert made["dollars_per_hour"] > 0
        assert made["why"]


async def test_another_form_is_bad_input(tmp_path: Path) -> None:
    ran = await gpubid(tmp_path, "run", "--log", "xml")
    assert (ran.code, "--log: 'xml' is none of auto, json, text" in ran.err) == (2, True)


def test_a_strangers_text_does_not_paint_the_terminal() -> None:
    event = {"event": "decision.made", "at": "2026-11-22T10:00:00+00:00", "slot": "train/0", "kind": "release"}
    line = terminal_lines.decision(
        event | {"market": "vast", "host": "7\x1b[2J", "why": "gone", "dollars_per_hour": 0.1}
    )
    assert line == "10:00:00 train/0 release vast/7?[2J $0.1000/h: gone"
    held = terminal_lines.decision(json.loads(json.dumps(event | {"kind": "hold", "why": "no offer matches"})))
    assert held == "10:00:00 train/0 hold: no offer matches"
