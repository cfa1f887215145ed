"""How to log in to a cluster: security protocol, SASL mechanism and credentials, read from Kafka's Java properties.

It follows Kafka's SaslClientAuthenticator and login modules. Ferry refuses, with a reason, logins that its clients do not support.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from ferry.config.client_settings import ClientSettings
from ferry.config.credentials import Kerberos, Password, Tokens
from ferry.config.jaas import MODULES, MODULES_PACKAGE, LoginModule, parse_jaas
from ferry.config.oauth_login import JAAS, read_aws, read_tokens
from ferry.config.secret import Secret

*_OTHERS, _LAST = MODULES
SERVICE = "sasl.kerberos.service.name"
_PLAIN_WORD = re.compile(r"[A-Za-z0-9._/@:][A-Za-z0-9._/@:-]*")
_OFFERED = f"{', '.join(_OTHERS)} or {_LAST}"


@dataclass(frozen=True)
class Login:
    """`mechanism` and `credentials` are None without SASL."""

    protocol: str
    mechanism: str | None = None
    credentials: Password | Kerberos | Tokens | None = None

    @property
    def encrypted(self) -> bool:
        return self.protocol.endswith("SSL")

    @property
    def user(self) -> str | None:
        """The user, for messages; None without SASL."""
        return None if self.credentials is None else self.credentials.user


Read = Callable[[ClientSettings, LoginModule], Password | Kerberos | Tokens]


def read_login(settings: ClientSettings) -> Login:
    """The login that the properties describe; ConfigError if it is incomplete or not supported."""
    protocol: str = settings.value("security.protocol")
    if not protocol.startswith("SASL"):
        return Login(protocol)
    mechanism: str = settings.value("sasl.mechanism")
    if mechanism not in MODULES:
        raise settings.problem("sasl.mechanism", f"{mechanism} is not offered: use {_OFFERED}")
    read: Read = {"OAUTHBEARER": read_tokens, "AWS_MSK_IAM": read_aws, "GSSAPI": _kerberos}.get(mechanism, _password)
    return Login(protocol, mechanism, read(settings, _login_module(settings, mechanism)))


def _login_module(settings: ClientSettings, mechanism: str) -> LoginModule:
    text = settings.text(JAAS)
    package, _, wanted = MODULES[mechanism].rpartition(".")
    needs = f"{mechanism}{'' if settings.given('sasl.mechanism') else ', the default of sasl.mechanism,'} needs"
    if text is None:
        raise settings.problem(JAAS, f"is not set: {needs} {wanted} with its options")
    try:
        module = parse_jaas(text)
    except ValueError as problem:
        raise settings.problem(JAAS, str(problem)) from None
    # Kafka has moved its modules between packages, but not out of its own.
    if module.java_class.rpartition(".")[2] != wanted or not module.java_class.startswith((MODULES_PACKAGE, f"{package}.")):
        raise settings.problem(JAAS, f"names another login module than {wanted}, which {needs}")
    return module


def _kerberos(settings: ClientSettings, module: LoginModule) -> Kerberos:
    """Java's Krb5LoginModule with a keytab, and the service name as KerberosLogin finds it."""
    options = module.options
    if options.get("useKeyTab", "").lower() != "true" or not options.get("keyTab") or not options.get("principal"):
        raise settings.problem(JAAS, "must have useKeyTab=true, keyTab and principal: Ferry offers Kerberos with a keytab only")
    named = settings.value(SERVICE)
    service = named or options.get("serviceName")
    if not service or options.get("serviceName", service) != service:
        raise settings.problem(SERVICE, f"{'differs from serviceName in' if service else 'is not set, nor serviceName in'} {JAAS}")
    kinit = settings.value("sasl.kerberos.kinit.cmd")
    # librdkafka has a shell start kinit.
    texts = {JAAS: (options["principal"], options["keyTab"]), "sasl.kerberos.kinit.cmd": (kinit,)}
    for name, values in texts.items():
        if not all(map(_PLAIN_WORD.fullmatch, values)):
            raise settings.problem(name, "must hold only letters, digits and . _ - / @ : in the paths and the principal of Kerberos")
    return Kerberos(options["principal"], options["keyTab"], service, kinit, settings.value("sasl.kerberos.min.time.before.relogin"))


def _password(settings: ClientSettings, module: LoginModule) -> Password:
    if module.options.get("tokenauth", "").lower() == "true":
        raise settings.problem(JAAS, "delegation tokens (tokenauth) are not offered: use a user's own password")
    if missing := [option for option in ("username", "password") if not module.options.get(option)]:
        raise settings.problem(JAAS, f"lacks {' and '.join(missing)}")
    return Password(module.options["username"], Secret(module.options["password"]))
