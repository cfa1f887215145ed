"""Ferry installed by pip into every minor release of Airflow that it runs on: no checkout on the path, no folder copied.

Each release gets a bare virtual environment with the Python that its row names, and the packages of its own time, as with Airflow's
constraints. Then Ferry comes, and may change no package of Airflow.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from demo.airflow_services import DemoAirflow
from tests.conftest import Lab
from tests.virtual_environment import install, virtual_environment
from tools.kafka import compare_topics
from tools.release.building import ROOT, build

from ferry import __version__
from ferry.config import load_config

pytestmark = [pytest.mark.installing, pytest.mark.airflow, pytest.mark.brokers, pytest.mark.spark]

# By release of Airflow: Python, and the day whose packages are installed; none: today's.
RELEASES = {"3.0": ("3.11", "2025-09-20"), "3.1": ("3.11", "2026-03-20"), "3.2": ("3.12", "2026-06-20"), "3.3": ("3.13", "")}
# A server that has not started by then hangs.
START_SECONDS = 300.0


@dataclass(frozen=True)
class Installed:
    """An Airflow with Ferry in it."""

    python: Path
    home: Path
    config: Path

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("HOME", "JAVA_HOME", "LANG") if name in os.environ}
        return {
            **kept,
            "PATH": f"{self.python.parent}:/usr/local/bin:/usr/bin:/bin",
            "AIRFLOW_HOME": str(self.home),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": "0",
            "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
            "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(32),
            "AIRFLOW_CONN_SPARK_DEFAULT": '{"conn_type": "spark", "host": "local[2]"}',
            "FERRY_CONFIG": str(self.config),
        }

    def command(self, *arguments: str) -> list[str]:
        return [str(self.python), "-m", "airflow", *arguments]

    def airflow(self, *arguments: str) -> str:
        done = subprocess.run(self.command(*arguments), env=self.environment, cwd=self.home, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
        return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture
def topic(lab: Lab) -> str:
    """600 records in three partitions."""
    name = lab.topic(lab.source, partitions=3)
    producer = Producer({"bootstrap.servers": lab.source.bootstrap})
    for number in range(600):
        producer.produce(name, value=str(number).encode(), partition=number % 3)
    assert producer.flush(30) == 0
    return name


@pytest.fixture(params=RELEASES)
def installed(request: pytest.FixtureRequest, wheel: Path, tmp_path: Path, topic: str, config_file: Callable[..., Path]) -> Installed:
    release = request.param
    home, place = tmp_path / "airflow", tmp_path / "venv"
    (home / "dags").mkdir(parents=True)
    (home / "dags" / "replication.py").write_text("from ferry.airflow.dags import flows\n\nflows()\n")
    version, day = RELEASES[release]
    python = virtual_environment(place, version, f"apache-airflow=={release}.*", "apache-airflow-providers-apache-spark", day=day)
    before = airflows(python)
    install(python, f"kafka-ferry[airflow,spark] @ {wheel.as_uri()}")
    assert before.items() <= airflows(python).items()
    return Installed(python, home, config_file(f"A->B.topics = {topic}"))


@pytest.fixture(params=RELEASES)
def without_spark(request: pytest.FixtureRequest, wheel: Path, tmp_path: Path, config_file: Callable[..., Path]) -> Installed:
    """Ferry without an extra, in an Airflow that has none of the packages of the extras."""
    home, place = tmp_path / "airflow", tmp_path / "venv"
    (home / "dags").mkdir(parents=True)
    (home / "dags" / "replication.py").write_text("from ferry.airflow.dags import flows\n\nflows()\n")
    version, day = RELEASES[request.param]
    python = virtual_environment(place, version, f"apache-airflow=={request.param}.*", day=day)
    install(python, f"kafka-ferry @ {wheel.as_uri()}")
    assert not {"apache-airflow-providers-apache-spark", "apache-airflow-providers-openlineage"} & airflows(python).keys()
    return Installed(python, home, config_file("A->B.topics = orders"))


def airflows(python: Path) -> dict[str, str]:
    """The versions of Airflow's packages."""
    return {name: version for name, version in versions(python).items() if name.startswith("apache-airflow")}


def versions(python: Path) -> dict[str, str]:
    names = "import importlib.metadata as m, json; print(json.dumps({d.name: d.version for d in m.distributions()}))"
    found: dict[str, str] = json.loads(subprocess.run([python, "-c", names], capture_output=True, text=True, check=True).stdout)
    return found


def test_pip_is_enough(installed: Installed, topic: str, lab: Lab) -> None:
    installed.airflow("db", "migrate")
    providers = {entry["package_name"]: entry for entry in json.loads(installed.airflow("providers", "list", "--output", "json"))}
    assert providers["kafka-ferry"]["version"] == __version__
    assert "ferry_page" in installed.airflow("plugins", "--output", "json")

    flow = load_config(installed.config).flows[0]
    if "3.0" in installed.airflow("version"):
        installed.airflow("dags", "reserialize")  # its `dags test` activates no assets
    said = installed.airflow("dags", "test", f"ferry.{flow.source.alias}.{flow.target.alias}")
    assert "600 records" in said
    found = compare_topics(lab.source.bootstrap, lab.target.bootstrap, {topic: f"{flow.source.alias}.{topic}"})
    assert (found.equal, found.records) == (True, 600)


def test_the_api_server_has_the_page_behind_its_login(installed: Installed) -> None:
    installed.airflow("db", "migrate")
    with serving(installed) as address:
        assert status_of(f"{address}/ferry/api/overview") == 401
        assert status_of(f"{address}/ferry/no/such/route") == 404


def test_airflow_and_the_page_work_without_the_spark_provider(without_spark: Installed) -> None:
    without_spark.airflow("db", "migrate")
    assert "ferry_page" in without_spark.airflow("plugins", "--output", "json")
    dags = subprocess.run(
        without_spark.command("dags", "list-import-errors", "--local"),
        env=without_spark.environment,
        cwd=without_spark.home,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "apache-airflow-providers-apache-spark" in "".join(dags.stdout.split()), dags.stdout + dags.stderr
    with serving(without_spark) as address:
        assert status_of(f"{address}/ferry/api/overview") == 401
        passwords = json.loads((without_spark.home / "simple_auth_manager_passwords.json.generated").read_text())
        login = {"username": "admin", "password": passwords["admin"]}
        token = answer_of(f"{address}/auth/token", json.dumps(login).encode(), **{"Content-Type": "application/json"})["access_token"]
        told = answer_of(f"{address}/ferry/api/overview", Authorization=f"Bearer {token}")
    (flow,) = told["flows"]
    assert flow["problem"] is None, "the clusters were read"
    assert "pip install apache-airflow-providers-apache-spark" in told["problem"]["next_step"]


class Served(DemoAirflow):
    """Services of an Airflow to which nobody has said anything about Ferry."""

    def __init__(self, python: Path, home: Path) -> None:
        super().__init__(home, home)
        self.python = str(python)
        self.home = home

    def environment(self) -> dict[str, str]:
        if not self._state:  # they have not been started
            return {**os.environ, "AIRFLOW_HOME": str(self.home)}
        told = {name: value for name, value in super().environment().items() if name not in {"FERRY_CONFIG", "AIRFLOW_CONN_SPARK_DEFAULT"}}
        folders = {f"AIRFLOW__CORE__{name.upper()}_FOLDER": str(self.home / name) for name in ("dags", "plugins")}
        # It looks for no new DAG file during the test, however long that takes.
        return told | folders | {"AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": "0", "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "86400"}

    def doctor(self, config: Path) -> str | None:
        """The next step."""
        command = [str(Path(self.python).parent / "ferry"), "doctor", str(config), "--airflow", "--json"]
        done = subprocess.run(command, env=self.environment(), cwd=self.home, capture_output=True, text=True, check=False)
        document = json.loads(done.stdout)
        assert done.returncode == (0 if document["next"] is None else 5), done.stdout + done.stderr
        step: str | None = document["next"]
        return step

    def types(self, line: str) -> None:
        done = subprocess.run(["bash", "-c", line], env=self.environment(), cwd=self.home, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]


@pytest.mark.parametrize("release", RELEASES)
def test_the_doctor_leads_from_a_bare_airflow_to_a_green_run(release: str, wheel: Path, tmp_path: Path, topic: str, lab: Lab) -> None:
    """Only what it says is done: each step is one line."""
    version, day = RELEASES[release]
    python = virtual_environment(tmp_path / "venv", version, f"apache-airflow=={release}.*", day=day)
    install(python, f"kafka-ferry @ {wheel.as_uri()}")
    config = lab.config(f"A->B.topics = {topic}")
    dag = "ferry.{0.source.alias}.{0.target.alias}".format(load_config(config).flows[0])
    home = tmp_path / "airflow"
    home.mkdir()
    served = Served(python, home)

    assert served.doctor(config) == "pip install apache-airflow-providers-apache-spark"
    install(python, "apache-airflow-providers-apache-spark")
    if "pyspark" not in versions(python):  # since its release 6 the provider brings the client alone
        spark = f"pyspark=={versions(python)['pyspark-client']}"
        assert served.doctor(config) == f"pip install 'kafka-ferry[spark]' {spark}"
        install(python, f"kafka-ferry[spark] @ {wheel.as_uri()}", spark)
    assert str(served.doctor(config)).startswith("start Airflow")
    try:
        served.start()
        step = served.doctor(config)
        assert (
            step == f"mkdir -p {home}/dags && echo 'from ferry.airflow.dags import flows; flows(\"{config}\")' > {home}/dags/replication.py"
        )
        served.types(step)
        step = served.doctor(config)
        assert step == (
            "airflow connections add spark_default --conn-type spark --conn-host 'local[2]'"
            " && airflow dags reserialize --bundle-name dags-folder"
            f" && airflow dags unpause {dag} && airflow dags trigger {dag}"
        )
        served.types(step)
        while step := served.doctor(config):
            if step.startswith(
                "airflow dags reserialize"
            ):  # after a second try of a task, 3.0 calls a file that it has not looked for gone
                served.types(step)
            else:
                assert step.startswith("wait until it has ended"), step
    finally:
        served.stop()
    found = compare_topics(lab.source.bootstrap, lab.target.bootstrap, {topic: dag.split(".")[1] + f".{topic}"})
    assert (found.equal, found.records) == (True, 600)


LINES = ["{wheel}[airflow,spark]", "kafka-ferry[airflow,spark] @ git+{clone}", "{folder}[airflow,spark]"]


@pytest.mark.parametrize("line", LINES)
def test_the_lines_of_the_documentation_install_ferry(line: str, wheel: Path, tmp_path: Path) -> None:
    """docs/airflow.md has them. Where Ferry is, an extra needs no index that knows Ferry."""
    clone = tmp_path / "ferry"
    subprocess.run(["git", "clone", "--quiet", ROOT.as_uri(), clone], check=True)
    subprocess.run(["git", "-C", clone, "checkout", "--quiet", "-B", "main"], check=True)  # the checkout may be detached
    python = virtual_environment(tmp_path / "venv", "3.11", "pip")
    page = (ROOT / "docs" / "airflow.md").read_text(encoding="utf-8")
    (spark,) = set(re.findall(r"(pyspark==\S+ pyspark-client==\S+)$", page, re.MULTILINE))
    wanted = line.format(wheel=wheel, clone=clone.as_uri(), folder=clone)
    install(python, *spark.split(), wanted, constraints=pinned(tmp_path))
    found = "import pyspark, ferry.spark.submit as s; print(s.spark_home())"
    said = subprocess.run([python, "-c", found], capture_output=True, text=True, check=True, env={"PATH": "/usr/bin:/bin"}).stdout
    assert Path(said.strip(), "bin", "spark-submit").is_file()
    assert {"apache-airflow", "apache-airflow-providers-apache-spark"} <= airflows(python).keys()
    for extra in ("otel", "aws"):
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--constraint", pinned(tmp_path), f"kafka-ferry[{extra}]"], check=True)
    check = "import opentelemetry.sdk, opentelemetry.exporter.otlp, aws_msk_iam_sasl_signer"
    subprocess.run([python, "-c", check], check=True)


def pinned(folder: Path) -> Path:
    """The locked versions without their hashes: packages that the machine has already."""
    found = folder / "pins.txt"
    lock = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    found.write_text("\n".join(re.findall(r"^[\w.-]+(?:\[\w+\])?==[^\s;\\]+", lock, re.MULTILINE)))
    return found


@contextmanager
def serving(installed: Installed) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    log = installed.home / "api-server.log"
    with log.open("w") as told:
        server = subprocess.Popen(
            installed.command("api-server", "--host", "127.0.0.1", "--port", str(port)),
            env=installed.environment,
            cwd=installed.home,
            stdout=told,
            stderr=told,
        )
    try:
        deadline = time.monotonic() + START_SECONDS
        while status_of(f"http://127.0.0.1:{port}/api/v2/version") != 200:
            assert server.poll() is None, log.read_text()[-4000:]
            assert time.monotonic() < deadline, log.read_text()[-4000:]
            time.sleep(1)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


def answer_of(address: str, body: bytes | None = None, **headers: str) -> Any:
    asked = urllib.request.Request(address, body, headers)  # noqa: S310 - http on loopback
    with urllib.request.urlopen(asked, timeout=60) as answer:  # noqa: S310 - likewise
        return json.load(answer)


def status_of(address: str) -> int:
    """The status of the answer; 0: there is none."""
    try:
        with urllib.request.urlopen(address, timeout=30) as answer:  # noqa: S310 - http on loopback
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        return refused.code
    except OSError:
        return 0
