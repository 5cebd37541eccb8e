"""The start of a guarded container: a short `sh` text that downloads the guard, checks it and replaces itself by it.

Invariants:
1. Work without a checkpoint in the bucket always starts. If no guard can be downloaded, it runs bare, and a line says
   so.
2. Work with a checkpoint never starts bare, since it would begin again from nothing. Its start fails with `EXIT_CODE`.
3. Only a file with the digest in GPUBID_GUARD_SHA256 runs. No key and no address is among the arguments.
"""

import shlex

CANNOT_START = "gpubid-guard: cannot start: "
"""The first words of the last line of a start that failed because it had no guard."""
BARE = "gpubid-guard: bare: "
"""The first words of the line that says that the work runs without the guard."""
EXIT_CODE = 78
"""EX_CONFIG of sysexits.h: the fault is neither the host's nor the work's."""
PATIENCE_SECONDS = 600
"""How long a start waits for the guard if a checkpoint exists."""
SHORT_PATIENCE_SECONDS = 30
"""How long it waits if none exists."""
PAUSE_SECONDS = 10

_TEXT = r"""
bare() {
  why=$1; shift
  case $GPUBID_GUARD in *'"manifest_exists":true'*) echo "CANNOT_START$why"; exit EXIT_CODE;; esac
  echo "BARE_LINE$why"
  unset GPUBID_BUCKET_KEY_ID GPUBID_BUCKET_SECRET GPUBID_BUCKET_TOKEN GPUBID_GUARD_URL
  exec "$@"
}
good() {
  [ -f "$1" ] && python3 -c 'import hashlib, os, sys
with open(sys.argv[1], "rb") as own:
    sys.exit(hashlib.sha256(own.read(1 << 20)).hexdigest() != os.environ["GPUBID_GUARD_SHA256"])' "$1" 2>/dev/null
}
fetch() {
  python3 -c 'import os, signal, sys, urllib.request
signal.alarm(30)
with urllib.request.urlopen(os.environ["GPUBID_GUARD_URL"], timeout=20) as answer, open(sys.argv[1], "wb") as file:
    file.write(answer.read(1 << 20))' "$1" 2>/dev/null && return
  printf 'url = "%s"\n' "$GPUBID_GUARD_URL" | curl -fsS -m 30 -o "$1" -K - 2>/dev/null && return
  printf '%s\n' "$GPUBID_GUARD_URL" | wget -q -T 30 -O "$1" -i - 2>/dev/null
}
command -v python3 >/dev/null 2>&1 || bare "no python3" "$@"
python3 -c 'import sys, zlib; sys.exit(sys.version_info < (3, 8))' 2>/dev/null ||
  bare "python3 is older than 3.8, or not whole" "$@"
home= file=
for dir in "$GPUBID_GUARD_HOME" /var/lib/gpubid-guard "$HOME/.gpubid-guard" \
  "$PWD/.gpubid-guard" /tmp/gpubid-guard /dev/shm/gpubid-guard; do
  [ -n "$dir" ] || continue
  [ -z "$file" ] && good "$dir/guard.pyz" && file=$dir/guard.pyz
  [ -z "$home" ] && mkdir -p "$dir" 2>/dev/null &&
    (: >"$dir/.writable") 2>/dev/null && home=$dir
done
[ -n "$file$GPUBID_GUARD_URL" ] || bare "no copy in the image, and no bucket to fetch it from" "$@"
[ -n "$file$home" ] || bare "no folder can be written to" "$@"
tries=0 most=SHORT_TRIES
case $GPUBID_GUARD in *'"manifest_exists":true'*) most=TRIES;; esac
end=$(( $(date +%s) + most * PAUSE ))
while [ -z "$file" ]; do
  if fetch "$home/new.$$" && good "$home/new.$$"; then
    mv -f "$home/new.$$" "$home/guard.pyz" && file=$home/guard.pyz && break
  fi
  rm -f "$home/new.$$"
  tries=$((tries + 1))
  if [ $tries -ge $most ] || [ $(date +%s) -ge $end ]; then
    bare "the guard could not be fetched from the bucket" "$@"
  fi
  sleep PAUSE
done
export GPUBID_GUARD_HOME="$home"
exec python3 "$file" -- "$@"
"""


def text(
    patience_seconds: int = PATIENCE_SECONDS,
    short_patience_seconds: int = SHORT_PATIENCE_SECONDS,
    pause_seconds: int = PAUSE_SECONDS,
) -> str:
    """Return the prelude; its arguments are the words of the work's own command."""
    lines = (
        _TEXT.replace("EXIT_CODE", str(EXIT_CODE))
        .replace("CANNOT_START", CANNOT_START)
        .replace("BARE_LINE", BARE)
        .replace("SHORT_TRIES", str(max(short_patience_seconds // pause_seconds, 1)))
    )
    return lines.replace("TRIES", str(max(patience_seconds // pause_seconds, 1))).replace("PAUSE", str(pause_seconds))


def command(words: str) -> str:
    """Return the command that starts the guard with the work's own command.

    Raises:
        ValueError: the command cannot be split into words.
    """
    return shlex.join(["sh", "-c", text(), "gpubid-guard", *shlex.split(words)])


def script(onstart: str) -> str:
    """Return the start script that starts the guard with the work's own script."""
    return f'sh -c {shlex.quote(text())} gpubid-guard "$(command -v bash || echo sh)" -c {shlex.quote(onstart)}'
