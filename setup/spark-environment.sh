#!/usr/bin/env bash
# spark-environment.sh ARCHIVE [PYTHON]: a virtual environment with Ferry and what its Spark tasks import, in the locked versions, as a .tar.gz.
# It holds no interpreter: the machines of the executors need PYTHON (default: the one of .venv) at the same path.
set -euo pipefail
source=$(cd "$(dirname "$0")/.." && pwd)
archive=$(realpath -m "$1")
python=$(realpath "${2:-$source/.venv/bin/python}")
uv=$source/.venv/bin/uv
[ -x "$uv" ] || uv=uv

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$python" -m venv --without-pip "$scratch/environment"
target=$scratch/environment/bin/python
"$uv" pip install --quiet --link-mode copy --python "$target" --constraint "$source/requirements.txt" --group "$source/pyproject.toml:executors"
"$uv" pip install --quiet --link-mode copy --python "$target" --no-deps "$source"
mkdir -p "$(dirname "$archive")"
tar -C "$scratch/environment" -czf "$archive.new" .
mv "$archive.new" "$archive"
printf '%s\n' "$archive"
