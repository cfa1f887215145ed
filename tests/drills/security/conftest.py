"""Guarded clusters, and the logins of docs/security.md as settings for them."""

from __future__ import annotations

import re
import secrets
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from tests.certificates import Authority
from tests.drills.security.aws_sts import security_token_service
from tests.drills.security.guarded import (
    AWS_REGION,
    CLIENT_ID,
    CLIENT_SECRET,
    KEY_PASSWORD,
    PASSWORD,
    STORE_PASSWORD,
    Guarded,
    start_guarded,
    write_materials,
)
from tests.drills.security.token_endpoint import TokenEndpoint

from ferry.config import Flow, load_config
from ferry.config.kept_tokens import token_of_process

PAGE = (Path(__file__).parents[3] / "docs" / "security.md").read_text(encoding="utf-8")
SNIPPETS = dict(re.findall(r"^### ([^\n]+)\n(?:(?!^#).)*?```properties\n(.*?)```", PAGE, re.MULTILINE | re.DOTALL))
# It needs a KDC, so it has tests of its own.
KERBEROS = SNIPPETS.pop("Kerberos")
OWN_CLASS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0]
BAD_CLASSES = """

class Wrong:
    def token(self):
        return "not-signed", 2e9


class Failing:
    def token(self):
        raise ValueError("s3cret")


class Lonely:
    def token(self):
        raise ConnectionRefusedError("s3cret")
"""
# What `A` and `B` stand for at the start of a line, and in the list of clusters.
ALIASES = re.compile(r"^(clusters = )A, B|^([AB])(?:(->)([AB]))?(?=\.)")
PLAIN = "A.security.protocol = PLAINTEXT\n"


@dataclass(frozen=True)
class Grounds:
    """Two clusters with every kind of listener, a token endpoint, and the directory that stands for /etc/ferry."""

    source: Guarded
    target: Guarded
    endpoint: TokenEndpoint
    directory: Path
    authority: Authority

    def login(self, snippet: str, alias: str) -> list[str]:
        """Lines of the page for cluster `alias`, with this machine's files and endpoint."""
        url = self.endpoint.https if "SSL" in snippet else self.endpoint.http
        text = snippet.replace("/etc/ferry", str(self.directory)).replace("https://login.example.com/token", url)
        return [line.replace("A.", f"{alias}.", 1) for line in text.splitlines()]


@pytest.fixture(scope="session")
def grounds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grounds]:
    """Everything, once for the session."""
    directory = tmp_path_factory.mktemp("etc-ferry")
    authority = write_materials(directory)
    # In JAAS, quotes and backslashes of a value are escaped; in a properties file, backslashes once more.
    password = PASSWORD.replace("\\", "\\\\").replace('"', '\\"').replace("\\", "\\\\")
    secret_lines = {"password": password, "store": STORE_PASSWORD, "key": KEY_PASSWORD, "client": CLIENT_SECRET}
    (directory / "secrets.properties").write_text("".join(f"{key}={value}\n" for key, value in secret_lines.items()))
    (directory / "secrets.properties").chmod(0o600)
    (directory / "modules").mkdir()
    (directory / "modules" / "entra_tokens.py").write_text(OWN_CLASS + BAD_CLASSES)
    certificate = authority.client.certificate_pem
    with TokenEndpoint(directory / "broker.pem", CLIENT_ID, CLIENT_SECRET, certificate) as endpoint, ExitStack() as running:
        (directory / "token").write_text(endpoint.token())
        running.enter_context(surroundings(directory, endpoint))
        source, target = start_guarded(directory, ["guarded-source", "guarded-target"], endpoint, running)
        yield Grounds(source, target, endpoint, directory, authority)


@contextmanager
def surroundings(directory: Path, endpoint: TokenEndpoint) -> Iterator[None]:
    """What the logins of the page find on their machine: AWS's files, and a class that gets tokens with another library's help."""
    azure, identity = ModuleType("azure"), ModuleType("azure.identity")

    class Credential:
        def get_token(self, scope: str) -> SimpleNamespace:
            endpoint.granted += 1
            return SimpleNamespace(token=endpoint.token(), expires_on=int(time.time() + endpoint.life), scope=scope)

    azure.identity, identity.DefaultAzureCredential = identity, Credential  # type: ignore[attr-defined]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "azure", azure)
        patch.setitem(sys.modules, "azure.identity", identity)
        patch.syspath_prepend(directory / "modules")
        patch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(directory / "aws-credentials"))
        patch.setenv("AWS_CONFIG_FILE", str(directory / "aws-config"))
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        patch.setenv("AWS_REGION", AWS_REGION)
        with security_token_service() as (url, _):
            patch.setenv("AWS_ENDPOINT_URL_STS", url)
            yield


@pytest.fixture(autouse=True)
def _fresh_tokens() -> None:
    """No test gets a token that another one made with another life."""
    token_of_process.cache_clear()


@pytest.fixture
def guarded_flow(tmp_path: Path) -> Callable[..., Flow]:
    """A flow A->B of fresh aliases: `guarded_flow(source address, target address, *lines)`; `A` and `B` begin the lines."""

    def load(source: str, target: str, *lines: str) -> Flow:
        mark = secrets.token_hex(3)
        text = [
            "clusters = A, B",
            f"A.bootstrap.servers = {source}",
            f"B.bootstrap.servers = {target}",
            "A->B.enabled = true",
            "B->A.emit.heartbeats.enabled = false",
            "A->B.heartbeats.replication.enabled = false",
            "replication.factor = 1",
            "ferry.internal.topics.replication.factor = 1",
            "config.providers = file",
            "config.providers.file.class = org.apache.kafka.common.config.provider.FileConfigProvider",
            *lines,
        ]
        path = tmp_path / f"mm2-{mark}.properties"
        names = {"A": f"a{mark}", "B": f"b{mark}"}
        own = [ALIASES.sub(partial(_own, names), line) for line in text]
        path.write_text("\n".join(own) + "\n", encoding="latin-1")
        return load_config(path).flows[0]

    return load


def _own(names: dict[str, str], found: re.Match[str]) -> str:
    if found[1]:
        return f"{found[1]}{names['A']}, {names['B']}"
    return names[found[2]] + (f"->{names[found[4]]}" if found[3] else "")
