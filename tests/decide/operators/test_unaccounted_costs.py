"""A billing instance without an account is reported by listing and ledger.

At the third listing, in the fifth minute.
"""

from dataclasses import replace
from datetime import date, timedelta

from agent.decide.operators import bill_drift, operator_holds, unaccounted_costs
from agent.domain.fleet import Fleet
from agent.domain.money import Usd
from agent.domain.record import hold
from agent.domain.record.hold import DISKS, EVERYTHING, OperatorHold, Target, Word
from agent.domain.record.intent import IntentState
from agent.domain.record.lease import Bills, Lease
from tests.support import builders
from tests.support.builders import NOW


def listed(listings: int = 10, *numbers: int, **changes: object) -> Fleet:
    """Give a fleet whose market lists these instances with our label, in its so-many-th listing."""
    rows = tuple(builders.instance(number) for number in numbers)
    labels = {f"{number}": builders.label(number) for number in numbers}
    view = builders.view(listings=listings, instances=rows, labels=labels)
    return builders.fleet(markets={"vast": view}, **changes)


def look(before: unaccounted_costs.UnaccountedCosts, fleet: Fleet) -> unaccounted_costs.UnaccountedCosts:
    return unaccounted_costs.findings(before, fleet.fleet_id, tuple(fleet.markets.values()), fleet, fleet.now)


def after(listings: int, **changes: object) -> unaccounted_costs.UnaccountedCosts:
    """Return the findings after so many listings of instance 1."""
    seen = unaccounted_costs.UnaccountedCosts()
    for number in range(listings):
        seen = look(seen, listed(10 + number, 1, **changes))
    return seen


def codes(seen: unaccounted_costs.UnaccountedCosts) -> list[str]:
    return [notice.code for notice in unaccounted_costs.notices(seen, NOW)]


def test_an_instance_of_ours_that_nothing_accounts_for_is_told_at_the_third_listing() -> None:
    assert [codes(after(listings)) for listings in (1, 2, 3, 4)] == [[], [], ["unaccounted"], ["unaccounted"]]
    (notice,) = unaccounted_costs.notices(after(3), NOW)
    assert notice.about == "vast"
    assert notice.sentence.startswith("instance 1 carry our label, bill $0.2240/h and are in no lease")
    assert (after(3).count("vast"), after(3).listings("vast")) == (1, 3)


def test_a_lease_a_recorded_orphan_and_an_open_intent_account_for_it() -> None:
    for changes in (
        {"leases": (builders.lease(1),)},
        {"leases": (builders.lease(1, is_held=True),)},
        {"intents": (builders.intent(1),)},
        {"intents": (builders.intent(1, state=IntentState.SENT),)},
    ):
        assert after(5, **changes).unaccounted == ()


def test_what_is_another_instances_or_another_markets_accounts_for_nothing() -> None:
    for changes in (
        {"leases": (builders.lease(2),)},
        {"leases": (builders.lease(1, market="runpod"),)},
        {"intents": (builders.intent(2),)},
        {"intents": (builders.intent(1, state=IntentState.VOID),)},
    ):
        assert codes(after(3, **changes)) == ["unaccounted"]


def test_what_is_not_ours_is_never_told() -> None:
    foreign = builders.view(instances=(builders.instance(1),), labels={"1": builders.label(1, fleet_id="0" * 12)})
    bare = builders.view(instances=(builders.instance(1),))
    for view in (foreign, bare):
        assert look(unaccounted_costs.UnaccountedCosts(), builders.fleet(markets={"vast": view})).unaccounted == ()


def test_a_listing_that_was_not_read_counts_for_nothing_and_a_restart_counts_anew() -> None:
    seen = after(2)
    for _ in range(5):
        seen = look(seen, listed(11, 1))
    assert codes(seen) == []
    assert codes(look(seen, listed(12, 1))) == ["unaccounted"]
    assert codes(look(unaccounted_costs.UnaccountedCosts(), listed(1, 1))) == []


def test_what_is_gone_for_a_listing_counts_anew() -> None:
    seen = look(after(3), listed(13))
    assert (seen.unaccounted, seen.listings("vast")) == ((), 0)
    assert codes(look(seen, listed(14, 1))) == []


def killed(minutes: float, *, keep_disks: bool = False, target: Target = EVERYTHING) -> tuple[OperatorHold, ...]:
    """Give the holds of a kill of so many minutes ago."""
    given = OperatorHold(Word.KILL, target, builders.ago(minutes=minutes), "a kill")
    return (given, replace(given, target=DISKS)) if keep_disks else (given,)


def under(holds: tuple[OperatorHold, ...], *leases: Lease) -> Fleet:
    return builders.fleet(leases=leases, holds=holds)


def test_what_bills_is_told_from_the_fifth_minute_of_a_kill_on() -> None:
    for minutes, told in ((4.9, []), (5, ["bills_after_kill"]), (90, ["bills_after_kill"])):
        seen = after(1, leases=(builders.lease(1),), holds=killed(minutes))
        assert (codes(seen), len(seen.remaining)) == (told, 1)
    (notice,) = unaccounted_costs.notices(after(1, leases=(builders.lease(1),), holds=killed(7)), NOW)
    assert notice.sentence.startswith("vast-1 still bill(s) $0.2240/h, 7 min after the kill")


def test_without_a_kill_nothing_remains() -> None:
    assert after(1, leases=(builders.lease(1),)).remaining == ()
    assert after(1, leases=(builders.lease(1),)).killed_at is None


def test_a_disk_that_was_to_be_kept_is_not_told_and_its_gpu_is() -> None:
    paused = builders.lease(2, bills=Bills.DISK)
    running = builders.lease(3)
    for lease, keep_disks, told in ((paused, True, False), (paused, False, True), (running, True, True)):
        left = unaccounted_costs.remaining(under(killed(6, keep_disks=keep_disks), lease), NOW)
        assert bool(list(left)) is told


def test_the_listing_outranks_what_the_ledger_thinks_bills() -> None:
    rows = {("vast", "1"): builders.instance(1)}
    lease = builders.lease(1, bills=Bills.NOTHING)
    assert list(unaccounted_costs.remaining(under(killed(6), lease), NOW)) == []
    assert len(list(unaccounted_costs.remaining(under(killed(6), lease), NOW, rows))) == 1


def test_a_rent_in_doubt_and_an_instance_without_a_lease_may_bill_under_a_kill() -> None:
    doubted = after(1, intents=(builders.intent(1),), holds=killed(6))
    assert [each.name for each in doubted.remaining] == ["the rent 0000000000000001 in doubt"]
    assert [each.name for each in after(1, holds=killed(6)).remaining] == ["instance 1"]
    of_market = killed(6, target=hold.of_market("vast"))
    assert [each.name for each in after(1, holds=of_market).remaining] == ["instance 1"]


def test_a_kill_of_one_target_counts_what_it_names_alone() -> None:
    leases = (builders.lease(1), builders.lease(2, slot=builders.slot("other")))
    left = list(unaccounted_costs.remaining(under(killed(6, target=hold.of_workload("train")), *leases), NOW))
    assert [each.name for each in left] == ["vast-1"]


def test_the_same_kill_given_again_keeps_its_time() -> None:
    first = killed(6)

    def again(before: tuple[OperatorHold, ...], *, keeps_disks: bool) -> set[object]:
        return {each.since for each in operator_holds.killed(before, NOW, "me", keeps_disks=keeps_disks)}

    assert again(first, keeps_disks=False) == {first[0].since} == {builders.ago(minutes=6)}
    assert again(first, keeps_disks=True) == {NOW}
    assert again((), keeps_disks=False) == {NOW}


def test_the_last_compared_day_of_each_market_is_told_when_it_differs() -> None:
    day, before = date(2026, 11, 19), date(2026, 11, 18)
    lines = [
        ("vast", before, Usd(9_000_000), Usd(1)),
        ("vast", day, Usd(1_000_000), Usd(1_100_000)),
        ("vast", day, Usd(1_000_000), Usd(1_000_000)),
        ("vast", day + timedelta(days=1), Usd(1_000_000), None),
        ("runpod", day, Usd(1_000_000), Usd(1_010_000)),
    ]
    found = bill_drift.last(lines)
    assert [(each.market, each.day, each.amount) for each in found] == [
        ("runpod", day, Usd(10_000)),
        ("vast", day, Usd(100_000)),
    ]
    (notice,) = bill_drift.notices(found)
    assert (notice.about, notice.code) == ("vast", "bill_drift")
    assert list(bill_drift.notices([replace(found[1], charged=Usd(2_000_000))])) == []
