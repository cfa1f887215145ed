"""How to log in to a cluster: security protocol, SASL mechanism and credentials, read from Kafka's Java properties.

It follows Kafka's SaslClientAuthenticator and login modules. Ferry refuses, with a reason, what its clients cannot do.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from ferry.config.client_settings import ClientSettings
from ferry.config.jaas import MODULES, MODULES_PACKAGE, LoginModule, parse_jaas
from ferry.config.secret import Secret

*_OTHERS, _LAST = MODULES
_OFFERED = f"{', '.join(_OTHERS)} or {_LAST}"
_EXTENSION = "extension_"
_UNSECURED = "unsecuredLogin"
JAAS = "sasl.jaas.config"
CLIENT_ID = "sasl.oauthbearer.client.credentials.client.id"
ENDPOINT_URL = "sasl.oauthbearer.token.endpoint.url"


@dataclass(frozen=True)
class Password:
    """User name and password (PLAIN and SCRAM)."""

    user: str
    password: Secret


@dataclass(frozen=True)
class UnsecuredToken:
    """Tokens without signature, which the client itself creates (for tests)."""

    principal: str
    principal_claim: str = "sub"
    lifetime_seconds: int = 3600
    scopes: tuple[str, ...] = ()
    extensions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ClientCredentials:
    """Tokens from a token endpoint by OAuth's client credentials grant. `timeout_seconds`: of one request."""

    url: str
    client_id: str
    client_secret: Secret
    scope: str | None
    timeout_seconds: float
    extensions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TokenFile:
    """A token in a file that another process renews."""

    path: str
    extensions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Login:
    """`mechanism` and `credentials` are None without SASL."""

    protocol: str
    mechanism: str | None = None
    credentials: Password | UnsecuredToken | ClientCredentials | TokenFile | None = None

    @property
    def encrypted(self) -> bool:
        return self.protocol.endswith("SSL")

    @property
    def user(self) -> str | None:
        """The user, for messages; None without SASL."""
        match self.credentials:
            case Password(user=user):
                return user
            case UnsecuredToken(principal=principal):
                return principal
            case ClientCredentials(client_id=client_id):
                return client_id
            case TokenFile(path=path):
                return f"token in {path}"
        return None


def read_login(settings: ClientSettings) -> Login:
    """The login that the properties describe; ConfigError if it is incomplete or not supported."""
    protocol: str = settings.value("security.protocol")
    if not protocol.startswith("SASL"):
        return Login(protocol)
    mechanism = (settings.text("sasl.mechanism") or "").strip()
    if not mechanism:
        raise settings.problem("sasl.mechanism", f"is not set, and Kafka's default is GSSAPI, which Ferry does not offer: set {_OFFERED}")
    if mechanism not in MODULES:
        raise settings.problem("sasl.mechanism", f"{mechanism} is not offered: use {_OFFERED}")
    module = _login_module(settings, mechanism)
    return Login(protocol, mechanism, _token(settings, module) if mechanism == "OAUTHBEARER" else _password(settings, module))


def _login_module(settings: ClientSettings, mechanism: str) -> LoginModule:
    text = settings.text(JAAS)
    wanted = MODULES[mechanism].rpartition(".")[2]
    if text is None:
        raise settings.problem(JAAS, f"is not set: {mechanism} needs {wanted} with its options")
    try:
        module = parse_jaas(text)
    except ValueError as problem:
        raise settings.problem(JAAS, str(problem)) from None
    if module.java_class.rpartition(".")[2] != wanted or not module.java_class.startswith(MODULES_PACKAGE):
        raise settings.problem(JAAS, f"names another login module than Kafka's {wanted}, which {mechanism} needs")
    return module


def _password(settings: ClientSettings, module: LoginModule) -> Password:
    if module.options.get("tokenauth", "").lower() == "true":
        raise settings.problem(JAAS, "delegation tokens (tokenauth) are not offered: use a user's own password")
    missing = [option for option in ("username", "password") if not module.options.get(option)]
    if missing:
        raise settings.problem(JAAS, f"lacks {' and '.join(missing)}")
    return Password(module.options["username"], Secret(module.options["password"]))


def _token(settings: ClientSettings, module: LoginModule) -> UnsecuredToken | ClientCredentials | TokenFile:
    options = module.options
    extensions = {name.removeprefix(_EXTENSION): value for name, value in options.items() if name.startswith(_EXTENSION)}
    url = (settings.text(ENDPOINT_URL) or "").strip()
    if not url:
        return _unsecured(settings, options)
    if urlsplit(url).scheme == "file":
        return TokenFile(urlsplit(url).path, extensions)
    if urlsplit(url).scheme not in {"http", "https"}:
        raise settings.problem(ENDPOINT_URL, "must begin with https://, http:// or file://")
    client_id = settings.text(CLIENT_ID) or options.get("clientId")
    client_secret = settings.text("sasl.oauthbearer.client.credentials.client.secret") or options.get("clientSecret")
    if not client_id or not client_secret:
        raise settings.problem(JAAS, f"lacks {'clientSecret' if client_id else 'clientId'} for the token endpoint")
    scope = settings.text("sasl.oauthbearer.scope") or options.get("scope")
    timeout = settings.value("sasl.login.connect.timeout.ms") / 1000
    return ClientCredentials(url, client_id, Secret(client_secret), scope, timeout, extensions)


def _unsecured(settings: ClientSettings, options: Mapping[str, str]) -> UnsecuredToken:
    """Options of Kafka's OAuthBearerUnsecuredLoginCallbackHandler."""
    claim = options.get(f"{_UNSECURED}PrincipalClaimName", "sub")
    principal = options.get(f"{_UNSECURED}StringClaim_{claim}")
    if not principal:
        what = f"needs {ENDPOINT_URL}, or (for tests, tokens without signature) the option {_UNSECURED}StringClaim_{claim} in {JAAS}"
        raise settings.problem(JAAS, what)
    scopes = tuple(options.get(f"{_UNSECURED}StringClaim_scope", "").split())
    listed = options.get(f"{_UNSECURED}ListClaim_scope")
    if listed:
        # The first character of a list claim is its separator.
        scopes = tuple(scope for scope in listed[1:].split(listed[0]) if scope)
    try:
        lifetime = int(options.get(f"{_UNSECURED}LifetimeSeconds", "3600"))
    except ValueError:
        raise settings.problem(JAAS, f"{_UNSECURED}LifetimeSeconds must be a whole number") from None
    prefix = f"{_UNSECURED}Extension_"
    extensions = {name.removeprefix(prefix): value for name, value in options.items() if name.startswith(prefix)}
    return UnsecuredToken(principal, claim, lifetime, scopes, extensions)
