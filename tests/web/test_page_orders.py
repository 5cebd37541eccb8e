"""Kill and release from the page: what ends is listed with dollars an hour, and only the typed name ends it."""

import re
from pathlib import Path

import msgspec
import pytest

from agent.domain.record.lease import LeaseState
from agent.domain.work.order import Order
from tests.web.page import TOKEN, Served, served

RELEASE = {"verb": "release", "target": "train/0"}
KILL = {"verb": "kill", "target": "fleet:all"}


async def log_in(page: Served) -> str:
    """Log in, and return the proof that forms carry."""
    status, text = await page.post("/login", token=TOKEN)
    assert status == 200
    return str(re.findall(r'name="proof" value="([0-9a-f]{64})"', text)[0])


def hidden(text: str) -> dict[str, str]:
    """Return the hidden fields of a form that have a value."""
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]+)"', text))


def state(page: Served) -> tuple[LeaseState, list[str]]:
    """Return what an order could have changed: the lease's state, and the holds."""
    known = page.world.app.ledger.recollection(page.world.clock.now())
    (lease,) = known.leases
    return lease.state, [str(hold) for hold in known.holds]


async def test_a_release_lists_what_it_ends_and_needs_the_name_of_the_slot(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        lease = page.world.lease()
        await log_in(page)
        _, asked = await page.get("/confirm?verb=release&target=train/0")
        _, by_lease = await page.get(f"/confirm?verb=release&target={lease.lease_id}")
        status, text = await page.post("/order", **hidden(asked), typed=" train/0 ")
        ended, _ = state(page)
    rate = f"${lease.billing_rate.dollars:.4f}"
    assert f"1 lease: {rate} an hour now, $0.0000 an hour after it" in asked
    assert lease.lease_id in asked
    for form in (asked, by_lease):
        assert 'Type <strong class="word">train/0</strong>' in form
    assert status == 200, text
    assert "<h1>Done</h1>" in text
    assert re.search(rf"release</td>.*{lease.lease_id}.*confirmed", text)
    assert ended in {LeaseState.RELEASING, LeaseState.ENDED}


async def test_a_kill_of_everything_needs_the_fleets_id(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        lease, fleet_id = page.world.lease(), page.world.app.ledger.fleet_id
        proof = await log_in(page)
        _, board = await page.get("/")
        _, asked = await page.get("/confirm?verb=kill&target=fleet:all")
        before = state(page)
        wrong, _ = await page.post("/order", **KILL, proof=proof, typed="train/0")
        unchanged = state(page)
        status, text = await page.post("/order", **KILL, proof=proof, typed=fleet_id)
        known = page.world.app.ledger.recollection(page.world.clock.now())
        _, after = await page.get("/")
    assert "/confirm?verb=kill&amp;target=fleet:all" in board
    assert lease.lease_id in asked
    assert f'Type <strong class="word">{fleet_id}</strong>' in asked
    assert (wrong, unchanged) == (422, before)
    assert (status, "all spending is stopped" in text) == (200, True), text
    assert [str(hold) for hold in known.holds] == ["fleet:all"]
    assert "a kill is in force" in after


async def test_a_kill_may_keep_the_disks(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        lease, fleet_id = page.world.lease(), page.world.app.ledger.fleet_id
        proof = await log_in(page)
        _, asked = await page.get("/confirm?verb=kill&target=fleet:all&keep_disks=true")
        kept = hidden(asked)
        status, _ = await page.post("/order", **kept, typed=fleet_id)
        await page.world.cycle()
        (stopped,) = page.world.leases()
    assert kept == {**KILL, "keep_disks": "true", "proof": proof}
    assert f"${lease.disk_rate.dollars:.4f} an hour after it" in asked
    assert (status, stopped.state) == (200, LeaseState.PAUSED)


@pytest.mark.parametrize("order", [RELEASE, KILL], ids=["release", "kill"])
@pytest.mark.parametrize(
    "typed", [None, "", "train", "TRAIN/0", "train/1", "fleet:all", "yes", "\x00", "train/0\ntrain/0"]
)
async def test_a_wrong_word_changes_nothing(tmp_path: Path, order: dict[str, str], typed: str | None) -> None:
    async with served(tmp_path) as page:
        proof = await log_in(page)
        before = state(page)
        form = order | {"proof": proof} | ({} if typed is None else {"typed": typed})
        status, text = await page.post("/order", **form)
        assert state(page) == before
    assert status == 422
    assert "Nothing was done" in text
    assert 'role="alert"' in text


@pytest.mark.parametrize("order", [RELEASE, KILL], ids=["release", "kill"])
async def test_another_site_a_stranger_and_a_form_of_an_earlier_session_change_nothing(
    tmp_path: Path, order: dict[str, str]
) -> None:
    async with served(tmp_path) as page:
        word = page.world.app.ledger.fleet_id if order is KILL else "train/0"
        stranger, _ = await page.post("/order", **order, typed=word, proof="0" * 64)
        asked = await page.client.get(page.url + f"/confirm?verb={order['verb']}&target={order['target']}")
        earlier = await log_in(page)
        await page.post("/logout", proof=earlier)
        proof = await log_in(page)
        before = state(page)
        form = order | {"typed": word, "proof": proof}
        elsewhere = []
        for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
            async with page.client.post(page.url + "/order", data=form, headers=headers) as answer:
                elsewhere.append(answer.status)
        late, _ = await page.post("/order", **(form | {"proof": earlier}))
        read, _ = await page.get("/order?" + "&".join(f"{key}={value}" for key, value in form.items()))
        assert state(page) == before
    assert asked.url.path == "/login"
    assert (stranger, elsewhere, late, read) == (403, [403] * 3, 403, 405)


async def test_the_order_goes_the_way_of_the_operators_socket(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        given: list[tuple[Order, str]] = []
        app = page.world.app
        real = app.say

        async def say(order: Order, who: str) -> object:
            given.append((order, who))
            return await real(order, who)

        app.say = say  # type: ignore[method-assign, assignment]
        lease = page.world.lease().lease_id
        await log_in(page)
        _, asked = await page.get("/confirm?verb=release&target=train/0")
        await page.post("/order", **hidden(asked), typed="train/0")
    assert given == [(Order("release", "train/0", leases=(lease,)), "the page")]


async def test_a_slot_that_moved_to_another_lease_meanwhile_is_not_released(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        await log_in(page)
        shown = page.world.lease()
        _, asked = await page.get("/confirm?verb=release&target=train/0")
        moved = msgspec.structs.replace(shown, lease_id="vast-moved", instance_id="moved")
        async with page.world.app.ledger.transaction() as tx:
            tx.update_lease(msgspec.structs.replace(shown, state=LeaseState.RELEASING))
            tx.open_lease(moved)
        written = len(page.world.orders)
        status, text = await page.post("/order", **hidden(asked), typed="train/0")
        unnamed, _ = await page.post("/order", **(hidden(asked) | {"leases": ""}), typed="train/0")
        known = {lease.lease_id: lease for lease in page.world.leases()}
        sent = page.world.orders[written:]
    assert (status, unnamed) == (422, 422)
    assert f"train/0 has vast-moved now, {shown.lease_id} is gone or being released; nothing was done" in text
    assert 'Type <strong class="word">train/0</strong>' in text
    assert hidden(asked)["leases"] == shown.lease_id
    assert hidden(text) == hidden(asked) | {"leases": "vast-moved"}
    assert known["vast-moved"] == moved
    assert sent == []


async def test_an_order_that_does_nothing_says_so_before_it_is_given(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        await log_in(page)
        nothing, text = await page.get("/confirm?verb=resume&target=train/0")
        unknown, _ = await page.get("/confirm?verb=release&target=%3Cb%3E")
        lift, _ = await page.get("/confirm?verb=resume&target=fleet:all")
        one, _ = await page.get("/confirm?verb=kill&target=train/0")
    assert (nothing, unknown, lift, one) == (422, 422, 400, 400)
    assert "nothing holds" in text
