import hashlib
import hmac
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent.domain import money
from agent.markets import market_errors
from agent.markets.vast import events
from tests.markets.wire import PAYLOADS

NOW = datetime(2026, 11, 5, 2, 0, tzinfo=UTC)
SECRET = b"made-up-secret"


def test_the_inbox_is_read_oldest_first_each_event_once() -> None:
    rows = events.inbox((PAYLOADS / "inbox.json").read_bytes(), datetime(2026, 11, 4, 23, tzinfo=UTC))
    assert [(row.event_id, row.kind, row.instance_id) for row in rows] == [
        ("e2", "started", "52000001"),
        ("e3", "low_credit", ""),
        ("e4", "resumed", "52000001"),
        ("e5", "outbid", "52000001"),
    ]
    assert (rows[-1].your_bid, rows[-1].new_floor) == (money.per_hour("0.4"), money.per_hour("1.27"))
    assert rows[0].at == datetime.fromtimestamp(1793842000, UTC)


def test_only_what_came_since_is_returned() -> None:
    since = datetime.fromtimestamp(1793844000, UTC)
    assert [row.event_id for row in events.inbox((PAYLOADS / "inbox.json").read_bytes(), since)] == ["e5"]


def test_a_kind_nobody_knows_is_other() -> None:
    rows = events.inbox((PAYLOADS / "inbox.json").read_bytes(), datetime(2026, 1, 1, tzinfo=UTC))
    assert {row.event_id: row.kind for row in rows if row.event_id in {"e0", "e1"}} == {
        "e0": "other",
        "e1": "maintenance",
    }


OUTBID = (
    "Your interruptible instance 52000001 on machine 5101 has been outbid and will be stopped. Your bid "
    "was $0.40/hr and the current minimum bid is $1.27/hr. Update your bid at the console."
)


@pytest.mark.parametrize(
    "changes",
    [
        {"associated_id": None},
        {"associated_id": {}},
        {"associated_id": {"contract_id": 52000001}},
        {"associated_id": {"instance_id": None, "your_bid": "n/a"}},
        {"associated_id": {"instance_id": "#52000001"}},
        {"associated_id": {"instance_id": 52000001, "your_bid": "n/a"}},
        {"associated_id": [52000001]},
        {"associated_id": {"instance_id": 52000001}, "event_id": 7},
    ],
    ids=str,
)
def test_an_outbid_is_read_from_its_sentence_where_its_keys_say_less(changes: dict[str, Any]) -> None:
    """It is the market's only record of an outbid; no shape of its keys is documented."""
    row = {"event_id": "e9", "notif_type": "outbid", "created_at": 1793845000.5, "message": OUTBID} | changes
    (event,) = events.inbox(json.dumps({"notifications": [row]}).encode(), datetime(2026, 1, 1, tzinfo=UTC))
    assert (event.kind, event.instance_id, event.event_id) == ("outbid", "52000001", str(row["event_id"]))
    assert (event.your_bid, event.new_floor) == (money.per_hour("0.40"), money.per_hour("1.27"))


@pytest.mark.parametrize("body", [b"", b"<html>", b"{}", b'{"notifications":3}'])
def test_what_is_no_inbox_is_malformed(body: bytes) -> None:
    with pytest.raises(market_errors.Malformed):
        events.inbox(body, NOW)


def delivery(**changes: Any) -> tuple[bytes, str, str]:
    body = {
        "event_id": "w1",
        "user_id": 5,
        "notif_type": "outbid",
        "subject": "Your Interruptible Instance #52000001 Has Been Outbid",
        "message": OUTBID,
        "timestamp": NOW.timestamp(),
    } | changes
    raw, stamp = json.dumps(body).encode(), str(NOW.timestamp())
    return raw, stamp, "sha256=" + hmac.new(SECRET, stamp.encode() + b"." + raw, hashlib.sha256).hexdigest()


def test_a_signed_delivery_names_instance_and_prices_in_its_sentence() -> None:
    event = events.webhook(*delivery(), SECRET, NOW)
    assert event is not None
    assert (event.kind, event.instance_id, event.at) == ("outbid", "52000001", NOW)
    assert (event.your_bid, event.new_floor) == (money.per_hour("0.4"), money.per_hour("1.27"))


def test_a_delivery_without_prices_or_ids_is_an_event_all_the_same() -> None:
    event = events.webhook(*delivery(notif_type="client:low_credit", message="Low."), SECRET, NOW)
    assert event is not None
    assert (event.kind, event.instance_id, event.your_bid) == ("low_credit", "", None)


@pytest.mark.parametrize(
    ("slug", "kind"),
    [
        ("instance_resumed", "resumed"),
        ("instance_stopped", "stopped"),
        ("instance_offline", "offline"),
        ("instance_online", "online"),
        ("machine_maintenance", "maintenance"),
        ("upcoming_downtime", "maintenance"),
        ("near_end_date", "near_end"),
        ("idle_gpu", "other"),
    ],
)
def test_each_type_of_notice_has_its_kind(slug: str, kind: str) -> None:
    event = events.webhook(*delivery(notif_type=slug, message="Instance #7."), SECRET, NOW)
    assert event is not None
    assert (event.kind, event.instance_id) == (kind, "7")


def test_a_delivery_that_is_forged_altered_or_old_is_nothing() -> None:
    raw, stamp, signature = delivery()
    assert events.webhook(raw, stamp, signature, b"another secret", NOW) is None
    assert events.webhook(raw, stamp, signature, b"", NOW) is None
    assert events.webhook(raw + b" ", stamp, signature, SECRET, NOW) is None
    assert events.webhook(raw, stamp + "0", signature, SECRET, NOW) is None
    assert events.webhook(raw, stamp, "", SECRET, NOW) is None
    assert events.webhook(raw, stamp, "sha256=é", SECRET, NOW) is None
    assert events.webhook(raw, stamp, signature, SECRET, NOW + timedelta(minutes=6)) is None
    assert events.webhook(raw, stamp, signature, SECRET, NOW - timedelta(minutes=6)) is None


def test_a_signed_delivery_that_is_no_event_is_nothing() -> None:
    for raw in (b"null", b"{}", b"x"):
        signature = "sha256=" + hmac.new(SECRET, b"5." + raw, hashlib.sha256).hexdigest()
        assert events.webhook(raw, "5", signature, SECRET, datetime.fromtimestamp(5, UTC)) is None


def test_structured_details_of_a_delivery_win_over_its_sentence() -> None:
    documented = json.loads((PAYLOADS / "delivery_low_credit.json").read_bytes())
    told = events.webhook(*delivery(data={"instance_id": 7, "your_bid": 0.5, "more": [1]}), SECRET, NOW)
    assert told is not None
    assert (told.instance_id, told.your_bid, told.new_floor) == ("7", money.per_hour("0.5"), None)
    for useless in (documented["data"], None, {}, {"instance_id": "x"}, [1], "words"):
        event = events.webhook(*delivery(data=useless, data_truncated=useless is None), SECRET, NOW)
        assert event is not None
        assert event.instance_id == "52000001"


def test_the_documented_delivery_is_read() -> None:
    documented = json.loads((PAYLOADS / "delivery_low_credit.json").read_bytes())
    event = events.webhook(*delivery(**documented), SECRET, NOW)
    assert event is not None
    assert (event.event_id, event.kind, event.instance_id) == ("7e9a2c4e6f9e4a24a53b77c2d8e3f0aa", "low_credit", "")
