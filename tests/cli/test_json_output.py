"""`deploy/json-output.md` is the contract of `--json`.

Every printed key is documented, every documented key printed.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import contract, programs
from tests.support.programs import LIVE, Market, Ran, gpubid, until

SECTIONS = contract.sections()
VERBS: dict[str, tuple[str, ...]] = {
    "check": ("check",),
    "plan": ("plan",),
    "explain": ("explain",),
    # Seven GPUs of one host are nowhere for sale: the floor is not known.
    "estimate": (
        *("estimate", "train", "--gpu", "A100", "--gpus", "7", "--hours", "10", "--price", "0.4", "--deadline", "1d"),
        *("--checkpoint-takes", "30s", "--storage-price", "0.2", "--traffic-price", "0.01"),
    ),
    "fleet": ("fleet",),
    "spend": ("spend",),
    "savings": ("savings",),
    "ledger events": ("ledger", "events"),
    "ledger prices": ("ledger", "prices"),
    "ledger export": ("ledger", "export", "--to", "exported", "--table", "leases"),
    "ledger verify": ("ledger", "verify"),
    "strategy list": ("strategy", "list"),
    "strategy show": ("strategy", "show", "patient"),
    "strategy diff": ("strategy", "diff", "patient", "ondemand"),
    "rehearse": ("rehearse", "--hours", "0.5", "--climate", "bidding_war"),
    "release": ("drain", "train/0"),
    "shadow": ("shadow",),
    "replay": ("replay", "ledger.sqlite", "--strategy", "ondemand"),
    "lab check": ("lab", "check", "ondemand"),
    "lab verify": ("lab", "verify", "ledger.sqlite.recordings"),
    "lab show": ("lab", "show", "traces.json"),
    "lab fit": ("lab", "fit", "traces.json"),
    "lab tune": (
        *(
            "lab",
            "tune",
            "levi",
            "--problem",
            "deadline",
            "--traces",
            "traces.json",
            "--job-hours",
            "4",
            "--trials",
            "2",
        ),
        *("--deadline-hours", "5", "--window-hours", "6", "--on-demand-price", "3", "--folds", "1"),
    ),
    "lab bench": (
        *("lab", "bench", "--problem", "deadline", "--traces", "traces.json", "--workers", "1", "--job-hours", "4"),
        *("--deadline-hours", "5", "--window-hours", "6", "--spot-price", "1", "--on-demand-price", "3"),
    ),
    "lab cross-validate": (
        *(
            "lab",
            "cross-validate",
            "--traces",
            "records",
            "--workers",
            "1",
            "--job-hours",
            "4",
            "--deadline-hours",
            "5",
        ),
        *("--overhead-hours", "0.2", "--stride-hours", "12", "--spot-price", "1", "--on-demand-price", "3"),
    ),
    # Last: it changes the configuration.
    "tune": (
        *("tune", "mine", "--seeds", "1-3", "--hours", "1", "--trials", "1", "--keys", "ceiling", "--workers", "1"),
        "--force",
    ),
}
TRACE = {
    "pool": "zone",
    "gap_seconds": 600,
    "start": "2026-01-01T00:00:00Z",
    "available": [1, 1, 0] * 100,
    "spot_price": 1,
}
UNSEEN = {
    # Only of offers with bids, which seven GPUs of one host are not; tests/decide/estimate/test_option.py has one.
    # A budget of a day or a month that is too small; tests/decide/estimate/test_completion.py has one.
    "estimate": {
        "models[].options[].by_age[].age",
        "models[].options[].by_age[].interval",
        "times.ends[].waits_for[]",
    },
    # A list where any price is known.
    "lab show": {"pools[].spot", "pools[].on_demand[]"},
    # Rivals need a ledger with outbids; tests/lab/test_fit.py has one.
    # Regimes are a table where there are traces.
    "lab fit": {
        *(key.path for key in SECTIONS["lab fit"] if key.path.startswith("rivals.")),
        "fits[].later_half",
        "regimes",
    },
    # From an own start only; tests/cli/test_tune.py has one.
    "lab tune": {
        "without_effect[]",
        *(key.path for key in SECTIONS["lab tune"] if key.path.startswith("held_out_beside_shipped.")),
    },
    # tests/lab/test_provenance.py has days that numbers were fitted on.
    "lab bench": {"strategies[].fitted_on[]"},
    "lab cross-validate": {
        "records[].<figure>",
        "records[].table.strategies[].fitted_on[]",
    },
    # Only a cloud's price needs a source; tests/cli/test_spend.py has one.
    "savings": {"cited[]", "unpriced[]"},
    # A sound ledger has none; the damaged one of tests/cli/test_ledger.py has.
    "ledger verify": {"findings[]", "inconsistencies[]"},
    "check": {"warnings[]"},
    # A market with spend = false has one: tests/daemon/test_status.py.
    "status": {"notes[].about", "notes[].code", "notes[].sentence"},
    # A key that only a start reads has one: tests/daemon/test_status.py.
    "reload": {"notes[].about", "notes[].code", "notes[].sentence"},
    # A service is no array: tests/web/test_array_json.py. None is kept warm: tests/scenarios/test_service_target.py.
    "fleet": {key.path for key in SECTIONS["fleet"] if key.path.startswith(("arrays[]", "demands[]", "services[]"))},
    # The plan has weighed options; whether a slot's last decision has any depends on when the daemon was stopped.
    "explain": {
        # Of a market that sends its bill later; tests/decide/test_second_price.py has one.
        "now[].arrears[]",
        "now[].not_sold[]",
        *(key.path for key in SECTIONS["explain"] if key.path.startswith("now[].services[]")),
        "last[].options[].name",
        "last[].options[].dollars",
        *(key.path for key in SECTIONS["explain"] if key.path.startswith("weighed[]")),
        # Only a workload that says how long a checkpoint takes has advice: tests/decide/moves/test_checkpointing.py.
        *(key.path for key in SECTIONS["explain"] if key.path.startswith("now[].checkpoints[]")),
    },
    # What differs is in tests/lab.
    "lab check": {key.path for key in SECTIONS["lab check"] if key.path.startswith("findings[]")},
    "lab verify": {key.path for key in SECTIONS["lab verify"] if key.path.startswith("differences[]")},
}
"""Documented keys that may be missing in the samples."""

MORE = 'ports = [8000]\nmax_running = "300d"\nshadow = ["ondemand"]\n[lab]\nrecord = true\n'
"""Keys after those of the last workload, and a table after it."""

UNTIMELY = {"leases[].ports.<port>"}
"""Keys that a lease which still loads does not have; tests/cli/test_reach.py waits for them."""


def configured(place: Path, market: Market, slots: int) -> None:
    text = LIVE.format(url=market.url).replace("slots = 1", f"slots = {slots}")
    text += MORE
    (place / "agent.toml").write_text(text.replace("max_instances = 4", "max_instances = 3"))


async def _count(market: Market, count: int) -> bool:
    return len(await market.billing()) == count


async def _samples(place: Path) -> dict[str, list[Any]]:
    """Run every verb on a fleet of one lease, one doubt and an empty slot, and then under a kill that is refused."""
    made: dict[str, list[Any]] = {}
    (place / "traces.json").write_text(json.dumps(TRACE))
    for record in ("this", "that"):
        (place / "records" / record).mkdir(parents=True)
        (place / "records" / record / "zone.json").write_text(json.dumps(TRACE))

    async def sample(name: str, *verb: str) -> Ran:
        ran = await gpubid(place, *verb, "--json")
        made.setdefault(name, []).append(ran.json)
        return ran

    async with programs.running(place, config=LIVE + MORE) as (market, daemon):
        await until(market.billing, "a rent")
        await market.advance(40)
        await daemon.until_logged("lease.running")
        # From here on the listing lacks the rented instance, and the reply to the rent is lost: it stays in doubt.
        await market.weather("stale_list")
        await market.weather("server_error_after", route="PUT /asks")
        configured(place, market, 2)
        assert (await sample("reload", "reload")).code == 0
        await until(lambda: _count(market, 2), "a second rent")
        await sample("status", "status")
        with (place / "agent.toml").open("a") as file:
            file.write("oops = 1\n")
        assert (await sample("reload", "reload")).code == 2
        assert await daemon.stop() == 0
        configured(place, market, 3)
        for name, verb in VERBS.items():
            assert (await sample(name, *verb)).code == 0, verb
        # A cloud without any card that costs so little: whatever was rented has no price there.
        assert (await sample("savings", "savings", "--baseline", "aws")).code == 0
        await sample("logs", "logs", "train/0")
        assert (await sample("status", "status")).code == 1, "the daemon does not run"
        assert (await sample("doctor", "doctor")).code == 1, "the daemon does not run"
        await market.weather("throttle_text", route="DELETE /instances")
        assert (await sample("kill", "kill", "--no-wait")).code == 1
        await market.still()
        await market.weather("throttle_text", route="DELETE /instances")
        await sample("plan", "plan")
        await sample("explain", "explain")
        await sample("fleet", "fleet")
        await market.still()
        assert (await sample("release", "release", "train/0")).code == 0
        assert (await sample("logs", "logs", "train/0", "--previous")).code == 0
        made["simulate"] = [market.first_line]
    return made


def leaves(documents: list[Any]) -> Iterator[tuple[str, Any]]:
    """Yield each plain value of all the documents with its path in its own."""
    for document in documents:
        yield from contract.leaves(document)


def test_every_verb_is_documented() -> None:
    assert SECTIONS.keys() == {*VERBS, "doctor", "kill", "logs", "reload", "simulate", "status"}


@pytest.mark.long(45)
@pytest.mark.nightly
async def test_the_page_and_the_programs_agree(tmp_path: Path, subtests: pytest.Subtests) -> None:
    samples = await _samples(tmp_path)
    for name, keys in SECTIONS.items():
        with subtests.test("what is printed is documented", verb=name):
            _is_documented(samples[name], keys)
        with subtests.test("what is documented is printed", verb=name):
            seen = [path for path, _ in leaves(samples[name])]
            missing = {key.path for key in keys if not any(key.pattern.fullmatch(path) for path in seen)}
            assert missing <= UNSEEN.get(name, set())
        with subtests.test("what is not said to be missing at times is always there", verb=name):
            _is_complete(samples[name], keys)


def _is_documented(documents: list[Any], keys: list[contract.Key]) -> None:
    for path, value in leaves(documents):
        meant = [key for key in keys if key.pattern.fullmatch(path)]
        assert meant, f"{path} is not in {contract.PAGE.name}"
        assert any(key.allows(value) for key in meant), f"{path} is {value!r}, documented as {meant[0].kind}"


def _is_complete(documents: list[Any], keys: list[contract.Key]) -> None:
    for key in keys:
        table, _, last = key.path.rpartition(".")
        if key.is_sometimes or "<" in last or last.endswith("[]"):
            continue
        for document in documents:
            for entry in _entries(document, table):
                assert last in entry, f"{key.path} is missing in {entry}"


def _entries(document: Any, table: str) -> Iterator[dict[str, Any]]:
    """Yield the tables that a path leads to."""
    step, _, rest = table.partition(".")
    if not step:
        yield document
        return
    name, is_list = step.removesuffix("[]"), step.endswith("[]")
    inner = document[name] if name and name[0] != "<" else document
    # There may be plain values beside tables of any name.
    tables = [each for each in inner.values() if isinstance(each, dict)] if name[:1] == "<" and not is_list else [inner]
    for entry in inner if is_list else tables:
        yield from _entries(entry, rest)
