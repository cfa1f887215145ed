"""A run with Spark and a refused login leave no secret anywhere: arguments, environments, output, event log, files, topics."""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.drills.security.conftest import SNIPPETS, Grounds
from tests.drills.security.guarded import (
    AWS_KEY,
    AWS_ROLE,
    AWS_ROLE_SECRET,
    AWS_SECRET,
    AWS_SESSION,
    CLIENT_SECRET,
    KEY_PASSWORD,
    PASSWORD,
    STORE_PASSWORD,
)
from tests.drills.security.searching import Search, Watch

from ferry.config import Flow
from ferry.errors import ExitCode

pytestmark = [pytest.mark.spark, pytest.mark.brokers]

RUN_SECONDS = 900
VARIABLE = "FERRY_TEST_STORE"


def literal(lines: list[str]) -> list[str]:
    """The same lines with the secrets themselves in place of references, as in a file that was never cleaned up."""
    values = {"client": CLIENT_SECRET, "key": KEY_PASSWORD}
    for name, value in values.items():
        lines = [line.replace(reference, value) for line in lines for reference in [_reference(line, name)]]
    return lines


def _reference(line: str, name: str) -> str:
    beginning = line.find("${file:")
    end = line.find(f":{name}}}", beginning)
    return line[beginning : end + len(name) + 2] if 0 <= beginning < end else "\0"


def ferry(search: Search, tmp_path: Path, *arguments: str) -> tuple[subprocess.CompletedProcess[str], set[str]]:
    """Run a command under watch, with Spark's event log on and every temporary file below `tmp_path`."""
    for name in ("conf", "events", "local", "tmp"):
        (tmp_path / name).mkdir(exist_ok=True)
    (tmp_path / "conf" / "spark-defaults.conf").write_text(
        f"spark.eventLog.enabled true\nspark.eventLog.compress false\nspark.eventLog.dir file:{tmp_path}/events\nspark.ui.enabled true\n"
    )
    environment = {
        **os.environ,
        VARIABLE: STORE_PASSWORD,
        "SPARK_CONF_DIR": str(tmp_path / "conf"),
        "SPARK_LOCAL_DIRS": str(tmp_path / "local"),
        "TMPDIR": str(tmp_path / "tmp"),
        "FERRY_TRACEBACK": "1",
    }
    command = [str(Path(sys.executable).parent / "ferry"), *arguments]
    with (tmp_path / "out").open("w") as out, (tmp_path / "err").open("w") as err:
        process = subprocess.Popen(command, stdout=out, stderr=err, env=environment, start_new_session=True)
        with Watch(search, process.pid, tmp_path / "tmp", tmp_path / "local", leave=["store password"]) as watch:
            code = process.wait(RUN_SECONDS)
    done = subprocess.CompletedProcess(command, code, (tmp_path / "out").read_text(), (tmp_path / "err").read_text())
    search.look("output: stdout", done.stdout)
    search.look("output: stderr", done.stderr)
    return done, watch.processes


@pytest.mark.long
def test_a_run_leaves_no_secret_anywhere(grounds: Grounds, guarded_flow: Callable[..., Flow], tmp_path: Path) -> None:
    topic = f"t-{secrets.token_hex(4)}"
    plain = {"bootstrap.servers": grounds.source.address("PLAIN")}
    admin = AdminClient(plain)
    admin.create_topics([NewTopic(topic, 2, 1)])[topic].result(30)
    producer = Producer(plain)
    for number in range(200):
        producer.produce(topic, value=str(number).encode())
    assert producer.flush(30) == 0
    by_variable = f"${{env:{VARIABLE}}}"
    source = [line for line in literal(grounds.login(SNIPPETS["SASL OAUTHBEARER with client credentials"], "A")) if ".ssl." not in line]
    stores = literal(grounds.login(SNIPPETS["TLS with a client certificate"], "A"))
    stores = [
        line.replace(line.partition("= ")[2], by_variable) if "store.password" in line else line for line in stores if ".ssl." in line
    ]
    target = grounds.login(SNIPPETS["SASL PLAIN"], "B")
    flow = guarded_flow(
        grounds.source.address("SASL_TLS"),
        grounds.target.address("SASL_TLS"),
        *source,
        *stores,
        *target,
        f"A->B.topics = {topic}",
        "config.providers = file, env",
        "config.providers.env.class = org.apache.kafka.common.config.provider.EnvVarConfigProvider",
    )
    config = str(flow.source.path)
    written = Path(config).read_text()
    assert CLIENT_SECRET in written
    assert KEY_PASSWORD in written
    assert by_variable in written
    search = Search(
        {
            "password": PASSWORD,
            "store password": STORE_PASSWORD,
            "key password": KEY_PASSWORD,
            "client secret": CLIENT_SECRET,
            "private key": "".join(grounds.authority.client.key_pem().splitlines()[1:3]),
        }
    )
    report = tmp_path / "report.json"
    done, processes = ferry(search, tmp_path, "run", config, "--flow", flow.name, "--master", "local[2]", "--report", str(report), "--json")
    assert done.returncode == ExitCode.DONE, done.stderr
    assert '"records": 200' in done.stdout
    search.files("report", report)
    search.files("event log", tmp_path / "events")
    search.topics({"bootstrap.servers": grounds.target.address("PLAIN")}, "")
    search.topics(plain, "")
    # A refused login has most to say.
    Path(config).write_text(written.replace("secrets.properties:password", "secrets.properties:client"))
    refused, _ = ferry(search, tmp_path, "plan", config, "--flow", flow.name)
    assert refused.returncode != ExitCode.DONE
    assert "AuthenticationFailed" in refused.stderr
    assert search.found == set()
    assert "java" in processes
    events = "".join(path.read_text() for path in (tmp_path / "events").rglob("*") if path.is_file())
    assert '"spark.ui.enabled":"false"' in events
    looked_at = {"arguments", "environment", "output", "report", "event log", "topic"}
    assert '"spark.app.name"' in events  # not compressed: it could be searched
    assert {kind for kind, size in search.looked_at.items() if size > 100} >= looked_at


OWN_OPTION = "option-s3cret=of+the/class"
PLAIN_TOKENS = """
from pathlib import Path


class PlainTokens:
    def configure(self, options):
        self.path, self.password = options["path"], options["password"]

    def token(self):
        import time
        return Path(self.path).read_text(), time.time() + 600
"""


@pytest.mark.long
def test_logins_by_tokens_leave_no_secret_anywhere(
    grounds: Grounds, guarded_flow: Callable[..., Flow], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From an AWS role that is assumed with keys in the file, to a class of one's own that has a secret option."""
    topic = f"t-{secrets.token_hex(4)}"
    plain = {"bootstrap.servers": grounds.source.address("PLAIN")}
    admin = AdminClient(plain)
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
    producer = Producer(plain)
    producer.produce(topic, value=b"1")
    assert producer.flush(30) == 0
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "plain_tokens.py").write_text(PLAIN_TOKENS)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path / "modules"), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.syspath_prepend(tmp_path / "modules")
    role = f'awsRoleArn="{AWS_ROLE}" awsRoleAccessKeyId="{AWS_KEY}" awsRoleSecretAccessKey="{AWS_SECRET}"'
    source = SNIPPETS["AWS IAM"].replace('awsProfileName="ferry"', role)
    options = f'path="{grounds.directory}/token" password="{OWN_OPTION}"'
    target = SNIPPETS["SASL OAUTHBEARER with a class of your own"].replace("entra_tokens:EntraTokens", "plain_tokens:PlainTokens")
    target = re.sub(r'scope="[^"]*"', options, target)
    addresses = grounds.source.address("AWS_TLS"), grounds.target.address("SASL_TLS")
    flow = guarded_flow(*addresses, *grounds.login(source, "A"), *grounds.login(target, "B"), f"A->B.topics = {topic}")
    config = Path(flow.source.path)
    search = Search(
        {
            "keys": AWS_SECRET,
            "keys of the role": AWS_ROLE_SECRET,
            "session": AWS_SESSION,
            "option": OWN_OPTION,
            "token": (grounds.directory / "token").read_text(),
            "passphrase": KEY_PASSWORD,
        }
    )
    report = tmp_path / "report.json"
    done, _ = ferry(search, tmp_path, "run", str(config), "--flow", flow.name, "--master", "local[1]", "--report", str(report), "--json")
    assert done.returncode == ExitCode.DONE, done.stderr
    assert '"records": 1' in done.stdout
    search.files("report", report)
    search.files("event log", tmp_path / "events")
    search.topics({"bootstrap.servers": grounds.target.address("PLAIN")}, "")
    # Refused logins have most to say.
    written = config.read_text()
    config.write_text(written.replace(AWS_ROLE, "arn:aws:iam::1:role/x"))
    refused, _ = ferry(search, tmp_path, "plan", str(config), "--flow", flow.name)
    assert "AccessDenied" in refused.stderr
    assertion = literal(grounds.login(SNIPPETS["SASL OAUTHBEARER with a JWT assertion"], "A"))
    assert any(KEY_PASSWORD in line for line in assertion)
    lines = [line.replace("A.", f"{flow.source.alias}.", 1).replace("ES256", "RS256") for line in assertion]
    others = [line for line in written.splitlines() if not line.startswith((f"{flow.source.alias}.s", f"{flow.source.alias}.boot"))]
    address = f"{flow.source.alias}.bootstrap.servers = {grounds.source.address('SASL_TLS')}"
    config.write_text("\n".join([*others, address, *lines]) + "\n")
    refused, _ = ferry(search, tmp_path, "plan", str(config), "--flow", flow.name)
    assert "is not of the kind that RS256 needs" in refused.stderr
    assert search.found == set()
    looked_at = {"arguments", "environment", "output", "report", "event log", "topic"}
    assert {kind for kind, size in search.looked_at.items() if size > 100} >= looked_at
