"""The tables of proxies: their reading, and what they may not say."""

import datetime as dt
from pathlib import Path

import pytest

from agent import config
from agent.config.front_settings import Format, Front
from agent.config.problems import ConfigError
from agent.config.settings import Config
from tests.support.configs import STRATEGIES, added

SERVICE = 'kind = "service"'
PORTS = "ports = [8000]"
WHOLE = ('workload = "train"', "port = 8000", 'haproxy = "/run/haproxy/admin.sock"')


def loaded(tmp_path: Path, *lines: str, work: tuple[str, ...] = (PORTS,)) -> Config:
    path = tmp_path / "agent.toml"
    path.write_text(added(*work) + "\n[front.chat]\n" + "\n".join(lines) + "\n")
    return config.load(path, strategies=STRATEGIES)


def test_a_front_of_haproxy_has_a_backend_and_drains(tmp_path: Path) -> None:
    found = loaded(tmp_path, *WHOLE)
    drain = dt.timedelta(seconds=30)
    socket = Path("/run/haproxy/admin.sock")
    assert found.fronts == (Front("chat", "train", 8000, haproxy=socket, backend="gpubid_chat", drain=drain),)
    assert [work.drain for work in found.workloads] == [drain, *[dt.timedelta()] * (len(found.workloads) - 1)]
    assert [work.has_proxy for work in found.workloads] == [True, *[False] * (len(found.workloads) - 1)]
    assert loaded(tmp_path, *WHOLE, 'drain = "off"').workloads[0].drain == dt.timedelta()


def test_a_file_lies_beside_the_configuration_and_drains_nothing(tmp_path: Path) -> None:
    (front,) = loaded(tmp_path, *WHOLE[:2], 'file = "chat.yml"', 'format = "traefik"').fronts
    assert (front.file, front.format, front.drain) == (tmp_path / "chat.yml", Format.TRAEFIK, dt.timedelta())


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (WHOLE[:2], "a front needs one proxy; write either haproxy ="),
        ((*WHOLE, 'file = "a"', 'format = "caddy"'), "a front needs one proxy"),
        ((*WHOLE[:2], 'file = "a"'), 'file and format go together; write for example format = "traefik"'),
        ((*WHOLE[:2], 'file = "a"', 'format = "caddy"', 'drain = "10s"'), "drain is for HAProxy; remove it"),
        ((*WHOLE, 'drain = "11m"'), 'must be at most 10m, or "off"; write for example drain = "30s"'),
        ((*WHOLE, 'backend = "a; shutdown"'), "front.chat.backend"),
        (('workload = "tran"', *WHOLE[1:]), "there is no workload tran; name one of this file"),
        ((WHOLE[0], "port = 8001", WHOLE[2]), "workload train does not open it; write ports = [8001] there"),
    ],
)
def test_a_front_that_cannot_work_is_refused(tmp_path: Path, lines: tuple[str, ...], told: str) -> None:
    with pytest.raises(ConfigError) as refused:
        loaded(tmp_path, *lines)
    assert told in str(refused.value)


def test_a_batch_has_no_front_and_two_fronts_no_common_backend(tmp_path: Path) -> None:
    batch = (PORTS, 'kind = "batch"', 'done_line = "done"')
    with pytest.raises(ConfigError, match='train is no service; a front is for kind = "service"'):
        loaded(tmp_path, *WHOLE, work=batch)
    second = ("[front.other]", *WHOLE, 'backend = "gpubid_chat"')
    with pytest.raises(ConfigError, match="is that of front chat too; each needs its own"):
        loaded(tmp_path, *WHOLE, *second)


@pytest.mark.parametrize("other", ["./chat.yml", "chat.yml", "a/../chat.yml", "{}/chat.yml"])
def test_two_fronts_have_no_common_file_in_whatever_spelling(tmp_path: Path, other: str) -> None:
    first = (*WHOLE[:2], 'file = "chat.yml"', 'format = "traefik"')
    second = ("[front.other]", *WHOLE[:2], f'file = "{other.format(tmp_path)}"', 'format = "traefik"')
    with pytest.raises(ConfigError, match=r"front\.other\.file: is that of front chat too; each needs its own"):
        loaded(tmp_path, *first, *second)


def test_two_fronts_have_no_common_backend_behind_one_socket_in_whatever_spelling(tmp_path: Path) -> None:
    socket = 'haproxy = "/var/../run/./haproxy//admin.sock"'
    second = ("[front.other]", *WHOLE[:2], socket, 'backend = "gpubid_chat"')
    with pytest.raises(ConfigError, match=r"front\.other\.backend: is that of front chat too; each needs its own"):
        loaded(tmp_path, *WHOLE, *second)
    assert len(loaded(tmp_path, *WHOLE, *second[:-1]).fronts) == 2
