"""What a login proves: a password, or where its OAUTHBEARER tokens come from.

Credentials are frozen, and their texts that are secret are Secrets: they show in no log. A credential for which a process keeps its tokens
can be hashed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from ferry.config.secret import Secret


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
    extensions: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def user(self) -> str:
        return self.principal


@dataclass(frozen=True)
class ClientCredentials:
    """Tokens from a token endpoint by OAuth's client credentials grant. `timeout_seconds`: of one request."""

    url: str
    client_id: str
    client_secret: Secret
    scope: str | None
    timeout_seconds: float
    extensions: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def user(self) -> str:
        return self.client_id


@dataclass(frozen=True)
class SignedAssertion:
    """A JWT that Ferry signs for each request. `claims`: the fixed ones (aud, iss, sub). `template`: a JSON file with more of them."""

    key_file: str
    passphrase: Secret | None = None
    algorithm: str = "RS256"
    claims: tuple[tuple[str, str], ...] = ()
    valid_seconds: int = 300
    early_seconds: int = 60
    with_id: bool = False
    template: str | None = None


@dataclass(frozen=True)
class AssertionFile:
    """A JWT in a file that another program renews."""

    path: str


@dataclass(frozen=True)
class JwtAssertion:
    """Tokens from a token endpoint for a JWT (RFC 7523). `as_client`: it proves who the client is; otherwise it is the grant itself."""

    url: str
    assertion: SignedAssertion | AssertionFile
    scope: str | None
    timeout_seconds: float
    as_client: bool = False
    client_id: str | None = None
    extensions: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def user(self) -> str:
        """The client, or else the subject or issuer of the JWT."""
        if isinstance(self.assertion, AssertionFile):
            return self.client_id or f"JWT in {self.assertion.path}"
        claims = dict(self.assertion.claims)
        return self.client_id or claims.get("sub") or claims.get("iss") or f"JWT signed with {self.assertion.key_file}"


@dataclass(frozen=True)
class TokenFile:
    """A token in a file that another process renews."""

    path: str
    extensions: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def user(self) -> str:
        return f"token in {self.path}"


@dataclass(frozen=True)
class OwnTokens:
    """Tokens from a class of the user's own, by import path; `options` are those of the login module."""

    path: str
    options: tuple[tuple[str, Secret], ...] = ()
    extensions: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def user(self) -> str:
        return f"token of {self.path}"


@dataclass(frozen=True)
class AwsIam:
    """Tokens that AWS's signer makes for a listener of Amazon MSK. Without profile and role: by the credentials that AWS's SDK finds."""

    region: str | None = None  # The cluster's region; None: the SDK's.
    profile: str | None = None
    role: str | None = None
    session_name: str = "aws-msk-iam-auth"
    external_id: Secret | None = None
    # Access key, secret key and session token (may be empty) with which the role is assumed; None: the credentials that the SDK finds.
    role_keys: tuple[Secret, Secret, Secret] | None = None
    sts_region: str | None = None
    extensions: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def user(self) -> str:
        return f"AWS profile {self.profile}" if self.profile else f"AWS role {self.role}" if self.role else "AWS default credentials"


@dataclass(frozen=True)
class Kerberos:
    """A principal and the file with its keys (GSSAPI). `service`: the first part of the brokers' principals. `kinit`: the program."""

    principal: str
    keytab: str
    service: str
    kinit: str
    relogin_milliseconds: int

    @property
    def user(self) -> str:
        return self.principal


Tokens: TypeAlias = UnsecuredToken | ClientCredentials | JwtAssertion | TokenFile | OwnTokens | AwsIam
