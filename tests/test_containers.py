"""The Dockerfile and compose.yaml, as far as they can be judged without a Docker daemon."""

from __future__ import annotations

import importlib
import re
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml

from ferry.config import load_config
from ferry.sandbox.jars import KAFKA_VERSION

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[1]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, Any] = COMPOSE["services"]
PAGE = (ROOT / "docs" / "containers.md").read_text(encoding="utf-8")
LOCK = (ROOT / "requirements.txt").read_text(encoding="utf-8")
ONCE = {"migrate", "sample-topics"}
AIRFLOW_COMMANDS = {"api-server", "scheduler", "dag-processor", "triggerer", "db", "python"}


def instructions(name: str) -> list[str]:
    """The arguments of every instruction of that name, continued lines joined."""
    return re.findall(rf"^{name} (.*)$", DOCKERFILE.replace("\\\n", " "), re.MULTILINE)


def ignored(path: Path) -> bool:
    """Whether .dockerignore keeps the path, or a directory above it, out of the build."""
    patterns = [line for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    names = [path.as_posix(), *(parent.as_posix() for parent in path.parents if parent != Path())]
    return any(
        fnmatch(name, pattern) or (pattern.startswith("**/") and fnmatch(name, pattern[3:])) for name in names for pattern in patterns
    )


def test_the_base_image_is_the_airflow_of_the_lock() -> None:
    (image,) = instructions("FROM")
    version = re.search(r"^apache-airflow==(\S+)", LOCK, re.MULTILINE)
    assert version is not None
    assert image == f"apache/airflow:{version[1]}-python3.11"


def test_everything_that_is_copied_is_there_and_not_ignored() -> None:
    copied = [Path(source) for line in instructions("COPY") for source in line.split()[1:-1]]
    assert {Path("requirements.txt"), Path("include"), Path("spark_jobs"), Path("dags")} <= set(copied)
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]["targets"]["wheel"]
    for part in map(Path, wheel["only-include"]):
        assert {part, *part.parents} & set(copied), f"the wheel has {part}, the image does not"
    for source in copied:
        assert (ROOT / source).exists(), source
        files = [source] if (ROOT / source).is_file() else [file.relative_to(ROOT) for file in (ROOT / source).rglob("*.py")]
        assert files
        assert not any(ignored(file) for file in files), source
    assert ignored(Path(".git/config"))
    assert ignored(Path("tests/test_containers.py"))


def test_commands_in_python_import_what_is_there() -> None:
    scripts = [service["command"][2] for service in SERVICES.values() if service.get("command", [])[:2] == ["python", "-c"]]
    imported = [found for script in scripts for found in re.findall(r"from (\S+) import (\w+)", script)]
    assert len(imported) >= len(scripts) > 0
    for module, name in imported:
        assert hasattr(importlib.import_module(module), name), f"{module} has no {name}"


def test_what_is_installed_is_the_lock_and_this_source() -> None:
    installs = [line for line in instructions("RUN") if "pip install" in line]
    assert len(installs) == 2
    assert all("--no-deps" in line and "--no-cache-dir" in line for line in installs)
    assert "--require-hashes -r requirements.txt" in installs[0]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [needed for extra in ("airflow", "spark", "otel") for needed in project["optional-dependencies"][extra]]
    wanted = [re.split(r"[<>=]", needed)[0] for needed in (*project["dependencies"], *extras)]
    locked = set(re.findall(r"^([a-z0-9-]+)==", LOCK, re.MULTILINE))
    assert len(wanted) > 10
    assert set(wanted) <= locked


def test_it_does_not_run_as_root_and_needs_no_secret() -> None:
    assert re.fullmatch(r"[1-9]\d*:0", instructions("USER")[-1])
    assert not re.search(r"password|secret|token", DOCKERFILE, re.IGNORECASE)


def test_no_image_floats() -> None:
    images = {service["image"] for service in SERVICES.values()} | set(instructions("FROM"))
    assert all(re.search(r":[^:/]*\d+\.\d+", image) for image in images), images
    assert SERVICES["kafka-a"]["image"] == SERVICES["kafka-b"]["image"] == f"apache/kafka:{KAFKA_VERSION}"


def test_services_are_watched_and_wait_for_each_other() -> None:
    for name, service in SERVICES.items():
        assert ("healthcheck" in service) == (name not in ONCE), name
        for other, awaited in service.get("depends_on", {}).items():
            condition = awaited["condition"]
            assert condition == ("service_completed_successfully" if other in ONCE else "service_healthy"), (name, other)
        if service["image"].startswith("ferry:"):
            assert service["command"][0] in AIRFLOW_COMMANDS
    assert [name for name, service in SERVICES.items() if "build" in service] == ["migrate"]


def test_nothing_listens_beyond_this_machine() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", ())]
    assert ports == ["127.0.0.1:8080:8080"]
    assert instructions("EXPOSE") == ["8080"]


def test_volumes_and_files_are_there() -> None:
    for service in SERVICES.values():
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert (ROOT / source).is_file() if source.startswith("./") else source in COMPOSE["volumes"], volume


def test_every_secret_comes_from_outside_and_is_documented() -> None:
    text = (ROOT / "compose.yaml").read_text(encoding="utf-8")
    names = set(re.findall(r"(?<!\$)\$\{(\w+)", text))
    assert names == set(re.findall(r"\$\{(\w+):\?", text)), "a variable without which compose would go on"
    assert names
    assert all(f"{name}=" in PAGE for name in names)


def test_the_flow_is_between_the_two_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    (flow,) = load_config(ROOT / "setup" / "compose.properties").flows
    for cluster in (flow.source, flow.target):
        host = cluster.bootstrap.split(":")[0]
        assert SERVICES[host]["environment"]["KAFKA_ADVERTISED_LISTENERS"] == f"PLAINTEXT://{cluster.bootstrap}"
    assert flow.schedule
    ids = [SERVICES[name]["environment"]["CLUSTER_ID"] for name in ("kafka-a", "kafka-b")]
    assert len(set(ids)) == 2
    mounted = SERVICES["scheduler"]["volumes"][0].split(":")[1]
    assert f"FERRY_CONFIG={mounted}" in DOCKERFILE
