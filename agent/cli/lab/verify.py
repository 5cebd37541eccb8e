"""`gpubid lab verify`: compute recorded plans again and compare them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.lab import running
from agent.cli.shared import exits, session

if TYPE_CHECKING:
    from agent.lab.engine.recorded_frames import Difference


def verify(
    recordings: Annotated[
        Path, typer.Argument(help="A file of frames, or a folder of them, such as gpubid.sqlite.recordings.")
    ],
    as_json: session.JsonOption = False,
) -> None:
    """Compute every plan of a recording again from its inputs. Exit 1 if one differs."""
    from itertools import chain

    from agent import strategy_files
    from agent.lab.engine import recorded_frames

    with running.honest():
        try:
            files = recorded_frames.files(recordings)
            frames = chain.from_iterable(recorded_frames.frames(file) for file in files)
            count, difference = recorded_frames.verify(frames, recorded_frames.by_code(strategy_files.installed()))
        except recorded_frames.RecordingError as error:
            exits.stop(exits.BAD_INPUT, [str(error)])
    if as_json:
        shown = [] if difference is None else [{"plan": difference.number, "at": difference.at.isoformat()}]
        session.print_json({"files": len(files), "plans": count, "ok": difference is None, "differences": shown})
    elif difference is None:
        session.say(f"ok: {count} plans of {len(files)} file(s) are the same, byte for byte")
    else:
        _print_difference(difference)
    if difference is not None:
        raise typer.Exit(exits.FAILED)


def _print_difference(difference: "Difference") -> None:
    session.say(f"plan {difference.number}, made at {difference.at.isoformat()}, is different:")
    for name, decisions in (("recorded", difference.recorded), ("now", difference.made)):
        for kind, values in decisions:
            session.say(f"  {name}: {kind.lower()}: {values['reason']['sentence']}")
