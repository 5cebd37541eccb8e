"""Rule 17, for shadows: what decides beside the live strategy has no side effect, whatever it is."""

import dataclasses
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from hypothesis import given
from hypothesis import strategies as st

from agent.decide.pricing import offer_terms
from agent.decide.strategy import Params, Proposal, Tuned, View
from agent.domain.record.intent import IntentKind
from agent.domain.work.decision import Reason
from agent.ledger.tables.schema import METADATA
from agent.simulator import climate_files
from tests.support import engines, loop
from tests.support.losses import seeds
from tests.support.world import PROPERTY_POLL, Rehearsed, in_memory, rehearsed, strategies, work

OWN = {"shadows", "shadow_decisions"}
"""Tables that a shadow may write."""


class Numbers(Params):
    """None."""


class Wild:
    """Orders everything it can about everything it sees, and now and then breaks."""

    params: ClassVar[type[Params]] = Numbers

    def propose(self, view: View, _: Params) -> Sequence[Proposal]:
        if view.now.minute % 7 == 3:
            raise RuntimeError("broken")
        made = []
        for seen in view.slots:
            if seen.lease is not None:
                kinds = (IntentKind.RELEASE, IntentKind.PAUSE, IntentKind.RESUME)
                kind = kinds[view.now.second % 3]
                made.append(Proposal(seen.slot, kind, Reason("wild", "wild"), lease=seen.lease))
                continue
            best = next(view.ranking(offer_terms.Asks(view.workload.prices, view.workload.disk_gb)), None)
            made.append(Proposal(seen.slot, None if best is None else IntentKind.RENT, Reason("wild", "wild"), best))
        return made


def _told(world: Rehearsed) -> dict[str, Any]:
    """Return every call that the market saw, every order, and every row of the ledger that is not a shadow's own.

    Calls of one instant go over connections of their own and arrive in any order.
    """
    file = world.config.ledger
    queries = {name: "SELECT * FROM " + name for name in {*METADATA.tables} - OWN}  # noqa: S608 - our own
    rows = {name: sorted(map(repr, engines.rows(file, query))) for name, query in queries.items()}
    return {"calls": sorted(world.simulator.api.calls), "orders": list(world.orders), "rows": rows}


async def _lived(seed: int, weather: str, shadow: tuple[str, ...]) -> tuple[dict[str, Any], int]:
    tuned = {**strategies(), "wild": Tuned("wild", Wild(), Numbers(), "w")}
    workloads = (work(shadow=shadow),)
    with tempfile.TemporaryDirectory(prefix="gpubid-rules-", dir=in_memory()) as place:
        async with rehearsed(
            Path(place),
            seed=seed,
            climate=climate_files.named(weather),
            workloads=workloads,
            tuned=tuned,
            poll=PROPERTY_POLL,
        ) as world:
            await world.cycle(minutes=40)
            reader = await world.app.ledger.reader()
            return _told(world), len(await reader.shadow_decisions())


@given(seed=seeds, weather=st.sampled_from(["bidding_war", "host_death", "calm"]))
def test_with_shadows_or_without_the_same_is_asked_ordered_and_written(seed: int, weather: str) -> None:
    """One slot: two that rent in one cycle race for the market's pace, with shadows or without."""

    async def both() -> None:
        bare, none = await _lived(seed, weather, ())
        shadowed, decisions = await _lived(seed, weather, ("ondemand", "patient", "wild"))
        assert none == 0
        assert decisions > 0, "shadows that decide nothing prove nothing"
        for kind, told in bare.items():
            assert told == shadowed[kind], kind

    loop.run_on_one_thread(both())


def test_a_shadow_knows_no_way_to_a_market() -> None:
    """A shadow has no part that could send anything: it is plain values through and through."""
    from agent.decide.paper import shadow

    assert shadow.unpacked(shadow.packed(shadow.Shadow("w", "s", work_now()))) == shadow.Shadow("w", "s", work_now())
    fields = {field.name for field in dataclasses.fields(shadow.Shadow)}
    assert not fields & {"market", "markets", "journal", "executor", "ledger"}


def work_now() -> Any:
    from tests.support.world import START

    return START
