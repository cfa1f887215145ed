#!/usr/bin/env bash
# Makes sure that the tests of the page find a Chromium, and that Playwright, which drives it, starts. Quick when both are there.
# FERRY_CHROMIUM names a Chromium that is not on PATH.
set -euo pipefail
cd "$(dirname "$0")/.."
. setup/apt.sh

fail() { printf 'browser: %s\n' "$*" >&2; exit 1; }
find_chromium() { command -v "${FERRY_CHROMIUM:-}" || command -v chromium || command -v chromium-browser || command -v google-chrome; }
# Why a program does not start, in a line: mostly the loader names a library. Nothing where it starts.
trouble() {
    local said
    said=$("$1" --version 2>&1 >/dev/null) || printf '%s\n' "${said:-it ends with an error}" | head -n 1
}

if [ -n "${FERRY_CHROMIUM:-}" ] && ! [ -x "$FERRY_CHROMIUM" ]; then
    fail "FERRY_CHROMIUM=$FERRY_CHROMIUM is no program"
fi
if ! find_chromium >/dev/null; then
    printf 'browser: installing chromium\n'
    apt_install chromium >/dev/null || true
    find_chromium >/dev/null || fail "the tests of the page need Chromium, which could not be installed: that takes apt-get, and root or sudo." \
        "Install it (Debian: apt-get install chromium), or set FERRY_CHROMIUM=/path/to/chromium"
fi
driver=$(.venv/bin/python -c 'from playwright._impl._driver import compute_driver_executable; print(compute_driver_executable()[0])')
if [ -n "$(trouble "$driver")" ]; then
    printf 'browser: installing libatomic1\n'
    apt_install libatomic1 >/dev/null || true
fi
for program in "$driver" "$(find_chromium)"; do
    said=$(trouble "$program")
    [ -z "$said" ] || fail "$program does not start: $said. Install what it lacks (Debian: apt-get install libatomic1 chromium)"
done
