"""Kerberos logins (GSSAPI) of both client libraries, each with a keytab.

kafka-python logs in through python's gssapi. The tickets are in the memory of this process, one set for each principal, and libgssapi
renews them from the keytab when most of their life is over. librdkafka, if it was built for Kerberos, logs in through Cyrus SASL: it calls
kinit, and kinit writes the ticket to the default cache (KRB5CCNAME). Such a cache holds the tickets of one principal, so a process has one.
"""

import threading
from functools import cache
from typing import Any

from ferry.config.credentials import Kerberos
from ferry.errors import AuthenticationFailed, ClusterUnreachable, ConfigError

try:
    import gssapi
    from kafka.net.sasl import register_sasl_mechanism
    from kafka.net.sasl.gssapi import SaslMechanismGSSAPI
except ImportError as missing:
    raise ConfigError(
        "a login by Kerberos needs python's gssapi, here and on Spark's executors: pip install 'kafka-ferry[kerberos]' "
        f"(no module {missing.name}; it is compiled, and Debian's libkrb5-dev holds what that takes)"
    ) from missing

# What MIT's libkrb5 says if no KDC answers (KRB5_KDC_UNREACH, KRB5_REALM_CANT_RESOLVE).
_NO_KDC = frozenset({-1765328228, -1765328230})
_lock = threading.Lock()
_principals: set[str] = set()


class KeytabMechanism(SaslMechanismGSSAPI):  # type: ignore[misc]
    """kafka-python's mechanism, with a keytab: its own one only uses tickets that another program has got.

    `sasl_kerberos_name` carries the Kerberos credentials, because kafka-python hands its mechanisms no other settings.
    """

    def __init__(self, *, host: str, sasl_kerberos_name: Kerberos, **_: object) -> None:
        """AuthenticationFailed if the KDC refuses the keytab, ClusterUnreachable if no KDC answers."""
        login = sasl_kerberos_name
        self._is_done = self._is_authenticated = False
        self.auth_id = f"{login.service}@{host}"
        self._login = login
        self._client_ctx: Any = None
        self._next_token = self._step(None)

    def receive(self, auth_bytes: bytes) -> None:
        if self._client_ctx.complete:
            super().receive(auth_bytes)
        else:
            self._next_token = self._step(auth_bytes)

    def _step(self, told: bytes | None) -> bytes | None:
        try:
            if self._client_ctx is None:
                # The tickets that this process keeps, if they live long enough. Otherwise libgssapi gets new ones from the KDC.
                store = {"client_keytab": f"FILE:{self._login.keytab}", "ccache": f"MEMORY:ferry-{self._login.principal}"}
                own, kerberos = gssapi.Name(self._login.principal, gssapi.NameType.kerberos_principal), gssapi.MechType.kerberos
                tickets = gssapi.Credentials(name=own, usage="initiate", mechs=[kerberos], store=store)
                name = gssapi.Name(self.auth_id, gssapi.NameType.hostbased_service)
                self._client_ctx = gssapi.SecurityContext(name=name, creds=tickets, mech=kerberos, usage="initiate")
            token: bytes | None = self._client_ctx.step(told)
        except gssapi.exceptions.GSSError as problem:
            kind = ClusterUnreachable if problem.min_code in _NO_KDC else AuthenticationFailed
            what = f"no Kerberos ticket of {self._login.principal} for {self.auth_id}: {problem.gen_message()}"
            raise kind(f"{what}; check sasl.jaas.config and krb5.conf") from None
        return token


@cache
def _has_gssapi() -> bool:
    from confluent_kafka import KafkaException, Producer  # noqa: PLC0415 - only logins by Kerberos ask

    try:
        Producer({"builtin.features": "sasl_gssapi", "log_level": 0})
    except KafkaException:
        return False
    return True


def _require_both() -> None:
    """ConfigError if librdkafka was built without Kerberos. Both clients ask: a run must not stop where it first needs the other one."""
    if not _has_gssapi():
        what = "a login by Kerberos needs a librdkafka that was built for it, and the one in confluent-kafka's wheels was not"
        raise ConfigError(f"{what}: build both, here and on Spark's executors, as docs/security.md says")


def kafka_python_kerberos(login: Kerberos) -> dict[str, object]:
    """Settings of kafka-python, which from now on uses this module's mechanism. ConfigError as below."""
    _require_both()
    register_sasl_mechanism("GSSAPI", KeytabMechanism, overwrite=True)
    return {"sasl_kerberos_name": login}


def librdkafka_kerberos(login: Kerberos) -> dict[str, object]:
    """Settings of librdkafka; ConfigError if it was built without Kerberos, or if this process logs in as somebody else already."""
    _require_both()
    with _lock:
        if others := _principals - {login.principal}:
            what = f"one process logs in as one Kerberos principal, and this one as {others.pop()}, not also as {login.principal}"
            raise ConfigError(what)
        _principals.add(login.principal)
    return {
        "sasl.kerberos.service.name": login.service,
        "sasl.kerberos.principal": login.principal,
        "sasl.kerberos.keytab": login.keytab,
        "sasl.kerberos.min.time.before.relogin": login.relogin_milliseconds,
        "sasl.kerberos.kinit.cmd": f'"{login.kinit}" -k -t "%{{sasl.kerberos.keytab}}" %{{sasl.kerberos.principal}}',
    }
