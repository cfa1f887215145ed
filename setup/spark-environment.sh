#!/usr/bin/env bash
# spark-environment.sh ARCHIVE [PYTHON]: a virtual environment with Ferry and what its Spark tasks import, in the locked versions, as a .tar.gz.
# It holds no interpreter: the machines of the executors need PYTHON (default: the one of .venv) at the same path. From one commit come the
# same bytes, wherever and whenever. Needs `make setup`.
set -euo pipefail
umask 022
source=$(cd "$(dirname "$0")/.." && pwd)
archive=$(realpath -m "$1")
tools=$source/.venv/bin
python=$(realpath "${2:-$tools/python}")
SOURCE_DATE_EPOCH=$(git -C "$source" log -1 --format=%ct)
export SOURCE_DATE_EPOCH

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$source"
said=$("$tools/python" -m hatchling build -t wheel -d "$scratch/wheels" 2>&1) || { printf '%s\n' "$said" >&2; exit 1; }
# Programs of a relocatable environment find its Python themselves: no file holds the path of the scratch folder.
"$tools/uv" venv --no-config --quiet --relocatable --python "$python" "$scratch/environment"
install() { "$tools/uv" pip install --no-config --quiet --link-mode copy --python "$scratch/environment/bin/python" --no-deps "$@"; }
# Not the newest wheels that this machine can load: executors may have an older system.
install --no-build --require-hashes --python-platform "$(uname -m)-manylinux_2_28" -r requirements-executors.txt
install --no-index --find-links "$scratch/wheels" kafka-ferry
# Whoever passes an LGPL library on owes its source (docs/licences.md).
sed -n '/^crc32c==/,/^    # via/p' requirements-executors.txt >"$scratch/with-source.txt"
"$tools/python" -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes --no-binary :all: \
    --dest "$scratch/environment/share/source" -r "$scratch/with-source.txt"

# What would tell one build from another: scripts with the path of the scratch folder, the versions of uv and of the interpreter, times.
rm -f "$scratch"/environment/{.lock,.gitignore,CACHEDIR.TAG,bin/activate*,bin/deactivate*,bin/pydoc*}
sed -i '/^uv = /d; /^version_info = /d; /^prompt = /d' "$scratch/environment/pyvenv.cfg"
(cd "$scratch"/environment/lib/*/site-packages/kafka_ferry-*.dist-info && rm -f uv_cache.json && sed -i '/uv_cache.json/d' RECORD)
mkdir -p "$(dirname "$archive")"
tar -C "$scratch/environment" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -cf - . | gzip -n -9 >"$archive.new"
mv "$archive.new" "$archive"
printf '%s\n' "$archive"
