"""The page over real HTTP: its content, its refusals, and that nothing on it is believed or run."""

import dataclasses
import html
import json
import re
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from agent.decide.limits import committed_spend
from agent.decide.limits.limits import Limits
from agent.domain.market.price import PriceSample
from agent.domain.market.tenure import Tenure
from agent.domain.record.budget import EVERYTHING, Window
from agent.domain.record.cooldown import Cooldown, CooldownKind
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.domain.record.expiring_record import ExpiringRecord
from agent.domain.record.lease import LeaseState
from agent.domain.record.reported_crossing import ReportedCrossing
from agent.domain.record.shadow_account import ShadowDecision
from agent.domain.record.tally import Counted, Tally
from agent.domain.slot import Slot
from agent.web.page import dashboard
from agent.web.reading import status_json
from tests.support import builders, spending
from tests.support.builders import per_hour, usd
from tests.support.scene import work
from tests.web.page import TOKEN, Served, served

HOSTILE = "<script>document.title='taken'</script><img src=x onerror=alert(1)>"


async def log_in(page: Served) -> str:
    """Log in, and return the proof that forms carry."""
    status, text = await page.post("/login", token=TOKEN)
    assert status == 200
    return str(re.findall(r'name="proof" value="([0-9a-f]{64})"', text)[0])


async def test_the_first_screen_tells_who_runs_where_for_how_much_and_why(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        lease = page.world.lease()
        status, text = await page.get("/")
    assert status == 200
    assert f'href="/lease/{lease.lease_id}"' in text
    assert "1 <small>of 1 slots</small>" in text
    assert f"${lease.billing_rate.dollars:.3f}" in text
    assert "<svg" in text
    assert "lease.running" in text
    assert "<th scope=" in text
    assert "interruptible</span>" in text, "its state has a column of its own"


async def test_a_lease_tells_its_whole_story_and_a_stranger_is_not_found(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        lease = page.world.lease()
        status, text = await page.get(f"/lease/{lease.lease_id}")
        missing, _ = await page.get("/lease/nobody")
    assert (status, missing) == (200, 404)
    assert lease.host_id in text
    assert "lease.opened" in text
    assert "lease.running" in text
    assert '>rent</td><td data-label="Outcome">confirmed</td>' in text
    assert lease.intent_id in text


async def test_what_a_market_wrote_is_shown_and_never_run(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        lease = page.world.lease()
        told = Event(
            at=page.world.clock.now(),
            kind=EventKind.LEASE_INTERRUPTED,
            workload="train",
            slot=0,
            lease_id=lease.lease_id,
            host_id=HOSTILE[:40],
            evidence=HOSTILE,
        )
        async with page.world.app.ledger.transaction() as tx:
            tx.append_event(told)
        shown = [await page.get(path) for path in ("/", "/events", f"/lease/{lease.lease_id}")]
    for status, text in shown:
        assert status == 200
        assert "&lt;script&gt;" in text
        assert "<script>document" not in text
        assert "<img" not in text


async def test_a_shadow_stands_beside_the_live_strategy_and_is_called_paper(tmp_path: Path) -> None:
    async with served(tmp_path, workloads=(work(shadow=("ondemand",)),)) as page:
        await page.world.cycle(minutes=10)
        now = page.world.clock.now()
        hostile = ShadowDecision(now, "ondemand", Slot("train", 0), "hold", "code", HOSTILE)
        async with page.world.app.ledger.transaction() as tx:
            (account,) = await (await page.world.app.ledger.reader()).shadows()
            tx.keep_shadow(account, [hostile])
        status, text = await page.get("/")
    assert status == 200
    assert "Beside the live strategies, on paper" in text
    assert "Nothing was rented for these" in text
    assert re.search(r"<td[^>]*>ondemand</td>.*<td[^>]*>live</td>", text, re.DOTALL)
    assert HOSTILE not in text
    assert "&lt;script&gt;" in text


async def test_what_a_person_must_know_of_the_whole_stands_first(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        calm = (await page.get("/"))[1]
        page.world.app.stop_writing(f"another daemon {HOSTILE}")
        _, text = await page.get("/")
    assert "Alerts" not in calm
    assert text.index("Alerts") < text.index("<h1>Fleet") < text.index("Running")
    assert "<strong>daemon</strong>: another daemon &lt;script&gt;" in text
    assert "(writing_stopped)" in text


async def test_a_lease_that_the_market_does_not_list_is_an_alert_until_it_is_found_or_gone(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        page.world.is_checked = False
        lease, now = page.world.lease(), page.world.clock.now()
        missing = msgspec.structs.replace(lease, state=LeaseState.MISSING, state_since=now - timedelta(minutes=3))
        async with page.world.app.ledger.transaction() as tx:
            tx.update_lease(missing)
        page.feed.changed()
        shown = json.loads((await page.get("/api/v1/fleet"))[1])
        _, text = await page.get("/")
    (alert,) = shown["alerts"]
    assert (alert["about"], alert["code"], shown["is_well"]) == ("train/0", "missing", False)
    assert f"has not listed {lease.lease_id} since {now - timedelta(minutes=3):%Y-%m-%d %H:%M} UTC" in alert["sentence"]
    assert f"counts as spend, {lease.billing_rate}, until" in alert["sentence"]
    assert alert["sentence"] in text[: text.index("<h1>Fleet")]


async def test_of_many_missing_leases_the_first_are_named_and_the_others_counted(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        now = page.world.clock.now()
        known = page.world.app.ledger.recollection(now)
    leases = tuple(builders.lease(number, state=LeaseState.MISSING) for number in range(status_json.MOST_MISSING + 5))
    standing = committed_spend.committed(leases, (), known.total, {}, now)
    _, troubles = status_json.conditions(dataclasses.replace(known, leases=leases), standing, (), Limits(), now, None)
    assert [each.about for each in troubles] == [*(str(each.slot) for each in leases[:-5]), "leases"]
    assert "5 more leases are not listed" in troubles[-1].sentence


async def test_money_is_that_of_the_feed_with_the_runway(tmp_path: Path) -> None:
    caps = Limits(per_hour=per_hour(5), per_day=usd("10"))
    async with served(tmp_path, limits=caps) as page:
        _, text = await page.get("/")
        money = json.loads((await page.get("/api/v1/fleet"))[1])["money"]
    assert f"${money['today_dollars']:.2f} <small>of" in text
    assert f"${money['dollars_per_hour']:.3f} <small>of" in text
    assert f"at this rate {money['runway_ends']} lasts" in text
    assert "<small>no cap</small>" in text


async def test_it_says_without_script_that_no_cycle_has_ended_lately_and_since_when(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        last = page.world.app.seen.fleet.now if page.world.app.seen else None
        page.world.clock.advance(5 * page.world.config.poll.total_seconds())
        _, text = await page.get("/")
    assert last is not None
    assert f'no cycle has ended since <time datetime="{last.isoformat()}">' in text


async def test_a_date_shows_its_year_where_it_is_not_this_year(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        now = page.world.clock.now()
        async with page.world.app.ledger.transaction() as tx:
            for at in (now, now.replace(year=now.year - 1)):
                tx.append_event(Event(at=at, kind=EventKind.LEASE_INTERRUPTED))
        _, text = await page.get("/events")
    shown = {int(found[1]): found[2] for found in re.finditer(r'datetime="(\d{4})[^"]*">([^<]+)<', text)}
    assert shown[now.year - 1].startswith(f"{now.year - 1}-")
    assert not shown[now.year].startswith(f"{now.year}-")


async def test_every_answer_forbids_foreign_script_and_framing(tmp_path: Path) -> None:
    async with served(tmp_path) as page, page.client.get(page.url + "/") as answer:
        policy = answer.headers["Content-Security-Policy"]
        assert answer.headers["Cache-Control"] == "no-store"
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy


@pytest.mark.parametrize("host", ["gpubid.example", "127.0.0.1.example:80", "[::1"])
async def test_a_page_asked_for_by_a_foreign_name_is_refused(tmp_path: Path, host: str) -> None:
    async with served(tmp_path) as page:
        status, text = await page.get("/", Host=host)
        mine, _ = await page.get("/", Host="localhost:1234")
    assert status in {400, 421}
    assert "slots" not in text
    assert mine == 200


async def test_who_did_not_log_in_can_order_nothing(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        status, _ = await page.post("/order", verb="release", target="train/0", proof="0" * 64)
        shown = (await page.get("/"))[1]
        lease = page.world.lease()
    assert status == 403
    assert "/confirm" not in shown
    assert lease.is_open


async def test_an_order_needs_the_proof_of_our_own_page(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        await log_in(page)
        without, _ = await page.post("/order", verb="drain", target="train")
        wrong, _ = await page.post("/order", verb="drain", target="train", proof="f" * 64)
        rests = page.world.app.ledger.recollection(page.world.clock.now()).expiring
    assert (without, wrong) == (403, 403)
    assert not [rest for rest in rests if rest.place[0] == "drain"]


async def test_a_confirmed_order_is_carried_out_and_says_who_gave_it(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        proof = await log_in(page)
        asked = (await page.get("/confirm?verb=drain&target=train"))[1]
        leases = page.world.lease().lease_id
        status, text = await page.post("/order", verb="drain", target="train", proof=proof, leases=leases)
        events = await page.world.events("operator.ordered", "operator.said")
        known = page.world.app.ledger.recollection(page.world.clock.now())
        shown = (await page.get("/"))[1]
    assert "Drain train?" in asked
    assert status == 200, text
    assert [rest for rest in known.expiring if "train" in rest.place[1]]
    assert any("the page" in event.reason for event in events)
    assert "verb=unlock" in shown


async def test_an_order_that_fits_nothing_is_told_with_its_mend(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        proof = await log_in(page)
        status, text = await page.post("/order", verb="release", target="nobody/7", proof=proof)
        odd, _ = await page.post("/order", verb="kill", target="train", proof=proof)
    assert (status, odd) == (422, 400)
    assert "nobody" in text


async def test_the_page_ends_no_stop_of_all_spending(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        await spending.kill(page.world.app)
        proof = await log_in(page)
        status, _ = await page.post("/order", verb="resume", target="fleet:all", proof=proof)
        held = page.world.app.ledger.recollection(page.world.clock.now()).holds
    assert status == 400
    assert [str(each) for each in held] == ["fleet:all"]


async def test_guessing_the_token_is_slowed_for_everybody(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        wrong = [(await page.post("/login", token="guess"))[0] for _ in range(5)]
        resting = await page.post("/login", token=TOKEN)
        page.world.clock.advance(61)
        right = await page.post("/login", token=TOKEN)
    assert wrong == [403] * 5
    assert resting[0] == 403
    assert "wait a minute" in resting[1]
    assert right[0] == 200


async def test_a_session_ends_with_its_hours_and_with_a_log_out(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        proof = await log_in(page)
        await page.post("/logout", proof=proof)
        after = await page.post("/order", verb="drain", target="train", proof=proof)
        proof = await log_in(page)
        page.world.clock.advance(12 * 3600 + 1)
        late = await page.post("/order", verb="drain", target="train", proof=proof)
    assert (after[0], late[0]) == (403, 403)


async def test_without_a_token_nobody_logs_in(tmp_path: Path) -> None:
    async with served(tmp_path, token=None) as page:
        status, text = await page.post("/login", token="")
        shown = (await page.get("/"))[1]
    assert status == 403
    assert "credential in [web]" in text
    assert "/login" not in shown


async def test_a_large_fleet_is_shown_a_screen_at_a_time(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        page.world.app.rules = dataclasses.replace(page.world.app.rules, workloads=(work(slots=120),))
        first, second = (await page.get("/"))[1], (await page.get("/?page=3"))[1]
        odd = await page.get("/?page=" + "9" * 40)
    assert (
        first.count('<th scope="row">train/') == 2 * dashboard.ROWS + 1
    )  # also its last day; the last plan names its one slot
    assert "page 1 of 3" in first
    assert second.count('<th scope="row">train/') == 2 * (120 - 2 * dashboard.ROWS) + 1
    assert odd[0] == 200


async def test_older_events_are_a_link_away(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        async with page.world.app.ledger.transaction() as tx:
            for number in range(150):
                tx.append_event(
                    Event(at=page.world.clock.now(), kind=EventKind("alert.test"), reason=f"number {number}")
                )
        page.world.clock.advance(1)
        status, text = await page.get("/events")
        odd, _ = await page.get("/events?before=yesterday")
    assert (status, odd) == (200, 400)
    assert "older" in text


async def test_a_chart_shows_the_floor_of_the_leases_own_slice_of_its_host(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        lease = page.world.lease()
        now = page.world.clock.now()
        slices = [
            PriceSample(now + later, lease.market, lease.host_id, lease.gpu, gpus, per_hour(ask), per_hour(floor))
            for later, gpus, ask, floor in (
                (timedelta(seconds=1), lease.gpus, 0.777, 0.333),
                (timedelta(seconds=2), lease.gpus * 8, 9.0, 8.0),
            )
        ]
        async with page.world.app.ledger.transaction() as tx:
            tx.observe_prices(slices)
        page.world.clock.advance(60)
        shown = [(await page.get(path))[1] for path in ("/", f"/lease/{lease.lease_id}")]
    for text in shown:
        (label,) = re.findall(r'<svg(?! class="band")[^>]*aria-label="([^"]+)"', text)
        assert re.search(r"floor \S+ to 0\.333 \$/h", label), label
        assert "8.000" not in label


async def test_a_slot_on_demand_has_a_chart_of_what_it_is_rented_at_and_without_a_price_says_so(tmp_path: Path) -> None:
    async with served(tmp_path, workloads=(work(strategy="ondemand"),)) as page:
        lease = page.world.lease()
        assert lease.tenure is Tenure.ON_DEMAND
        page.world.clock.advance(60)
        text = (await page.get("/"))[1]
        async with page.world.app.ledger.transaction() as tx:
            tx.update_lease(msgspec.structs.replace(lease, host_id="elsewhere"))
        without = (await page.get("/"))[1]
    (label,) = re.findall(r'<svg(?! class="band")[^>]*aria-label="([^"]+)"', text)
    assert f"ask {lease.gpu_rate.dollars:.3f}" in label
    assert "no price of this host seen yet" not in text
    assert "no price of this host seen yet" in without


async def test_the_chart_of_an_ended_lease_ends_with_it(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        lease, ended_at = page.world.lease(), page.world.clock.now() + timedelta(minutes=1)
        ends = [
            msgspec.structs.replace(lease, state=state, ended_at=ended_at if state is LeaseState.ENDED else None)
            for state in (LeaseState.RELEASING, LeaseState.ENDED)
        ]
        lost = Event(at=ended_at, kind=EventKind.LEASE_INTERRUPTED, lease_id=lease.lease_id, workload="train", slot=0)
        async with page.world.app.ledger.transaction() as tx:
            for end in ends:
                tx.update_lease(end)
            tx.append_event(lost)
        for minutes, floor in ((0.5, 0.333), (30, 0.999)):
            at = ended_at - timedelta(minutes=1) + timedelta(minutes=minutes)
            sample = PriceSample(at, lease.market, lease.host_id, lease.gpu, lease.gpus, per_hour(9.0), per_hour(floor))
            async with page.world.app.ledger.transaction() as tx:
                tx.observe_prices([sample])
        page.world.clock.advance(3600)
        _, text = await page.get(f"/lease/{lease.lease_id}")
    (found,) = re.findall(r'data-trail="([^"]+)"', text)
    trail = json.loads(html.unescape(found))
    assert trail["at"] == sorted(trail["at"])
    assert trail["at"][-1] == ended_at.timestamp()
    assert 0.333 in trail["floor"]
    assert 0.999 not in trail["floor"]
    assert "unknown" in trail["loss"]


async def test_the_page_lists_as_a_cooldown_only_what_holds_something_back(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        now = page.world.clock.now()
        later, slot, lease = now + timedelta(hours=1), str(page.world.lease().slot), page.world.lease()
        told = ReportedCrossing(EventKind.BUDGET_WARNED, EVERYTHING, Window.DAY, usd("1"), now, "spent", later)
        marks = (Tally(kind, slot, now, later, "counted", lease.lease_id) for kind in (Counted.RAN, Counted.STARTED))
        hidden: list[ExpiringRecord] = [told, *marks]
        async with page.world.app.ledger.transaction() as tx:
            for rest in (*hidden, Cooldown(CooldownKind.SLOT, slot, later, "has just rented")):
                tx.add_expiring(rest)
        _, text = await page.get("/")
    shown = text[text.index("Cooldowns, locks, holds") :]
    assert "has just rented" in shown
    assert f"no rent for slot {slot}" in shown
    for rest in hidden:
        assert str(rest) not in shown
