"""Two real daemons with one ledger on a real PostgreSQL server: one leads, the other stands by and takes over."""

import json
import re
import signal
import socket
from pathlib import Path

import aiohttp
import pytest

from agent.cli.setup import doctor_checks
from agent.ledger.server_address import ServerAddress
from agent.markets import labels
from agent.simulator.vast.http.call_gate import DEFAULT_KEY
from tests.support import engines, ports, postgres
from tests.support.boxes import Pair, pair, until_led, until_standing_by
from tests.support.engines import database
from tests.support.programs import until
from tests.support.standby_names import administered
from tests.support.terminal import typed

__all__ = ["database"]
pytest.importorskip("psycopg")
pytestmark = pytest.mark.skipif(not postgres.is_here(), reason="PostgreSQL is not installed (make tools)")


async def asked(place: Path, path: str) -> tuple[int, str]:
    """Return the answer of the daemon's socket."""
    connector = aiohttp.UnixConnector(str(place / "ledger.sqlite.sock"))
    async with aiohttp.ClientSession(connector=connector) as link, link.get(f"http://gpubid{path}") as reply:
        return reply.status, await reply.text()


async def test_a_standby_sends_nothing_answers_who_leads_and_takes_over(tmp_path: Path, database: str) -> None:
    async with pair(tmp_path, database) as two, two.daemon(0) as first:
        await until_led(first)
        lease = await two.until_running(0)
        async with two.daemon(1) as second:
            await until_standing_by(second)
            await second.until_told("READY=1")
            assert any("leads since" in line for line in second.messages())
            status, text = await asked(two.places[1], "/fleet")
            assert (status, json.loads(text)["error"]) == (503, "standby")
            assert json.loads(text)["leader"]["is_shown"]
            ran = await two.gpubid(1, "fleet")
            assert ran.code == 1
            assert re.search(r"stands by; \S+ \(http://127.0.0.1:\d+\) leads since .* give the command on", ran.err)

            watched = await two.gpubid(1, "fleet", "--watch")
            assert (watched.code, "leads since" in watched.err) == (1, True), "it is no daemon that does not answer"

            fleet, summary = await two.gpubid(0, "fleet"), await two.gpubid(0, "status")
            for shown in (fleet, summary):
                assert re.search(
                    r"leader: \S+ \(http\S+\) leads since .* UTC; its last beat is [0-9]+ s old", shown.out
                )
            assert summary.code == 0, "that somebody leads is no problem"
            page, metrics = await first.page("/"), await first.page()
            assert re.search(r"leads since .* its last beat is \d+ s old", page)
            fleet_id = (two.places[1] / "ledger.sqlite.fleet").read_text().strip()
            assert f'gpubid_leads{{fleet="{fleet_id}"}} 1.0' in metrics
            assert json.loads(await first.page("/healthz"))["role"] == "leader"
            (contract,) = await two.live()
            parsed = labels.parse(contract["label"])
            assert parsed is not None
            assert parsed.epoch == 1
            first.process.send_signal(signal.SIGKILL)
            await first.ended()
            await until_led(second)
            assert (await two.until_running(1))["lease"] == lease["lease"]
            assert await two.rents() == 1
            assert len(await two.live()) == 1
            async with two.daemon(0) as again:
                await until_standing_by(again)
                assert await second.stop() == 0, "whoever stops its leader hands over"
                await until_led(again)
                assert (await two.until_running(0))["lease"] == lease["lease"]
                await _ends_nothing_behind_the_leader(two)
        assert await two.rents() == 1
        await _ends_all_by_label(two)


async def _ends_all_by_label(two: Pair) -> None:
    """Without a leader, a person at a terminal ends everything, and is asked twice."""
    ran = await two.gpubid(1, "kill", "--by-label", "--yes")
    assert (ran.code, await two.market.billing() != []) == (2, True), "only a person at a terminal"
    words = ["kill", "--by-label", "--no-wait"]
    assert typed(words, two.places[1], ["y", "n"], key=DEFAULT_KEY)[0] == 1
    assert len(await two.live()) == 1
    code, printed = typed(["kill", "--by-label"], two.places[1], ["y", "y"], key=DEFAULT_KEY)
    assert code == 0, printed
    assert not await two.live()


async def _ends_nothing_behind_the_leader(two: Pair) -> None:
    """A box without a daemon refuses a kill while the other one leads."""
    fleet, summary = await two.gpubid(1, "fleet"), await two.gpubid(1, "status")
    for shown in (fleet, summary):
        assert "leads since" in shown.out
        assert "no daemon runs on this box" in shown.out
        assert "none runs on this ledger" not in shown.out
    assert summary.code == 0, "the fleet is led"
    ran = await two.gpubid(1, "pause", "train")
    assert (ran.code, "is led by the daemon on " in ran.err, "(http://127.0.0.1" in ran.err) == (1, True, True), ran
    ran = await two.gpubid(1, "kill", "--yes")
    assert (ran.code, "stop that daemon first; nothing was ended" in ran.err) == (1, True), ran.err
    assert len(await two.live()) == 1


async def test_a_second_daemon_of_one_box_ends_with_a_sentence(tmp_path: Path, database: str) -> None:
    async with pair(tmp_path, database) as two, two.daemon(0) as first:
        await until_led(first)
        file = two.places[1] / "agent.toml"
        address = f"127.0.0.1:{ports.free()}"
        file.write_text(file.read_text().replace("127.0.0.1:0", address))
        async with two.daemon(1) as second:
            await until_standing_by(second)
            ran = await two.gpubid(1, "run")
            assert (ran.code, "Traceback" in ran.err) == (2, False), ran
            assert f"cannot listen on {address} (another program has it" in ran.err
            assert "gpubid_build_info{" in await doctor_checks.page(f"http://{address}/metrics"), "doctor compares it"
            assert (await asked(two.places[1], "/fleet"))[0] == 503, "the standby's socket is there"


@pytest.mark.nightly
async def test_a_standby_whose_files_would_not_keep_a_lease_says_so_before_a_failover(
    tmp_path: Path, database: str
) -> None:
    """It took the lead with such files, ended, and left the leases to nobody."""
    async with pair(tmp_path, database) as two, two.daemon(0) as first:
        await until_led(first)
        await two.until_running(0)
        file = two.places[1] / "agent.toml"
        good = file.read_text()
        other = good.replace("[workloads.train", "[workloads.other")
        file.write_text(other)
        async with two.daemon(1) as second:
            await until_standing_by(second)

            async def told() -> bool:
                return "could not take over" in (await two.gpubid(1, "fleet")).err

            await until(told, "that its files do not fit")
            ran = await two.gpubid(1, "fleet")
            assert re.search(
                r"workloads\.train: is gone, but vast-\d+ of train/0 \(\S+\) goes on: give this box", ran.err
            )
            assert "gpubid release" not in ran.err, "nobody should end a lease for a failover"
            checked = await two.gpubid(1, "check", "--against-running")
            assert (checked.code, "refused: workloads.train: is gone" in checked.out) == (1, True), checked
            looked = await two.gpubid(1, "doctor", "--json")
            (line,) = (each for each in looked.json["lines"] if each["name"] == "start")
            assert (line["verdict"], "workloads.train" in line["sentence"]) == ("fail", True)

            file.write_text(other + "nonsense = 1\n")
            refused = await two.gpubid(1, "reload")
            assert (refused.code, "nonsense: is not a key" in refused.err) == (2, True), refused
            file.write_text(good)
            taken = await two.gpubid(1, "reload")
            assert (taken.code, taken.out.startswith("applied: ")) == (0, True), taken

            async def fits() -> bool:
                return (
                    "give the command on" in (shown := (await two.gpubid(1, "fleet")).err) and "not take" not in shown
                )

            await until(fits, "that its files fit")


async def test_a_standby_refuses_files_with_a_key_that_it_cannot_read_and_stands_by_on(
    tmp_path: Path, database: str
) -> None:
    """It said "applied" and ended with 2: after the next failover nobody would have led."""
    async with pair(tmp_path, database) as two, two.daemon(0) as first:
        await until_led(first)
        async with two.daemon(1) as second:
            await until_standing_by(second)
            file = two.places[1] / "agent.toml"
            good = file.read_text()
            file.write_text(good + '[workloads.train.env_from]\nHF_TOKEN = "hf_token_of_nobody"\n')
            said = "workloads.train.env_from.HF_TOKEN: there is no key named hf_token_of_nobody"
            refused = await two.gpubid(1, "reload")
            assert (refused.code, said in refused.err) == (2, True), refused
            file.write_text(good.replace("vast_api_key", "key_of_nobody"))
            refused = await two.gpubid(1, "reload")
            assert "markets.vast.credential: there is no key named key_of_nobody" in refused.err

            second.process.send_signal(signal.SIGHUP)
            told = await second.until_logged("config.refused")
            assert "there is no key named key_of_nobody" in told[0]["problem"]
            file.write_text(good)

            async def is_applied() -> bool:
                return (await two.gpubid(1, "reload")).code == 0

            await until(is_applied, "that it stands by on and takes good files")


async def test_a_standby_that_cannot_use_its_new_files_stands_by_on_with_the_last_ones(
    tmp_path: Path, database: str
) -> None:
    """It said "applied" and ended with 2, as for a key that it cannot read."""
    async with pair(tmp_path, database) as two, two.daemon(0) as first:
        await until_led(first)
        async with two.daemon(1) as second:
            await until_standing_by(second)
            file = two.places[1] / "agent.toml"
            good = file.read_text()
            with socket.socket() as other:
                port = ports.free()
                other.bind(("127.0.0.1", port))
                other.listen()
                address = f"127.0.0.1:{port}"
                file.write_text(good.replace("127.0.0.1:0", address))
                refused = await two.gpubid(1, "reload")
                assert (refused.code, f"web.listen: cannot listen on {address}" in refused.err) == (2, True), refused
                second.process.send_signal(signal.SIGHUP)
                told = await second.until_logged("config.refused")
                assert f"cannot listen on {address}" in told[0]["problem"]
            file.write_text(good.replace('path = "ledger.sqlite"', 'path = "no/folder/ledger.sqlite"'))
            second.process.send_signal(signal.SIGHUP)
            await second.until_logged("config.refused", times=2)
            file.write_text(good)

            async def is_applied() -> bool:
                return (await two.gpubid(1, "reload")).code == 0

            await until(is_applied, "that it stands by on and takes good files")


async def test_a_standby_whose_password_is_empty_for_a_moment_stands_by_on(tmp_path: Path, database: str) -> None:
    """A rotation writes the file anew. The standby ended with 2, and was not started again."""
    async with pair(tmp_path, database) as two, two.daemon(0) as first:
        await until_led(first)
        word, file = two.places[1] / "word", two.places[1] / "agent.toml"
        word.write_text(postgres.PASSWORD)
        file.write_text(file.read_text().replace('credential = "ledger_password"', 'credential_file = "word"'))
        async with two.daemon(1) as second:
            await until_standing_by(second)
            word.write_text("")
            with administered(ServerAddress(two.url, two.schema)) as raw:
                raw.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s "
                    "AND pid NOT IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory')",
                    (engines.ROLE,),
                )

            def is_troubled() -> bool:
                assert second.process.returncode is None, second.err[-3:]
                return any("no leader is seen" in each["reason"] and "word" in each["reason"] for each in seen())

            def seen() -> list[dict[str, str]]:
                return second.logs("lead.seen")

            await until(is_troubled, "that it has no password")
            word.write_text(postgres.PASSWORD)
            await until(lambda: "leads since" in seen()[-1]["reason"], "that it sees the leader again")


async def test_a_standby_that_is_older_than_the_tables_says_so_before_a_failover(tmp_path: Path, database: str) -> None:
    """It looked healthy, and nobody led once the leader of the newer release was gone."""
    async with pair(tmp_path, database) as two, two.daemon(0) as first:
        await until_led(first)
        with engines.connected(ServerAddress(two.url, two.schema)) as raw:
            raw.execute("UPDATE alembic_version SET version_num = '9999'")
        async with two.daemon(1) as second:
            await until_standing_by(second)

            async def told() -> bool:
                return "could not take over" in (await two.gpubid(1, "fleet")).err

            await until(told, "that its program is too old")
            ran = await two.gpubid(1, "fleet")
            assert re.search(
                r"could not take over: .* has schema 9999, this gpubid knows \d+: install the rel", ran.err
            )
            assert "give this box" not in ran.err, "its files are no reason"
            assert any(each["level"] == "warning" and "9999" in each["reason"] for each in second.logs("lead.seen"))
            assert any("has schema 9999" in line for line in second.messages()), "systemctl status"
            status, text = await asked(two.places[1], "/fleet")
            assert (status, "has schema 9999" in json.loads(text)["sentence"]) == (503, True)
            looked = await two.gpubid(1, "doctor", "--json")
            (line,) = (each for each in looked.json["lines"] if "has schema 9999" in each["sentence"])
            assert (line["verdict"], line["fix"]) == ("fail", "install the release that wrote it")


@pytest.mark.nightly
async def test_a_standby_leads_whatever_its_reading_role_may_do(tmp_path: Path, database: str) -> None:
    """It said nothing while it stood by, and when it led it ended at once: no daemon watched what billed."""
    async with pair(tmp_path, database) as two, two.daemon(0) as first:
        await until_led(first)
        lease = await two.until_running(0)
        file = two.places[1] / "agent.toml"
        reader = 'reader = "reads_only"\nreader_credential = "reader_password"\nschema_name'
        file.write_text(file.read_text().replace("schema_name", reader))
        async with two.daemon(1, READER_PASSWORD="of-last-year") as second:
            await until_standing_by(second)

            async def told() -> bool:
                return "could not take over" in (await two.gpubid(1, "fleet")).err

            await until(told, "that nobody could grant it what it reads")
            ran = await two.gpubid(1, "fleet")
            assert "has no role reads_only, the reader: CREATE ROLE reads_only" in ran.err
            with administered(ServerAddress(two.url, two.schema)) as raw:
                raw.execute(f"CREATE ROLE reads_only LOGIN PASSWORD '{postgres.PASSWORD}'")
            assert (await two.gpubid(1, "reload")).code == 0

            async def fits() -> bool:
                return "not take over" not in (shown := (await two.gpubid(1, "fleet")).err) and "give the" in shown

            await until(fits, "that it could take over")
            first.process.send_signal(signal.SIGKILL)
            await first.ended()
            await until_led(second)
            assert (await two.until_running(1))["lease"] == lease["lease"]


@pytest.mark.nightly
async def test_a_standby_looks_on_while_a_table_that_it_reads_is_locked(tmp_path: Path, database: str) -> None:
    """It waited for the table for as long as that took, and saw meanwhile nothing of the leader's end."""
    import psycopg

    async with pair(tmp_path, database) as two, two.daemon(0) as first:
        await until_led(first)
        lease = await two.until_running(0)
        with psycopg.connect(database) as operator:
            operator.execute(f'LOCK TABLE "{two.schema}".intents IN ACCESS EXCLUSIVE MODE'.encode())
            async with two.daemon(1) as second:
                await until_standing_by(second)
                assert "it could not take over" in second.logs("lead.seen")[0]["reason"]
                operator.rollback()
                first.process.send_signal(signal.SIGKILL)
                await first.ended()
                await until_led(second)
                assert (await two.until_running(1))["lease"] == lease["lease"]


@pytest.mark.nightly
async def test_a_daemon_waits_for_a_server_that_does_not_answer_yet(tmp_path: Path) -> None:
    """After a blackout a box may be up before its ledger's server; systemd would give up after six starts."""
    with postgres.serving() as server:
        engines.make_role(server.url)
        server.kill()
        async with pair(tmp_path, engines.role_url(server.url)) as two, two.daemon(0) as only:
            await only.until_told("READY=1")
            (seen,) = only.logs("lead.seen")
            assert seen["level"] == "warning"
            assert re.search(r"no leader is seen: .*127\.0\.0\.1.* `gpubid doctor` checks the server", seen["reason"])
            assert not await two.market.writes()
            server.start()
            await until_led(only)
            await two.until_running(0)


@pytest.mark.nightly
async def test_the_watchdog_of_a_standby_that_leads_waits_until_its_ledger_is_open(
    tmp_path: Path, database: str
) -> None:
    """The service manager was told that it is ready, so its watchdog would bite while tables are brought up to date."""
    import psycopg

    def fed() -> int:
        return sum(line == "WATCHDOG=1" for line in second.messages())

    async with pair(tmp_path, database) as two, two.daemon(0) as first:
        await until_led(first)
        async with two.daemon(1, WATCHDOG_USEC="1500000") as second:
            await until_standing_by(second)
            with psycopg.connect(database) as raw:
                raw.execute(f'LOCK TABLE "{two.schema}".intents IN ACCESS EXCLUSIVE MODE'.encode())
                first.process.send_signal(signal.SIGKILL)
                await until(lambda: any("this daemon leads" in line for line in second.messages()), "that it leads")
                before = fed()
                await until(lambda: fed() >= before + 3, "its watchdog being fed")
                assert not any("page at" in line for line in second.out), "it has not opened its ledger"
                raw.rollback()
            await until_led(second)


@pytest.mark.nightly
@pytest.mark.long(40)
async def test_a_frozen_leader_is_replaced_and_writes_nothing_when_it_wakes(tmp_path: Path, database: str) -> None:
    async with pair(tmp_path, database) as two, two.daemon(0) as first, two.daemon(1) as second:
        await until_led(first)
        await until_standing_by(second)
        await two.until_running(0)
        first.process.send_signal(signal.SIGSTOP)
        await until_led(second)
        assert second.logs("leader.frozen")
        await two.until_running(1)
        orders = await two.market.writes()
        first.process.send_signal(signal.SIGCONT)
        assert await first.ended() == 1
        assert "another daemon has begun to write" in first.err[-1]
        assert await two.market.writes() == orders
        assert len(await two.live()) == 1
