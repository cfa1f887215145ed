#!/usr/bin/env bash
# make.sh NAME KEYTOOL...: the stores of one release of Java, made by its keytool, in the folder NAME beside this script.
# What they hold was made by openssl, with keys to throw away and the password changeit: source.p12 has a key, its certificate, the
# intermediate's and the root's; second.p12 another key with its certificate, other.pem.
set -euo pipefail
cd "$(dirname "$0")"
name=$1
shift
keytool=("$@")
rm -rf "$name"
mkdir "$name"
brought() { # FILE KIND STORE: the keys of FILE; a key in a JKS store has a password of its own
    local own=()
    [ "$2" != JKS ] || own=(-destkeypass keysecret)
    "${keytool[@]}" -importkeystore -noprompt -srckeystore "$1" -srcstoretype PKCS12 -srcstorepass changeit \
        -destkeystore "$name/$3" -deststoretype "$2" -deststorepass changeit "${own[@]}"
}

trusted() { # NAME KIND STORE: NAME.pem
    "${keytool[@]}" -importcert -noprompt -alias "$1" -file "$1.pem" -keystore "$name/$3" -storetype "$2" -storepass changeit
}

for kind in JKS PKCS12; do
    case $kind in JKS) ending=jks ;; *) ending=p12 ;; esac
    brought source.p12 $kind key.$ending
    trusted other $kind key.$ending
    trusted root $kind trust.$ending
    trusted other $kind trust.$ending
    brought source.p12 $kind two.$ending
    brought second.p12 $kind two.$ending
done
