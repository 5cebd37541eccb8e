"""An instance with its disk, and a real S3 server; a module that plays several servers has its own `store`."""

from pathlib import Path

import pytest

from tests.support import s3_servers
from tests.support.guarded import Instance
from tests.support.s3_servers import Store


@pytest.fixture
def instance(tmp_path: Path) -> Instance:
    return Instance(tmp_path / "instance")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    if not s3_servers.HERE["moto"]:
        pytest.skip("moto is not here: `make stores` installs it")
    return s3_servers.shared("moto", tmp_path.parent)
