"""The guard's own S3 client against two real servers over TCP, and through a proxy on bad days."""

import contextlib
import datetime as dt
import hashlib
import ipaddress
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.guard.bucket_notes import BucketNotes
from agent.guard.guard_clock import GuardClock
from agent.guard.guard_settings import BucketPlace
from agent.guard.object_store import DiskFailed, Fetched, Refused, StoreFailed, Unreachable
from agent.guard.s3 import s3_answers, s3_client, s3_multipart, s3_objects
from agent.guard.s3.s3_multipart import SMALLEST_PART, part_size
from agent.guard.s3.s3_objects import S3Objects
from tests.support import s3_servers, store_proxy
from tests.support.s3_servers import Store
from tests.support.store_proxy import CUT, LOST, StoreProxy

SERVERS = [
    pytest.param(name, marks=pytest.mark.skipif(not is_here, reason=f"{name} is not here: `make stores` installs it"))
    for name, is_here in s3_servers.HERE.items()
]
MADE: list[S3Objects] = []
LARGE = 2 * SMALLEST_PART + 5


@pytest.fixture(scope="module", params=SERVERS)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with s3_servers.running(request.param, tmp_path_factory.mktemp(request.param)) as it:
        yield it


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(s3_client, "FIRST_PAUSE_SECONDS", 0.001)
    yield
    while MADE:
        MADE.pop().close()


class OddClock(GuardClock):
    """A clock that is off."""

    def __init__(self, off: float) -> None:
        super().__init__()
        self._off = off

    def wall(self) -> float:
        return super().wall() + self._off


def client(url: str, clock: GuardClock | None = None, **changes: Any) -> S3Objects:
    fields = {"endpoint": url, "region": "us-east-1", "name": s3_servers.BUCKET, "root": "", "token": ""}
    keys = {"key_id": s3_servers.KEY_ID, "secret": s3_servers.SECRET}
    made = S3Objects(BucketPlace(**{**fields, **keys, **changes}), clock or GuardClock())
    MADE.append(made)
    return made


@pytest.fixture
def proxy(store: Store) -> Iterator[StoreProxy]:
    with store_proxy.before(store) as it:
        yield it


@pytest.fixture
def large(tmp_path: Path) -> Path:
    file = tmp_path / "large"
    file.write_bytes(os.urandom(1024) * (LARGE // 1024) + b"12345")
    return file


def sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def test_small_objects_come_back_as_they_were(store: Store) -> None:
    objects = client(store.url)
    odd = "other/a&b<c>.json"
    objects.put(odd, b"odd")
    assert (objects.get(odd, 10) or Fetched(b"", "")).body == b"odd"
    # s3rver's listing escapes an ampersand twice.
    key = "small/a b+c ü/~=?.json"
    assert objects.get(key, 10) is None
    assert objects.put(key, b"{}")
    found = objects.get(key, 10)
    assert found is not None
    assert found.body == b"{}"
    objects.put("small/empty", b"")
    assert {(row.key, row.size_bytes) for row in objects.list("small/", 10)} == {(key, 2), ("small/empty", 0)}
    assert all(-5 < row.age_seconds < 120 for row in objects.list("small/", 10))
    objects.delete(key)
    objects.delete(key)
    assert objects.get(key, 10) is None
    with pytest.raises(Refused, match="more than -1 bytes"):
        objects.get("small/empty", -1)


def test_a_large_file_goes_in_parts_and_comes_back(proxy: StoreProxy, large: Path, tmp_path: Path) -> None:
    objects = client(proxy.url)
    assert objects.upload("large", large).sha256 == sha256(large)
    assert proxy.count("PUT", "partNumber=") == 3
    assert objects.download("large", tmp_path / "back", LARGE) == sha256(large)
    assert (tmp_path / "back").read_bytes() == large.read_bytes()


@pytest.mark.parametrize("size", [0, 5, SMALLEST_PART, SMALLEST_PART + 1, LARGE])
def test_the_tag_of_a_file_is_the_one_that_the_store_gives_it(store: Store, tmp_path: Path, size: int) -> None:
    if store.name == "s3rver" and size > SMALLEST_PART:
        pytest.skip("s3rver tags a file in parts by the MD5 of all of it, as no S3 does")
    objects, file = client(store.url), tmp_path / "file"
    file.write_bytes((os.urandom(1024) * (size // 1024 + 1))[:size])
    tag = objects.upload(f"tagged/{size}", file).tag
    found = objects.get(f"tagged/{size}", LARGE)
    assert found is not None
    assert (tag, len(found.body)) == (found.tag, size)


def test_the_tag_counts_the_parts_that_an_earlier_try_left(store: Store, proxy: StoreProxy, large: Path) -> None:
    if store.name == "s3rver":
        pytest.skip("s3rver keeps no list of unfinished uploads")
    proxy.fault = lambda method, path: 403 if method == "PUT" and "partNumber=3" in path else None
    objects = client(proxy.url)
    with pytest.raises(Refused):
        objects.upload("tag-half", large)
    proxy.fault = lambda _method, _path: None
    tag = objects.upload("tag-half", large).tag
    assert tag == (objects.get("tag-half", LARGE) or Fetched(b"", "")).tag


def test_an_upload_goes_on_with_the_parts_that_are_there(store: Store, proxy: StoreProxy, large: Path) -> None:
    if store.name == "s3rver":
        pytest.skip("s3rver keeps no list of unfinished uploads")
    proxy.fault = lambda method, path: 403 if method == "PUT" and "partNumber=3" in path else None
    objects = client(proxy.url)
    with pytest.raises(Refused):
        objects.upload("half", large)
    proxy.fault = lambda _method, _path: None
    proxy.asked.clear()
    assert objects.upload("half", large).sha256 == sha256(large)
    assert [path.partition("&")[0] for method, path in proxy.asked if method == "PUT"] == ["/runs/half?partNumber=3"]


def test_a_stale_upload_is_dropped(store: Store, proxy: StoreProxy, large: Path) -> None:
    if store.name == "s3rver":
        pytest.skip("s3rver keeps no list of unfinished uploads")
    objects = client(proxy.url)
    proxy.fault = lambda method, path: 403 if "partNumber=2" in path and method == "PUT" else None
    with pytest.raises(Refused):
        objects.upload("stale/one", large)
    seen: list[str] = []

    def is_stale(key: str, _age: float) -> bool:
        # moto says of every upload that it was begun in 2010.
        seen.append(key)
        return len(seen) == 2

    objects.abort_stale("stale/", is_stale)
    assert (seen, proxy.count("DELETE")) == (["stale/one"], 0)
    objects.abort_stale("stale/", is_stale)
    assert proxy.count("DELETE") == 1
    objects.abort_stale("stale/", is_stale)
    assert seen == ["stale/one", "stale/one"]


def test_the_age_of_an_upload_is_read() -> None:
    text = "<U><Upload><Key>a+b</Key><UploadId>i</UploadId><Initiated>2026-11-22T19:33:00.000Z</Initiated></Upload></U>"
    (found,) = s3_answers.uploads(text)
    assert (found.key, found.id) == ("a+b", "i")
    assert found.begun == dt.datetime(2026, 11, 22, 19, 33, tzinfo=dt.UTC).timestamp()
    (encoded,) = s3_answers.uploads(f"<EncodingType>url</EncodingType>{text}")
    assert encoded.key == "a b"


def test_a_download_goes_on_where_the_connection_was_cut(proxy: StoreProxy, large: Path, tmp_path: Path) -> None:
    objects = client(proxy.url)
    objects.upload("cut", large)
    proxy.cut_after = 5_000_000
    assert objects.download("cut", tmp_path / "back", LARGE) == sha256(large)
    assert proxy.count("GET", "/runs/cut") == 2


def test_a_download_goes_on_where_an_earlier_process_stopped(proxy: StoreProxy, large: Path, tmp_path: Path) -> None:
    objects = client(proxy.url)
    objects.upload("part", large)
    (tmp_path / "back").write_bytes(large.read_bytes()[:7_000_000])
    assert objects.download("part", tmp_path / "back", LARGE) == sha256(large)
    (tmp_path / "back").write_bytes(large.read_bytes() + b"more")
    assert objects.download("part", tmp_path / "back", LARGE) == sha256(large)


def test_what_passes_is_tried_again(proxy: StoreProxy, large: Path) -> None:
    objects = client(proxy.url)
    for status in (503, 500, CUT):
        proxy.once(status, "PUT", times=3)
        assert objects.put("again", b"{}")
        proxy.once(status, "PUT", "partNumber=2", times=2)
        assert objects.upload("again-large", large).sha256 == sha256(large)
    proxy.fault = lambda _method, _path: 503
    proxy.asked.clear()
    with pytest.raises(Unreachable, match="503 Weather: a fault of the test"):
        objects.put("never", b"{}")
    assert len(proxy.asked) == s3_client.TRIES


def test_an_upload_whose_completion_was_not_answered_is_not_sent_again(proxy: StoreProxy, large: Path) -> None:
    objects = client(proxy.url)
    faults: list[int | str] = [404, LOST]
    proxy.fault = lambda method, path: faults.pop() if faults and method == "POST" and "uploadId=" in path else None
    assert objects.upload("completed", large).sha256 == sha256(large)
    assert proxy.count("POST", "uploadId=") == 2
    assert proxy.count("PUT", "partNumber=") == 3


def test_a_refusal_is_said_once_and_not_tried_again(proxy: StoreProxy, large: Path, tmp_path: Path) -> None:
    objects = client(proxy.url)
    objects.upload("refused", large)
    proxy.fault = lambda _method, _path: 403
    proxy.asked.clear()
    with pytest.raises(Refused, match="403"):
        objects.put("refused", b"{}")
    with pytest.raises(Refused, match="403"):
        objects.download("refused", tmp_path / "back", LARGE)
    assert len(proxy.asked) == 2


def test_a_wrong_secret_is_refused(store: Store, large: Path) -> None:
    if store.name == "moto":
        pytest.skip("moto takes any signature")
    objects = client(store.url, secret="wrong")
    with pytest.raises(Refused, match="403 SignatureDoesNotMatch"):
        objects.put("wrong", b"{}")
    with pytest.raises(StoreFailed):
        objects.upload("wrong", large)


@pytest.mark.parametrize("off", [3_600.0, -86_400.0])
def test_a_clock_that_is_off_takes_the_stores_time(store: Store, proxy: StoreProxy, off: float) -> None:
    if store.name == "moto":
        pytest.skip("moto takes any time")
    objects = client(proxy.url, OddClock(off))
    assert objects.put("skewed", b"{}")
    assert objects.put("skewed", b"{}")
    assert len(proxy.asked) == 3


def test_conditions_are_kept(store: Store) -> None:
    objects = client(store.url)
    notes = BucketNotes(objects, "conditions")
    assert notes.write("note", {"version": 1, "n": 1}, is_new=True)
    assert not notes.write("note", {"version": 1, "n": 2}, is_new=True)
    found = notes.read("note")
    assert found is not None
    assert notes.write("note", {"version": 1, "n": 3}, tag=found[1])
    assert not notes.write("note", {"version": 1, "n": 4}, tag=found[1])
    assert (notes.read("note") or ({},))[0].get("n") == 3
    if store.name == "moto":
        # s3rver takes conditions and does not keep them: there a note is looked at before it is written.
        assert not objects.put("conditions/note", b"{}", is_new=True)
        assert not objects.put("conditions/note", b"{}", tag=found[1])
        assert not objects.put("conditions/none", b"{}", tag=found[1])


@pytest.mark.parametrize("status", [400, 501])
def test_a_store_that_refuses_conditions_is_written_after_a_look(proxy: StoreProxy, status: int) -> None:
    notes = BucketNotes(client(proxy.url), f"plain-{status}")
    proxy.once(status, "PUT")
    assert notes.write("note", {"version": 1}, is_new=True)
    proxy.once(status, "PUT")
    assert not notes.write("note", {"version": 1}, is_new=True)


def test_a_file_that_goes_or_shrinks_fails_as_the_disk(
    store: Store, large: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = client(store.url)
    with pytest.raises(DiskFailed):
        objects.upload("gone", tmp_path / "nowhere")
    whole = s3_multipart.pieces(large, 0, LARGE)
    next(whole)
    os.truncate(large, SMALLEST_PART + 10)
    with pytest.raises(DiskFailed, match="shorter"):
        list(whole)
    real, s3_size = s3_objects._size, LARGE
    monkeypatch.setattr(s3_objects, "_size", lambda _file: s3_size)
    with pytest.raises(DiskFailed, match="shorter"):
        objects.upload("shrunk", large)
    monkeypatch.setattr(s3_objects, "_size", real)
    assert objects.get("shrunk", 10) is None
    objects.put("whole", b"1234567890")
    with pytest.raises(DiskFailed):
        objects.download("whole", tmp_path / "no-folder" / "file", 10)


@pytest.mark.parametrize("is_trusted", [True, False])
def test_a_certificate_is_verified(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_trusted: bool
) -> None:
    certificate = tmp_path / "one.pem"
    certificate.write_bytes(self_signed())
    if is_trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with store_proxy.before(store, certificate) as it:
        objects = client(it.url)
        expected = contextlib.nullcontext() if is_trusted else pytest.raises(Unreachable, match="CERTIFICATE_VERIFY")
        with expected:
            assert objects.put("tls", b"{}")


def self_signed() -> bytes:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = dt.datetime.now(dt.UTC)
    alternative = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(alternative, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    return key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain) + certificate.public_bytes(pem)


def test_a_listing_is_bounded(store: Store) -> None:
    objects = client(store.url)
    for number in range(5):
        objects.put(f"many/{number}", b"")
    assert len(objects.list("many/", 3)) == 3


@pytest.mark.parametrize(("size", "part"), [(1, 8), (72_000, 8), (100_000, 12), (5_000_000, 556)])
def test_a_file_has_at_most_nine_thousand_parts(size: int, part: int) -> None:
    mebibyte = 1024 * 1024
    assert part_size(size * mebibyte) == part * mebibyte
    assert size <= 9_000 * part


def test_an_endpoint_that_is_no_address_is_refused() -> None:
    with pytest.raises(Refused, match="no http or https address"):
        client("ftp://127.0.0.1")
