"""Limits the TLS versions of librdkafka, which has no setting for them.

Its OpenSSL reads the file that the variable OPENSSL_CONF names, once, when the process makes its first encrypted client. The limits of that
moment hold for all clients of librdkafka in the process. The loader ensures that all clusters of a flow have versions in common.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ferry.config import Cluster
from ferry.config.tls_policy import VERSIONS
from ferry.ending import temporary_directory
from ferry.errors import ConfigError

VARIABLE = "OPENSSL_CONF"
_LOCK = threading.Lock()
# The versions with which librdkafka's OpenSSL of this process started; empty: it has not.
_started: frozenset[str] = frozenset()


@contextmanager
def openssl_limited(cluster: Cluster) -> Iterator[None]:
    """For making a client of `cluster`. ConfigError if OpenSSL of this process may use versions that the cluster does not allow."""
    global _started  # noqa: PLW0603 - it describes the process, as OpenSSL's own state does
    with _LOCK:
        wanted = cluster.versions_of_librdkafka
        if not wanted or _started:
            if wanted and not _started <= wanted:
                what = f"a client of this process may use {', '.join(sorted(_started - wanted))}: use another process"
                raise ConfigError(
                    f"cluster {cluster.alias}: ssl.enabled.protocols, ssl.protocol and ssl.cipher.suites cannot be kept: {what}"
                )
            yield
            return
        if wanted == VERSIONS:
            yield
        else:
            with temporary_directory("ferry-") as directory, _variable(str(directory / "openssl.cnf")):
                text = "openssl_conf = start\n[start]\nssl_conf = limits\n[limits]\nsystem_default = versions\n[versions]\n"
                text += f"MinProtocol = {min(wanted)}\nMaxProtocol = {max(wanted)}\n"
                (directory / "openssl.cnf").write_text(text, encoding="ascii")
                yield
        _started = wanted


@contextmanager
def _variable(value: str) -> Iterator[None]:
    if VARIABLE in os.environ:
        raise ConfigError(f"{VARIABLE} is set, so Ferry cannot limit TLS versions: limit them there, and remove ssl.enabled.protocols")
    os.environ[VARIABLE] = value
    try:
        yield
    finally:
        del os.environ[VARIABLE]
