"""The prelude in dash and in busybox, with programs that images have or lack; the guard is fetched over real HTTP."""

import contextlib
import hashlib
import http.server
import os
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from agent.domain.work import guard_prelude
from agent.markets.vast.rules import MOST_SCRIPT

GUARD = (
    b"import os, sys\nprint('guard', *sys.argv, os.environ['GPUBID_GUARD_HOME'], os.environ['GPUBID_BUCKET_SECRET'])\n"
)
DIGEST = hashlib.sha256(GUARD).hexdigest()
FAST = {"patience_seconds": 2, "short_patience_seconds": 1, "pause_seconds": 1}
SHELLS = [["dash"], ["busybox", "sh"]]
MISSING = [shell[0] for shell in SHELLS if shutil.which(shell[0]) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed here: {', '.join(MISSING)}")
TOOLS = ("sh", "dash", "busybox", "env", "date", "sleep", "mkdir", "mv", "rm", "echo", "printf", "true")


class Store(http.server.ThreadingHTTPServer):
    """Serves one file to who asks with the right signature, and counts the requests."""

    def __init__(self) -> None:
        self.content, self.asked = GUARD, 0
        super().__init__(("127.0.0.1", 0), _Answer)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/guard.pyz?X-Amz-Signature=s1gned"


class _Answer(http.server.BaseHTTPRequestHandler):
    server: Store

    def do_GET(self) -> None:
        self.server.asked += 1
        is_signed = self.path.endswith("X-Amz-Signature=s1gned")
        self.send_response(200 if is_signed else 403)
        self.end_headers()
        self.wfile.write(self.server.content if is_signed else b"<Error/>")

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def store() -> Iterator[Store]:
    with Store() as served:
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        yield served
        served.shutdown()
        thread.join()


@pytest.fixture
def box(tmp_path: Path) -> Path:
    """Make a folder of programs without python3, curl and wget."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in TOOLS:
        found = shutil.which(name)
        if found is not None:
            (folder / name).symlink_to(found)
    return folder


def with_python(box: Path, *more: str) -> Path:
    (box / "python3").symlink_to(sys.executable)
    for name in more:
        (box / name).symlink_to(shutil.which(name) or name)
    return box


def ran(
    shell: list[str], box: Path, command: list[str], *, exists: bool = False, **variables: str
) -> subprocess.CompletedProcess[str]:
    known = f'{{"version":1,"manifest_exists":{str(exists).lower()}}}'
    environment: Mapping[str, str] = {
        "PATH": str(box),
        "HOME": str(box.parent),
        "GPUBID_GUARD": known,
        "GPUBID_GUARD_HOME": str(box.parent / "kept"),
        "GPUBID_GUARD_SHA256": DIGEST,
        "GPUBID_BUCKET_KEY_ID": "id",
        "GPUBID_BUCKET_SECRET": "s3cret",
        **variables,
    }
    words = [*shell, "-c", guard_prelude.text(**FAST), "gpubid-guard", *command]
    words[0] = shutil.which(shell[0]) or shell[0]
    return subprocess.run(
        words, env=environment, cwd=box.parent, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_it_becomes_the_guard_and_keeps_it_for_the_next_start(shell: list[str], box: Path, store: Store) -> None:
    first = ran(shell, with_python(box), ["python", "a b", "$HOME"], GPUBID_GUARD_URL=store.url)
    kept = box.parent / "kept/guard.pyz"
    said = f"guard {kept} -- python a b $HOME {box.parent}/kept s3cret\n"
    assert (first.returncode, first.stdout, first.stderr) == (0, said, "")
    again = ran(shell, box, ["python", "a b", "$HOME"], GPUBID_GUARD_URL="http://127.0.0.1:9/expired")
    assert again.stdout == said
    assert store.asked == 1
    assert sorted(path.name for path in kept.parent.iterdir()) == [".writable", "guard.pyz"]


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_without_python_new_work_runs_bare_and_begun_work_does_not_start(shell: list[str], box: Path) -> None:
    work = ["sh", "-c", 'echo "work ${GPUBID_BUCKET_SECRET:-no secret}"; exit 3']
    bare = ran(shell, box, work, GPUBID_GUARD_URL="http://127.0.0.1:9/x")
    assert (bare.returncode, bare.stdout) == (3, "gpubid-guard: bare: no python3\nwork no secret\n")
    failed = ran(shell, box, work, exists=True, GPUBID_GUARD_URL="http://127.0.0.1:9/x")
    assert (failed.returncode, failed.stdout) == (guard_prelude.EXIT_CODE, "gpubid-guard: cannot start: no python3\n")


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
@pytest.mark.parametrize("trouble", ["away", "expired", "forged"])
def test_what_cannot_be_fetched_whole_is_never_run(shell: list[str], trouble: str, box: Path, store: Store) -> None:
    url = {"away": "http://127.0.0.1:9/x", "expired": store.url[:-1], "forged": store.url}[trouble]
    store.content = GUARD + b"print('forged')" if trouble == "forged" else GUARD
    with_python(box, "curl", "wget")
    work = ["sh", "-c", "echo work"]
    bare = ran(shell, box, work, GPUBID_GUARD_URL=url)
    assert bare.stdout == "gpubid-guard: bare: the guard could not be fetched from the bucket\nwork\n"
    failed = ran(shell, box, work, exists=True, GPUBID_GUARD_URL=url)
    said = "gpubid-guard: cannot start: the guard could not be fetched from the bucket\n"
    assert (failed.returncode, failed.stdout) == (guard_prelude.EXIT_CODE, said)
    assert [path.name for path in (box.parent / "kept").iterdir()] == [".writable"]


@pytest.mark.parametrize("tool", ["curl", "wget"])
def test_where_python_cannot_fetch_another_tool_does_and_the_address_is_no_argument(
    tool: str, box: Path, store: Store
) -> None:
    real, seen = shutil.which(tool), box.parent / "arguments"
    (box / "python3").write_text(
        f'#!{sys.executable}\nimport os, sys\n"urllib" in " ".join(sys.argv) and sys.exit(1)\n'
        f"os.execv({sys.executable!r}, sys.argv)\n"
    )
    (box / tool).write_text(f'#!/bin/sh\necho "$@" >>{shlex.quote(str(seen))}\nexec {real} "$@"\n')
    for name in ("python3", tool):
        (box / name).chmod(0o755)
    done = ran(["dash"], box, ["true"], GPUBID_GUARD_URL=store.url)
    assert done.stdout.startswith("guard ")
    assert "s1gned" not in seen.read_text()


def test_a_copy_with_another_digest_is_replaced(box: Path, store: Store) -> None:
    kept = box.parent / "kept"
    kept.mkdir()
    (kept / "guard.pyz").write_bytes(b"print('older')")
    done = ran(["dash"], with_python(box), ["true"], GPUBID_GUARD_URL=store.url)
    assert done.stdout.startswith("guard ")
    assert (kept / "guard.pyz").read_bytes() == GUARD


def test_a_copy_in_the_image_needs_no_bucket_and_none_is_missed_without_one(box: Path) -> None:
    with_python(box)
    bare = ran(["dash"], box, ["true"])
    assert bare.stdout == "gpubid-guard: bare: no copy in the image, and no bucket to fetch it from\n"
    baked = box.parent / ".gpubid-guard"
    baked.mkdir()
    (baked / "guard.pyz").write_bytes(GUARD)
    done = ran(["dash"], box, ["true"])
    assert done.stdout.startswith(f"guard {baked}/guard.pyz -- true")


def test_an_old_python_counts_as_none(box: Path) -> None:
    (box / "python3").write_text("#!/bin/sh\nexit 1\n")
    (box / "python3").chmod(0o755)
    bare = ran(["dash"], box, ["sh", "-c", "echo work"], GPUBID_GUARD_URL="http://127.0.0.1:9/x")
    assert bare.stdout == "gpubid-guard: bare: python3 is older than 3.8, or not whole\nwork\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_on_a_read_only_root_it_uses_what_can_be_written(shell: list[str], box: Path, store: Store) -> None:
    """The copy is kept in the work's own folder where the disk of the image takes nothing."""
    with_python(box)
    writable = box.parent / "disk"
    writable.mkdir()
    script = (
        f"mount --bind {writable} {writable} && mount --rbind / / && mount -o remount,ro,bind / && "
        f"cd {writable} && ! touch /written && exec env -i "
        f'PATH={box} HOME=/ GPUBID_GUARD="{{}}" GPUBID_GUARD_SHA256={DIGEST} GPUBID_BUCKET_SECRET=s '
        f"GPUBID_GUARD_URL='{store.url}' {shlex.join(shell)} -c {shlex.quote(guard_prelude.text(**FAST))} g true"
    )
    words = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    if "unshare failed" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"no mounts here: {done.stderr.splitlines()[0]}")
    assert done.stdout.startswith("guard "), done
    assert "/guard.pyz -- true" in done.stdout


def test_a_command_and_a_script_keep_their_words() -> None:
    words = shlex.split(guard_prelude.command("python train.py --name 'a b'"))
    assert words == ["sh", "-c", guard_prelude.text(), "gpubid-guard", "python", "train.py", "--name", "a b"]
    with contextlib.suppress(ValueError):
        guard_prelude.command("'")
        pytest.fail("an open quote passed")
    started = shlex.split(guard_prelude.script("echo 'one'\necho two"))
    assert started[-2:] == ["-c", "echo 'one'\necho two"]
    assert len(guard_prelude.script("")) < MOST_SCRIPT * 0.65
