#!/usr/bin/env bash
# Makes sure that a Chromium is at hand for the tests of the page. Quick when there is one. FERRY_CHROMIUM names one that is not on PATH.
set -euo pipefail
cd "$(dirname "$0")/.."
. setup/apt.sh

fail() { printf 'browser: %s\n' "$*" >&2; exit 1; }
has_chromium() { command -v chromium || command -v chromium-browser || command -v google-chrome; } >/dev/null

if [ -n "${FERRY_CHROMIUM:-}" ]; then
    [ -x "$FERRY_CHROMIUM" ] || fail "FERRY_CHROMIUM=$FERRY_CHROMIUM is no program"
elif ! has_chromium; then
    printf 'browser: installing chromium\n'
    apt_install chromium >/dev/null || true
    has_chromium || fail "the tests of the page need Chromium, which could not be installed: no apt-get, or no root rights." \
        "Install it (Debian: apt-get install chromium), or set FERRY_CHROMIUM=/path/to/chromium"
fi
