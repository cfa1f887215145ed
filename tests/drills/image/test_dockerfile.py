"""The Dockerfile, carried out without Docker: each instruction in its order, in a bare Debian in which Airflow's image is stood in for.

A RUN is read from the file and runs as it stands there. A WORKDIR that is missing belongs to root, as older builders have it: BuildKit
gives it to the USER, so what works here works there too. An instruction that is not known here fails.
"""

from __future__ import annotations

import json
import re
import secrets
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.conftest import Lab
from tests.drills.image.stand_in import Root, airflow_image, bare_debian, missing
from tests.test_containers import COMPOSE, DOCKERFILE, PAGE, ROOT, SERVICES, ignored
from tools.kafka import compare_topics

from ferry import __version__

pytestmark = [pytest.mark.image, pytest.mark.airflow, pytest.mark.brokers, pytest.mark.spark]

CONFIG = ROOT / "setup" / "compose.properties"


@pytest.fixture(scope="module")
def image() -> Iterator[Root]:
    """The root after the last instruction."""
    if lacking := missing():
        pytest.skip(f"the Dockerfile is not carried out: {lacking}")
    with TemporaryDirectory(prefix="ferry-image-") as place:
        root = bare_debian(Path(place) / "root")
        for line in DOCKERFILE.replace("\\\n", " ").splitlines():
            if line and not line.startswith("#"):
                carry_out(root, *line.split(maxsplit=1))
        yield root


def carry_out(root: Root, name: str, rest: str) -> None:
    match name:
        case "FROM":
            (version,) = re.findall(r"^apache/airflow:(\S+)-python3\.11$", rest)
            airflow_image(root, version)
        case "USER":
            root.user = rest if ":" in rest else f"{rest}:0"
        case "WORKDIR":
            root.directory = rest
            root.inside(rest).mkdir(parents=True, exist_ok=True)
        case "ENV":
            root.environment |= dict(pair.split("=", 1) for pair in shlex.split(rest))
        case "COPY":
            copy(root, *rest.split())
        case "RUN":
            root.run(rest)
        case _:
            assert name == "EXPOSE", f"{name} is not known here"


def copy(root: Root, owner: str, *names: str) -> None:
    """The files themselves go into the last of `names`, of a folder what it holds; without what .dockerignore leaves out."""
    for source in (ROOT / name for name in names[:-1]):
        place = root.inside(names[-1])
        if source.is_dir():
            shutil.copytree(source, place, ignore=left_out, dirs_exist_ok=True)
        else:
            place = shutil.copy2(source, place)
        subprocess.run(["chown", "--recursive", owner.removeprefix("--chown="), place], check=True)


def left_out(folder: str, names: list[str]) -> set[str]:
    return {name for name in names if ignored((Path(folder) / name).relative_to(ROOT))}


def test_the_programs_run_as_airflows_user(image: Root) -> None:
    assert image.run("id -u; id -g; pwd").split() == ["50000", "0", "/opt/airflow"]
    assert image.run("ferry --version").split()[-1] == __version__
    assert 'version "17.' in image.run("java -version")
    image.run("ls $(python -c 'from ferry.airflow.page_docs import DOCS; print(DOCS)')/troubleshooting.md")
    assert image.run("airflow version").split()[-1] == re.findall(r"apache/airflow:([\d.]+)", DOCKERFILE)[0]


def test_every_package_finds_the_versions_that_it_needs(image: Root) -> None:
    """The lock is installed without a look at what the base image has."""
    assert "No broken requirements found." in image.run("pip check")


def test_it_copies_between_two_clusters(image: Root, lab: Lab) -> None:
    """Config, connection and sample records are those of compose.yaml, the plan is the page's; only the addresses are the sandbox's."""
    hosts = {"kafka-a:9092": lab.source.bootstrap, "kafka-b:9092": lab.target.bootstrap}

    def placed(text: str) -> str:
        return re.sub("|".join(hosts), lambda found: hosts[found[0]], text)

    variables = {
        "AIRFLOW_CONN_SPARK_DEFAULT": COMPOSE["x-airflow"]["environment"]["AIRFLOW_CONN_SPARK_DEFAULT"],
        "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(32),
    }
    image.inside(image.environment["FERRY_CONFIG"]).write_text(placed(CONFIG.read_text(encoding="utf-8")), encoding="utf-8")
    image.run(placed(shlex.join(SERVICES["sample-topics"]["command"])))
    (plan,) = re.findall(r"ferry:\S+ bash -c '(ferry plan .*)'$", PAGE, re.MULTILINE)
    assert "orders-zstd" in image.run(plan)

    image.run("airflow db migrate", variables)
    image.run("airflow dags list-import-errors --local", variables)
    _, _, listed = image.run("airflow dags list --local --output json", variables).rpartition("\n[")
    assert "ferry.A.B" in {dag["dag_id"] for dag in json.loads(f"[{listed}")}
    image.run("airflow dags test ferry.A.B", variables)
    topics = ("orders-zstd", "payments", "accounts", "clicks")
    found = compare_topics(lab.source.bootstrap, lab.target.bootstrap, {topic: f"A.{topic}" for topic in topics})
    assert found.equal, found
    assert found.records > 10_000
