#!/usr/bin/env bash
# Makes sure that the tests of the alerting rules find prometheus and promtool. Quick when both are there. It installs nothing: it unpacks
# Debian's package into Ferry's cache. FERRY_PROMETHEUS names a directory with both programs that is not on PATH.
set -euo pipefail
cd "$(dirname "$0")/.."
. setup/apt.sh

fail() { printf 'prometheus: %s\n' "$*" >&2; exit 1; }
cache=${FERRY_CACHE:-$HOME/.cache/ferry}/prometheus
has_both() { [ -x "$1/prometheus" ] && [ -x "$1/promtool" ]; }

if [ -n "${FERRY_PROMETHEUS:-}" ]; then
    has_both "$FERRY_PROMETHEUS" || fail "FERRY_PROMETHEUS=$FERRY_PROMETHEUS lacks prometheus or promtool"
    exit
fi
if { command -v prometheus && command -v promtool; } >/dev/null || has_both "$cache"; then
    exit
fi
printf 'prometheus: unpacking it into %s\n' "$cache"
# Beside the cache's directory, so that a script that is killed leaves no half of a program there.
mkdir -p "${cache%/*}"
unpacked=$(mktemp -d "$cache.XXXXXX")
trap 'rm -rf "$unpacked"' EXIT
if ! { apt_unpack prometheus "$unpacked" && has_both "$unpacked/usr/bin"; }; then
    printf 'prometheus: %s %s\n' "it could not be fetched, so the tests of the alerting rules are skipped: that takes apt-get and dpkg-deb." \
        "Install it (Debian: apt-get install prometheus), or set FERRY_PROMETHEUS=/directory/with/both/programs"
    exit
fi
rm -rf "$cache"
mv -T "$unpacked/usr/bin" "$cache" 2>/dev/null || has_both "$cache" || fail "$cache could not be written" # another setup may have been faster
