"""`gpubid check --against-running`: the effects of a new file before it is loaded."""

from pathlib import Path

from tests.support import programs
from tests.support.programs import LIVE, gpubid, until


async def test_it_tells_what_would_be_refused_and_what_would_be_left_as_it_is(tmp_path: Path) -> None:
    async with programs.running(tmp_path) as (market, _):
        assert await until(market.billing, "a rent")
        await until(lambda: _is_held(tmp_path), "a lease")
        same = await gpubid(tmp_path, "check", "--against-running")
        assert same.code == 0, same.err
        assert "would affect no open lease" in same.out

        new = tmp_path / "new.toml"
        new.write_text(LIVE.replace("workloads.train", "workloads.other").format(url=market.url))
        gone = await gpubid(tmp_path, "check", "--against-running", "--config", new, "--json")
        assert gone.code == 1
        (found,) = gone.json["against_running"]
        assert (found["code"], found["is_refused"]) == ("workload_gone", True)
        assert "first `gpubid drain train`, then `gpubid release train`; or name it" in found["sentence"]

        new.write_text(LIVE.replace("max_fleet_per_hour = 3.00", "max_fleet_per_hour = 0.001").format(url=market.url))
        burnt = await gpubid(tmp_path, "check", "--against-running", "--config", new)
        assert burnt.code == 1
        assert "is under the" in burnt.out

        new.write_text(LIVE.replace("alpine:latest", "alpine:edge").format(url=market.url))
        # The spec of a lease is recorded in the cycle after its rent.
        await until(lambda: _goes_on(tmp_path, new), "a lease that goes on with the old image")


async def _goes_on(place: Path, new: Path) -> bool:
    changed = await gpubid(place, "check", "--against-running", "--config", new)
    assert changed.code == 0, changed.err
    return "goes on with the old until it ends" in changed.out


async def _is_held(place: Path) -> bool:
    shown = await gpubid(place, "fleet", "--json")
    return bool(shown.code == 0 and shown.json["leases"])
