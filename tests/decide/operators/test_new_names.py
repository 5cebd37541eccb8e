"""What follows a workload to its new name."""

from agent.decide.operators import reload
from agent.domain.record.tally import Counted, Tally
from tests.support.builders import NOW, workload
from tests.support.expiring import held as hold

RENAMED = workload("other", was="train")


def test_standing_words_follow_a_workload_to_its_new_name() -> None:
    holds = (hold("drain", "workload:train"), hold("pause", "slot:train/1"), hold("lock", "host:train"))
    found = reload.renamed_holds(holds, (RENAMED,))
    assert [str(new.target) for new in found.values()] == ["workload:other", "slot:other/1"]


def test_what_was_counted_follows_a_workload_to_its_new_name() -> None:
    counted = [
        (Counted.RAN, "train"),
        (Counted.RAN, "trainer/1"),
        (Counted.STARTED, "train"),
        (Counted.STALLED, "train/1"),
    ]
    known = [Tally(kind, of, NOW, NOW, "its end") for kind, of in counted]
    moved = reload.renamed_tallies(known, (RENAMED,))
    assert [(old.of, new.of) for old, new in moved.items()] == [("train", "other"), ("train/1", "other/1")]
