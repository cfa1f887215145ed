#!/usr/bin/env bash
# Installs what Ferry needs into .venv, and Java if it is missing. Quick when everything is there already. It
# names what it cannot install before it installs anything.
set -euo pipefail
cd "$(dirname "$0")/.."
. setup/apt.sh

say() { printf 'setup: %s\n' "$*"; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }

find_python() {
    for candidate in "${PYTHON:-}" python3.11 python3.12 python3.13 python3; do
        if [ -n "$candidate" ] && command -v "$candidate" >/dev/null &&
            "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    fail "Python 3.11, 3.12 or 3.13 is needed (Debian, Ubuntu: apt-get install python3 python3-venv), or set PYTHON=/path/to/python"
}

java_is_new_enough() {
    local major
    major=$("${JAVA_HOME:+$JAVA_HOME/bin/}java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)
    [ -n "$major" ] && [ "$major" -ge 17 ]
}

[ -x .venv/bin/python ] || python=$(find_python)
if ! java_is_new_enough; then
    [ -z "${JAVA_HOME:-}" ] || fail "JAVA_HOME=$JAVA_HOME has no Java 17 or newer: set it to one, or unset it"
    say "installing Java 17"
    apt_install openjdk-17-jre-headless >/dev/null ||
        fail "Java 17 or newer is needed (Debian, Ubuntu: openjdk-17-jre-headless) and could not be installed: that takes apt-get, and root or sudo"
    java_is_new_enough || fail "the java on PATH is older than 17: put a newer one first, or set JAVA_HOME"
fi

stamp=.venv/ferry-setup
wanted=$(cat requirements-dev.txt pyproject.toml setup/install.sh | sha256sum | cut -d' ' -f1)
if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ] || ! [ -x .venv/bin/ferry ]; then
    if ! [ -x .venv/bin/python ]; then
        say "making .venv with $python"
        if ! "$python" -m venv .venv 2>/dev/null; then
            rm -rf .venv
            apt_install python3-venv >/dev/null || fail "python's venv module is missing: install python3-venv"
            "$python" -m venv .venv
        fi
    fi
    say "installing the locked requirements"
    # A service's user may have no home to write to.
    mkdir -p "${UV_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/uv}" 2>/dev/null || export UV_NO_CACHE=1
    .venv/bin/python -m pip install --quiet --disable-pip-version-check uv
    # Compiled now, or every process would compile what it imports where PYTHONDONTWRITEBYTECODE is set.
    # The lock has everything: uv refuses the constraints of pyproject.toml beside hashes.
    .venv/bin/uv pip install --no-config --quiet --compile-bytecode --python .venv/bin/python --no-deps --require-hashes -r requirements-dev.txt
    .venv/bin/uv pip install --quiet --python .venv/bin/python --no-deps -e .
    .venv/bin/python -m compileall -q include
    printf '%s\n' "$wanted" >"$stamp"
fi

say "ready: .venv/bin/ferry --help"
