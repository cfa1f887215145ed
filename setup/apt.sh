# Sourced by scripts that install packages of Debian or Ubuntu. apt_install: 127 without apt-get, root or sudo.
as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; elif command -v sudo >/dev/null; then sudo "$@"; else return 127; fi
}

apt_install() {
    command -v apt-get >/dev/null || return 127
    as_root true 2>/dev/null || return 127 # asks for a password where there is a terminal, and says nothing where there is none
    as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq || true
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"
}

# apt_unpack PACKAGE DIRECTORY: the package's files, without those of other packages, and without installing it. Needs no root, unless the
# lists of packages are missing or old.
apt_unpack() {
    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || return 127
    local here=$PWD
    cd "$2"
    apt-get download -qq "$1" 2>/dev/null || { as_root apt-get update -qq && apt-get download -qq "$1"; } || { cd "$here"; return 1; }
    cd "$here"
    dpkg-deb -x "$2/$1"_*.deb "$2"
}
