"""Logins by AWS IAM: Java's lines as credentials, and what AWS's signer makes of them."""

from __future__ import annotations

import base64
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from ferry.config import ClientRole, FerryConfig
from ferry.config.credentials import AwsIam
from ferry.config.kept_tokens import token_of_process
from ferry.config.login import read_login
from ferry.config.secret import Secret
from ferry.errors import ConfigError

pytestmark = pytest.mark.unit

MSK = "b-1.demo.abc123.c2.kafka.eu-west-1.amazonaws.com:9098"
AWS = "software.amazon.msk.auth.iam."
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
JAVA = ("sasl.mechanism = AWS_MSK_IAM", f"sasl.client.callback.handler.class = {AWS}IAMClientCallbackHandler")
BEARER = ("sasl.mechanism = OAUTHBEARER", f"sasl.login.callback.handler.class = {AWS}IAMOAuthBearerLoginCallbackHandler")


def lines(options: str = "", servers: str = MSK, how: tuple[str, str] = JAVA) -> str:
    module = f"{AWS}IAMLoginModule" if how is JAVA else OAUTH
    found = [
        f"bootstrap.servers = {servers}",
        "security.protocol = SASL_PLAINTEXT",
        *how,
        f"sasl.jaas.config = {module} required {options};",
    ]
    return "".join(f"A.{line}\n" for line in found)


@pytest.fixture(autouse=True)
def _only_these_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    (tmp_path / "credentials").write_text("[p]\naws_access_key_id = AKIAPROFILE\naws_secret_access_key = s3cret\n")
    token_of_process.cache_clear()


@pytest.mark.parametrize("how", [JAVA, BEARER], ids=["AWS_MSK_IAM", "OAUTHBEARER"])
@pytest.mark.parametrize(
    ("options", "expected", "user"),
    [
        ("", AwsIam("eu-west-1"), "AWS default credentials"),
        ('awsProfileName="p" awsDebugCreds=true awsMaxRetries="7"', AwsIam("eu-west-1", "p"), "AWS profile p"),
        (
            'awsRoleArn="r" awsRoleSessionName="n" awsStsRegion="eu-west-3" awsRoleExternalId="e"',
            AwsIam("eu-west-1", role="r", session_name="n", external_id=Secret("e"), sts_region="eu-west-3"),
            "AWS role r",
        ),
        (
            'awsRoleArn="r" awsRoleAccessKeyId="k" awsRoleSecretAccessKey="s"',
            AwsIam("eu-west-1", role="r", role_keys=(Secret("k"), Secret("s"), Secret(""))),
            "AWS role r",
        ),
    ],
)
def test_javas_options(load: Callable[..., FerryConfig], options: str, expected: AwsIam, user: str, how: tuple[str, str]) -> None:
    login = read_login(load(lines(options, how=how)).clusters["A"].resolved(ClientRole.ADMIN))
    assert (login.credentials, login.user) == (expected, user)


@pytest.mark.parametrize(
    ("servers", "region"),
    [
        ("boot-abc.c1.kafka-serverless.us-gov-west-1.amazonaws.com:9098", "us-gov-west-1"),
        ("b-1.x.kafka.cn-north-1.amazonaws.com.cn:9098", "cn-north-1"),
        ("vpce-1.kafka.ap-southeast-2.vpce.amazonaws.com:14001", "ap-southeast-2"),
        ("my-kafka-1.example.com:9098", None),
    ],
)
def test_the_region_stands_in_the_names_of_brokers(load: Callable[..., FerryConfig], servers: str, region: str | None) -> None:
    credentials = read_login(load(lines(servers=servers)).clusters["A"].resolved(ClientRole.ADMIN)).credentials
    assert isinstance(credentials, AwsIam)
    assert credentials.region == region


def test_both_clients_get_the_signers_token_by_oauthbearer(load: Callable[..., FerryConfig]) -> None:
    cluster = load(lines('awsProfileName="p"')).clusters["A"]
    own, other = cluster.librdkafka(), cluster.kafka_python(ClientRole.CONSUMER)
    assert (own["sasl.mechanism"], other["sasl_mechanism"]) == ("OAUTHBEARER", "OAUTHBEARER")
    token = own["oauth_cb"]("")[0]  # type: ignore[operator]
    assert other["sasl_oauth_token_provider"].token() == token  # type: ignore[attr-defined]
    url = urlsplit(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode())
    assert (url.scheme, url.hostname) == ("https", "kafka.eu-west-1.amazonaws.com")
    query = parse_qs(url.query)
    assert query["X-Amz-Credential"][0].startswith("AKIAPROFILE/")
    assert "s3cret" not in url.query


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (lines('awsProfileName="missing"'), "AWS profile missing cannot be used: ProfileNotFound"),
        (lines(), "AWS default credentials: AWS's SDK finds no credentials"),
        (lines('awsProfileName="p"', "my-kafka-1.example.com:9098"), "AWS profile p: no region: .* so set AWS_REGION"),
    ],
)
def test_what_is_missing_is_told_before_anybody_connects(load: Callable[..., FerryConfig], text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        load(text).clusters["A"].librdkafka()


def test_without_the_extra_its_name_is_told(load: Callable[..., FerryConfig], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "ferry.config.aws_iam", raising=False)
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", None)
    cluster = load(lines()).clusters["A"]
    with pytest.raises(ConfigError, match=r"needs AWS's signer library, here and on Spark's executors: pip install 'kafka-ferry\[aws\]'"):
        cluster.librdkafka()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ('awsMskRegionProvider="x.Y"', "has an option that Ferry does not offer: awsMskRegionProvider"),
        ('s3cret="x"', "has an option that Ferry does not offer: one that does not begin with aws"),
    ],
)
def test_unknown_options_are_refused_when_the_file_is_read(problems: Callable[..., list[str]], options: str, said: str) -> None:
    found = problems(lines(options))
    assert len(found) == 1
    assert said in found[0]
    assert "s3cret" not in found[0]
