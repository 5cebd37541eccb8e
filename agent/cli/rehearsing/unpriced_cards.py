"""Cards of an estimate that have no price and that nobody knows: most likely a misspelt name."""

from typing import TYPE_CHECKING

from agent.cli.shared import exits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent.baselines.catalogue import Catalogue
    from agent.config.job_table import JobTable
    from agent.observe.estimate_inputs import Found


def refuse(table: "JobTable", models: "Sequence[Found]", baselines: "Catalogue", key: str) -> None:
    """End if a model has no option to show and no known name. With a price given, every name is a card."""
    from agent.config import unknown_names

    if table.price is not None or table.floor is not None:
        return
    priced = {*baselines.names, *(figure.gpu for figure in baselines.figures)}
    sentences = [unknown_names.no_card(one.gpu, priced) for one in models if not one.options]
    hint = "for a card of which you know the price, give --price"
    if mistakes := [f"{key}: {sentence} {hint}" for sentence in sentences if sentence is not None]:
        exits.stop(exits.BAD_INPUT, mistakes)
