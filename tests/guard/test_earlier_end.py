"""What a guard that starts again says of the end before: nothing, since it is of another start."""

import signal
from collections.abc import Iterator

import pytest

from agent.guard import end_report
from agent.guard.bucket_notes import BucketNotes
from agent.guard.guard_clock import GuardClock
from agent.guard.guard_settings import BucketPlace
from agent.guard.s3.s3_objects import S3Objects
from tests.support import s3_servers, store_proxy
from tests.support.guarded import ROOT, Instance
from tests.support.s3_servers import Store


@pytest.fixture
def notes(store: Store) -> Iterator[BucketNotes]:
    place = BucketPlace(store.url, "us-east-1", store.bucket, ROOT, s3_servers.KEY_ID, s3_servers.SECRET, "")
    objects = S3Objects(place, GuardClock())
    yield BucketNotes(objects, ROOT)
    objects.close()


def of(notes: BucketNotes) -> str:
    """Return whose end the bucket has."""
    note, _ = notes.read("ended-L1.json") or ({}, "")
    return str(note.get("lease"))


def ended_by_its_market(instance: Instance, store: Store) -> None:
    with instance.started("sleep", "1000", store=store) as guard:
        guard.phase("running")
        guard.process.send_signal(signal.SIGTERM)
        assert guard.ended() == 128 + signal.SIGTERM


def test_a_start_takes_the_note_of_an_earlier_end_back(instance: Instance, store: Store, notes: BucketNotes) -> None:
    """Hours later something killed guard and work at once, and the daemon read of an end that was long past."""
    ended_by_its_market(instance, store)
    assert of(notes) == "L1"
    with instance.started("sleep", "1000", store=store) as guard:
        guard.phase("running")
        assert of(notes) == end_report.OF_NOBODY
    assert of(notes) == end_report.OF_NOBODY
    ended_by_its_market(instance, store)
    assert of(notes) == "L1"


def test_where_the_bucket_is_away_the_next_start_takes_it_back(
    instance: Instance, store: Store, notes: BucketNotes
) -> None:
    ended_by_its_market(instance, store)
    with store_proxy.before(store) as proxy:
        proxy.fault = lambda method, path: 503 if method == "PUT" and "ended-" in path else None
        with instance.started("sleep", "1000", store=store, bucket=store.place(ROOT, endpoint=proxy.url)) as guard:
            guard.said("the note of its earlier end stays in the bucket")
            guard.phase("running")
    assert of(notes) == "L1"
    with instance.started("sleep", "1000", store=store) as guard:
        guard.phase("running")
        assert of(notes) == end_report.OF_NOBODY
