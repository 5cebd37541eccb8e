#!/usr/bin/env bash
# Builds gpubid_VERSION_ARCH.deb: the program in a virtual environment of its own, on Debian's Python.
#   deploy/debian/build.sh [--version VERSION] [--out FOLDER] [--loose]
# --loose packs in a second instead of a minute, for a package that is installed once and thrown away.
# Needs uv, hatchling and mkdocs in .venv (`make setup`), dpkg-deb, and Debian's python3.
set -euo pipefail
cd "$(dirname "$0")/../.."
source=$PWD debian=$PWD/deploy/debian
bin=${GPUBID_BIN:-$source/.venv/bin}
version=$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' agent/__init__.py) out=dist packed=(-Zxz)
while [ $# -gt 0 ]; do
  case $1 in
    --version) version=$2 ;;
    --out) out=$2 ;;
    --loose) packed=(-Zgzip -z1); shift; continue ;;
    *) echo "usage: $0 [--version VERSION] [--out FOLDER] [--loose]" >&2; exit 2 ;;
  esac
  shift 2
done

python=/usr/bin/python3
[ -x "$python" ] || { echo "Debian's python3 is missing: apt-get install python3" >&2; exit 1; }
minor=$("$python" -c 'import sys; print(sys.version_info.minor)')
[ "$minor" -ge 11 ] || { echo "Debian's python3 is 3.$minor, gpubid needs 3.11 or newer" >&2; exit 1; }
arch=$(dpkg --print-architecture)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y pyproject.toml)}
export SOURCE_DATE_EPOCH

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
root=$stage/root home=/usr/lib/gpubid
tree=$root$home

# The wheel is built from a copy, so that another version can be written into it.
mkdir "$stage/source"
cp -a agent strategies migrations deploy agent.toml pyproject.toml README.md LICENSE "$stage/source"
sed -i "s/^__version__ = .*/__version__ = \"$version\"/" "$stage/source/agent/__init__.py"
(cd "$stage/source" && "$bin/python" -m hatchling build --target wheel --directory "$stage/wheel" >/dev/null 2>&1)

uv() { "$bin/uv" --quiet --no-config "$@"; }
uv venv --relocatable --no-project --python "$python" "$tree"
uv pip install --python "$tree/bin/python" --link-mode copy --no-deps --require-hashes -r "$debian/requirements.lock"
uv pip install --python "$tree/bin/python" --link-mode copy --no-deps "$stage"/wheel/*.whl
rm -rf "$tree"/bin/activate* "$tree/bin/deactivate.bat" "$tree/bin/pydoc.bat" "$tree/.gitignore" "$tree/.lock" \
  "$tree/CACHEDIR.TAG"
find "$tree/bin" -type f ! -name gpubid -delete
find "$tree" -name direct_url.json -delete

# The schema that editors are pointed to lies elsewhere than in a checkout.
sed -i "1s|deploy/schema|$home/share/gpubid/deploy/schema|" "$tree/share/gpubid/agent.toml"
"$tree/bin/python" "$debian/copyright.py" "$tree" "$source/LICENSE" >"$stage/copyright"
site=$(echo "$tree"/lib/python3.*/site-packages)
find "$site" -name __pycache__ -prune -exec rm -rf {} +
# A tenth of everything, and nobody runs them on a box.
find "$site/numpy" -name tests -prune -exec rm -rf {} +
# Unchecked: nobody may write there later, and a file's time is not what was compiled.
"$python" -m compileall -q -j 0 -s "$root" -p / --invalidation-mode unchecked-hash "$site" >/dev/null

install -D -m 755 "$debian/gpubid.sh" "$root/usr/bin/gpubid"
install -D -m 644 "$tree/share/gpubid/agent.toml" "$root/etc/gpubid/agent.toml"
install -D -m 644 -t "$root/usr/lib/systemd/system" deploy/systemd/*.service deploy/systemd/*.timer
install -D -m 644 deploy/systemd/gpubid.sysusers "$root/usr/lib/sysusers.d/gpubid.conf"
{
  printf '\nBundled in /usr/share/doc/gpubid/handbook: the theme mkdocs-material (MIT, below), which brings lunr.js (MIT) and\n'
  printf 'icons of Material Design Icons (Apache-2.0):\n\n'
  cat "$("$bin/python" -c 'import importlib.metadata as found; \
print(found.distribution("mkdocs-material").locate_file("mkdocs_material-%s.dist-info/licenses/LICENSE" \
  % found.version("mkdocs-material")))')"
} >>"$stage/copyright"
install -D -m 644 -t "$root/usr/share/doc/gpubid" README.md "$stage/copyright"
NO_MKDOCS_2_WARNING=1 "$bin/python" -B -m mkdocs --quiet build --strict --config-file deploy/handbook/mkdocs.yml \
  --site-dir "$root/usr/share/doc/gpubid/handbook"
gzip -9nc CHANGELOG.md >"$stage/changelog.gz"
install -D -m 644 "$stage/changelog.gz" "$root/usr/share/doc/gpubid/changelog.gz"
install -d "$root/usr/share/bash-completion/completions"
_GPUBID_COMPLETE=source_bash "$tree/bin/python" -IB "$tree/bin/gpubid" \
  >"$root/usr/share/bash-completion/completions/gpubid"

if grep -rqF "$stage" "$root" 2>/dev/null; then
  echo "the package would hold paths of the place where it was built:" >&2
  grep -rlF "$stage" "$root" >&2
  exit 1
fi

install -d "$root/DEBIAN"
install -m 755 -t "$root/DEBIAN" "$debian/postinst" "$debian/prerm" "$debian/postrm"
install -m 644 "$debian/conffiles" "$root/DEBIAN/conffiles"
sed -e "s/@VERSION@/$version/" -e "s/@ARCHITECTURE@/$arch/" -e "s/@MINOR@/$minor/" -e "s/@NEXT@/$((minor + 1))/" \
  -e "s/@SIZE@/$(du -sk --exclude=DEBIAN "$root" | cut -f1)/" "$debian/control" >"$root/DEBIAN/control"
(cd "$root" && find . -type f ! -path './DEBIAN/*' ! -path './etc/*' -printf '%P\0' | sort -z | xargs -0 md5sum) \
  >"$root/DEBIAN/md5sums"
chmod -R u=rwX,go=rX "$root"
find "$root" -newermt "@$SOURCE_DATE_EPOCH" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +

mkdir -p "$out"
package=$out/gpubid_${version}_$arch.deb
dpkg-deb --root-owner-group "${packed[@]}" --build "$root" "$package" >/dev/null
echo "$package"
