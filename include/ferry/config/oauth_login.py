"""Where the tokens of an OAUTHBEARER login come from, read from Kafka's properties and the options of the login module.

It follows Kafka's OAuthBearerLoginCallbackHandler with its JwtRetrievers, OAuthBearerUnsecuredLoginCallbackHandler, and
MSKCredentialProvider of aws-msk-iam-auth. A handler of the user's own is a Python class.
"""

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from ferry.config.client_settings import ClientSettings
from ferry.config.credentials import (
    AssertionFile,
    AwsIam,
    ClientCredentials,
    JwtAssertion,
    OwnTokens,
    SignedAssertion,
    TokenFile,
    Tokens,
    UnsecuredToken,
)
from ferry.config.jaas import LoginModule
from ferry.config.secret import Secret
from ferry.errors import ConfigError
from ferry.policy.custom_classes import class_with, is_custom

JAAS = "sasl.jaas.config"
HANDLER = "sasl.login.callback.handler.class"
AWS_HANDLER = "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler"
_OAUTH = "sasl.oauthbearer."
CLIENT_ID = f"{_OAUTH}client.credentials.client.id"
ENDPOINT_URL = f"{_OAUTH}token.endpoint.url"
ASSERTION = f"{_OAUTH}assertion."
RETRIEVER = f"{_OAUTH}jwt.retriever.class"
_EXTENSION = "extension_"
_UNSECURED = "unsecuredLogin"
# As in the host names of MSK: b-1.name.abc123.c2.kafka.eu-west-1.amazonaws.com.
_REGION = re.compile(r"\.([a-z]{2}(?:-[a-z]+)+-\d+)\.(?:vpce\.)?(?:amazonaws\.com|api\.aws)")
_AWS_OPTIONS = {
    "awsProfileName", "awsRoleArn", "awsRoleSessionName", "awsRoleExternalId", "awsRoleAccessKeyId", "awsRoleSecretAccessKey",
    "awsRoleSessionToken", "awsStsRegion",
}  # fmt: skip
# They say how Java's library tries again, what it logs, and whether it looks for other credentials if these are missing. Ferry does not.
_AWS_IDLE = {"awsDebugCreds", "awsMaxRetries", "awsMaxBackOffTimeMs", "awsAddDefaultProviders"}


def read_tokens(settings: ClientSettings, module: LoginModule) -> Tokens:
    """Where the tokens come from; ConfigError if the properties do not say it, or name what Ferry cannot do."""
    handler = settings.value(HANDLER) if settings.given(HANDLER) else ""
    if handler == AWS_HANDLER.rpartition(".")[2]:
        return read_aws(settings, module)
    if not is_custom(handler):
        return _of_endpoint(settings, module)
    try:
        class_with(handler, ("token",))
    except ConfigError as problem:
        raise settings.problem(HANDLER, str(problem)) from problem
    options = tuple((name, Secret(value)) for name, value in module.options.items() if not name.startswith(_EXTENSION))
    return OwnTokens(handler, options, _extensions(module.options))


def _extensions(options: Mapping[str, str], prefix: str = _EXTENSION) -> dict[str, str]:
    return {name.removeprefix(prefix): value for name, value in options.items() if name.startswith(prefix)}


def read_aws(settings: ClientSettings, module: LoginModule) -> AwsIam:
    """The options of IAMLoginModule; ConfigError for one that Ferry does not know."""
    options = module.options
    if unknown := sorted(set(options) - _AWS_OPTIONS - _AWS_IDLE):
        # Such an option may decide which user Java logs in as. A text that does not begin like an option may be part of a secret: not
        # shown.
        shown = ", ".join(name for name in unknown if name.startswith("aws")) or "one that does not begin with aws"
        raise settings.problem(JAAS, f"has an option that Ferry does not offer: {shown}")
    keys = tuple(Secret(options.get(f"awsRole{name}", "")) for name in ("AccessKeyId", "SecretAccessKey", "SessionToken"))
    external = options.get("awsRoleExternalId")
    found = _REGION.search(",".join(settings.value("bootstrap.servers") or ()))
    return AwsIam(
        region=found[1] if found else None,
        profile=options.get("awsProfileName"),
        role=options.get("awsRoleArn"),
        session_name=options.get("awsRoleSessionName", AwsIam.session_name),
        external_id=Secret(external) if external else None,
        role_keys=(keys[0], keys[1], keys[2]) if keys[0].reveal() and keys[1].reveal() else None,
        sts_region=options.get("awsStsRegion"),
    )


def _of_endpoint(settings: ClientSettings, module: LoginModule) -> Tokens:
    options = module.options
    url = (settings.text(ENDPOINT_URL) or "").strip()
    if not url:
        return _unsecured(settings, options)
    if urlsplit(url).scheme == "file":
        return TokenFile(urlsplit(url).path, _extensions(options))
    if urlsplit(url).scheme not in {"http", "https"}:
        raise settings.problem(ENDPOINT_URL, "must begin with https://, http:// or file://")
    scope = settings.text(f"{_OAUTH}scope") or options.get("scope")
    seconds, extensions = settings.value("sasl.login.connect.timeout.ms") / 1000, _extensions(options)
    client_id = settings.text(CLIENT_ID) or options.get("clientId")
    is_grant = settings.value(RETRIEVER) == "JwtBearerJwtRetriever"
    # As Kafka's ClientCredentialsRequestFormatterFactory decides.
    if is_grant or settings.text(f"{ASSERTION}file") or settings.text(f"{ASSERTION}claim.iss"):
        return JwtAssertion(url, _assertion(settings), scope, seconds, not is_grant, None if is_grant else client_id, extensions)
    client_secret = settings.text(f"{_OAUTH}client.credentials.client.secret") or options.get("clientSecret")
    if not client_id or not client_secret:
        raise settings.problem(JAAS, f"lacks {'clientSecret' if client_id else 'clientId'} for the token endpoint")
    return ClientCredentials(url, client_id, Secret(client_secret), scope, seconds, extensions)


def _assertion(settings: ClientSettings) -> SignedAssertion | AssertionFile:
    """A JWT from the file that the properties name, or else one that Ferry signs, as Kafka's AssertionSupplierFactory decides."""
    if path := settings.text(f"{ASSERTION}file"):
        return AssertionFile(path.strip())
    key_file = (settings.text(f"{ASSERTION}private.key.file") or "").strip()
    if not key_file:
        raise settings.problem(f"{ASSERTION}private.key.file", f"is not set: JWT assertions need it, or {ASSERTION}file")
    passphrase = settings.text(f"{ASSERTION}private.key.passphrase")
    claims = ((name, settings.value(f"{ASSERTION}claim.{name}")) for name in ("aud", "iss", "sub"))
    return SignedAssertion(
        key_file,
        Secret(passphrase) if passphrase else None,
        settings.value(f"{ASSERTION}algorithm"),
        tuple((name, value) for name, value in claims if value),
        settings.value(f"{ASSERTION}claim.exp.seconds"),
        settings.value(f"{ASSERTION}claim.nbf.seconds"),
        settings.value(f"{ASSERTION}claim.jti.include"),
        settings.value(f"{ASSERTION}template.file"),
    )


def _unsecured(settings: ClientSettings, options: Mapping[str, str]) -> UnsecuredToken:
    """Options of Kafka's OAuthBearerUnsecuredLoginCallbackHandler."""
    claim = options.get(f"{_UNSECURED}PrincipalClaimName", "sub")
    principal = options.get(f"{_UNSECURED}StringClaim_{claim}")
    if not principal:
        what = f"needs {ENDPOINT_URL}, or (for tests, tokens without signature) the option {_UNSECURED}StringClaim_{claim} in {JAAS}"
        raise settings.problem(JAAS, what)
    scopes = tuple(options.get(f"{_UNSECURED}StringClaim_scope", "").split())
    if listed := options.get(f"{_UNSECURED}ListClaim_scope"):
        # The first character of a list claim is its separator.
        scopes = tuple(scope for scope in listed[1:].split(listed[0]) if scope)
    try:
        lifetime = int(options.get(f"{_UNSECURED}LifetimeSeconds", "3600"))
    except ValueError:
        raise settings.problem(JAAS, f"{_UNSECURED}LifetimeSeconds must be a whole number") from None
    return UnsecuredToken(principal, claim, lifetime, scopes, _extensions(options, f"{_UNSECURED}Extension_"))
