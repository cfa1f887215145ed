"""Which TLS versions and cipher suites a cluster's properties allow (pure): ssl.enabled.protocols, ssl.protocol, ssl.cipher.suites.

Both client libraries use OpenSSL. They speak TLS 1.2 and 1.3, and can choose among the suites of TLS 1.2, but not among the three of 1.3.
So if the suites leave out one of these three, TLS 1.3 is not used at all.
"""

import re
from dataclasses import dataclass

from ferry.config.client_settings import ClientSettings

TLS_1_2, TLS_1_3 = "TLSv1.2", "TLSv1.3"
VERSIONS = frozenset({TLS_1_2, TLS_1_3})
PROTOCOLS, PROTOCOL, SUITES = "ssl.enabled.protocols", "ssl.protocol", "ssl.cipher.suites"
_SUITES_OF_1_3 = frozenset({"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"})
# A signal in the list of suites, which OpenSSL sends in any case.
_SIGNAL = "TLS_EMPTY_RENEGOTIATION_INFO_SCSV"
_SUITE = re.compile(
    r"TLS_(?P<keys>(?:ECDHE|DHE)_(?:RSA|ECDSA|DSS)|RSA)_WITH_"
    r"(?:AES_(?P<bits>128|256)_(?P<mode>GCM|CBC)_(?P<hash>SHA|SHA256|SHA384)|CHACHA20_POLY1305_SHA256)"
)


@dataclass(frozen=True)
class TlsPolicy:
    """`versions`: by their Java names; `ciphers`: the suites of TLS 1.2 by their OpenSSL names (empty: OpenSSL's own choice)."""

    versions: frozenset[str] = VERSIONS
    ciphers: tuple[str, ...] = ()


def read_tls_policy(settings: ClientSettings) -> TlsPolicy:
    """What the properties allow. ConfigError if nothing is left, or for a suite that OpenSSL does not have."""
    versions = VERSIONS & set(settings.value(PROTOCOLS))
    if not versions:
        raise settings.problem(PROTOCOLS, f"names neither {TLS_1_2} nor {TLS_1_3}, and Ferry's clients speak no other version: add one")
    if settings.value(PROTOCOL) not in {"TLS", TLS_1_3}:
        versions -= {TLS_1_3}
    if not settings.given(SUITES):
        if not versions:
            raise settings.problem(PROTOCOL, f"excludes {TLS_1_3}, the only version that {PROTOCOLS} names: change one")
        return TlsPolicy(versions)
    suites = [suite for suite in settings.value(SUITES) if suite != _SIGNAL]
    ciphers = tuple(_openssl_name(settings, suite) for suite in suites if suite not in _SUITES_OF_1_3)
    if not ciphers:
        versions -= {TLS_1_2}
    if _SUITES_OF_1_3 - set(suites):
        versions -= {TLS_1_3}
    if not versions:
        what = f"leaves no suite: name a suite of {TLS_1_2} that {PROTOCOLS} allows, or all of {', '.join(sorted(_SUITES_OF_1_3))}"
        raise settings.problem(SUITES, what)
    return TlsPolicy(versions, ciphers)


def _openssl_name(settings: ClientSettings, suite: str) -> str:
    """The suite's name in OpenSSL, which `openssl ciphers -stdname` prints beside the standard name."""
    found = _SUITE.fullmatch(suite)
    if found is None:
        raise settings.problem(SUITES, f"{suite} is no cipher suite that Ferry's clients have: remove it")
    keys = "" if found["keys"] == "RSA" else found["keys"].replace("_", "-") + "-"
    if found["bits"] is None:
        return f"{keys}CHACHA20-POLY1305"
    mode = "GCM-" if found["mode"] == "GCM" else ""
    return f"{keys}AES{found['bits']}-{mode}{found['hash']}"
