"""Tokens for Amazon MSK's listeners with IAM, made by AWS's own signer library.

MSK offers two SASL mechanisms on such a listener. AWS's library for Java speaks AWS_MSK_IAM. AWS's signers for other languages make tokens
for OAUTHBEARER: such a token is a presigned URL. MSK checks both against the same credentials and rights. Ferry's clients always speak
OAUTHBEARER, also if the properties name AWS_MSK_IAM.

AWS's SDK renews the credentials that it finds: instance profiles, web identities, assumed roles.
"""

import os
from typing import Any

from ferry.config.credentials import AwsIam
from ferry.errors import AuthenticationFailed, ConfigError

try:
    import botocore.session
    from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
    from botocore.credentials import AssumeRoleCredentialFetcher, CredentialProvider, Credentials, DeferredRefreshableCredentials
    from botocore.exceptions import BotoCoreError, ClientError
except ImportError as missing:
    raise ConfigError(
        "a login by AWS IAM needs AWS's signer library, here and on Spark's executors: pip install 'kafka-ferry[aws]' "
        f"(no module {missing.name})"
    ) from missing


class AwsTokens(CredentialProvider):  # type: ignore[misc]
    """Makes tokens from one set of AWS credentials, which the signer takes from a CredentialProvider: this object."""

    def __init__(self, login: AwsIam) -> None:
        """ConfigError if the profile is not there, or if nothing names the region."""
        super().__init__()
        self._login = login
        try:
            session = botocore.session.Session(profile=login.profile)
            # The SDK for Python knows only AWS_DEFAULT_REGION, which the one for Java does not know.
            region = login.region or os.environ.get("AWS_REGION") or session.get_config_variable("region")
            self._credentials = _credentials(session, login, region)
        except BotoCoreError as problem:
            raise ConfigError(f"{login.user} cannot be used: {_told(problem)}") from None
        if not region:
            what = "no region: the names of bootstrap.servers do not hold it, so set AWS_REGION, or region in the profile"
            raise ConfigError(f"{login.user}: {what}")
        self._region = region

    def token(self) -> tuple[str, float]:
        """A token, and when it expires in seconds since the epoch. AuthenticationFailed without credentials."""
        try:
            found, expiry = MSKAuthTokenProvider.generate_auth_token_from_credentials_provider(self._region, self)
        except (BotoCoreError, ClientError) as problem:
            raise AuthenticationFailed(f"{self._login.user} gives no token: {_told(problem)}") from None
        return found, expiry / 1000

    def load(self) -> Any:
        """The credentials, for the signer."""
        return self._credentials


def _credentials(session: Any, login: AwsIam, region: str | None) -> Any:
    """The credentials to sign with: a profile wins over a role. ConfigError without any: MSKCredentialProvider would use others then."""
    if login.role_keys is not None:
        key, secret, token = (each.reveal() for each in login.role_keys)
        base = Credentials(key, secret, token or None)
    else:
        base = session.get_credentials()
    if base is None:
        raise ConfigError(f"{login.user}: AWS's SDK finds no credentials in the environment, the profiles or the machine")
    if login.role is None or login.profile is not None:
        return base
    external = {"ExternalId": login.external_id.reveal()} if login.external_id else {}
    fetcher = AssumeRoleCredentialFetcher(
        lambda service, **options: session.create_client(service, region_name=login.sts_region or region, **options),
        base,
        login.role,
        extra_args={"RoleSessionName": login.session_name, **external},
    )
    return DeferredRefreshableCredentials(fetcher.fetch_credentials, "assume-role")


def _told(problem: Exception) -> str:
    """The type of the error, and AWS's code. Not its text, which may repeat a part of the request."""
    code = getattr(problem, "response", {}).get("Error", {}).get("Code", "")
    return f"{type(problem).__name__}{f' {code}' if code else ''}"
