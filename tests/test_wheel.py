"""The wheel holds all that an installation needs, and its core needs neither Airflow nor Spark."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from configparser import ConfigParser
from email import message_from_string
from pathlib import Path

import pytest
from tools.release.building import build

from ferry import __version__

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "include" / "ferry"
# Imports from the wheel, where nothing of Airflow, Spark or OpenTelemetry is installed.
WITHOUT = """
import sys
from importlib.machinery import PathFinder
class Rest:
    find_distributions = staticmethod(PathFinder.find_distributions)
    def find_spec(self, name, path=None, target=None):
        absent = name.split(".")[0] in {"airflow", "pyspark", "py4j", "pandas", "opentelemetry"}
        return None if absent else PathFinder.find_spec(name, path, target)
sys.meta_path = [Rest() if finder is PathFinder else finder for finder in sys.meta_path]
sys.path.insert(0, sys.argv[1])
import importlib
import ferry
assert ferry.__file__.startswith(sys.argv[1]), ferry.__file__
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def inside(unpacked: Path, program: str) -> str:
    command = [sys.executable, "-I", "-c", f"{WITHOUT}\n{program}", str(unpacked)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_it_holds_every_file_of_the_package_and_the_jobs_and_the_documentation(unpacked: Path) -> None:
    folders = {PACKAGE: "ferry", ROOT / "spark_jobs": "ferry/spark_jobs", ROOT / "docs": "ferry/docs"}
    wanted = {
        f"{name}/{path.relative_to(folder)}"
        for folder, name in folders.items()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    known = {"spark_jobs/copy_ranges.py", "page/static/main.js", "docs/examples/downstream.py", "docs/troubleshooting.md"}
    assert {f"ferry/{name}" for name in known} <= wanted
    assert {str(path.relative_to(unpacked)) for path in (unpacked / "ferry").rglob("*") if path.is_file()} == wanted


def test_what_it_says_of_itself(unpacked: Path) -> None:
    (folder,) = unpacked.glob("*.dist-info")
    told = message_from_string((folder / "METADATA").read_text(encoding="utf-8"))
    assert (told["Name"], told["Version"], told["License-Expression"]) == ("kafka-ferry", __version__, "Apache-2.0 AND MIT")
    assert {name.rpartition("/")[2] for name in told.get_all("License-File") or ()} == {
        "LICENSE", "LICENSE-htm.txt", "LICENSE-preact.txt", "LICENSE-uplot.txt",
    }  # fmt: skip
    assert set(told.get_all("Provides-Extra") or ()) == {"airflow", "spark", "otel", "aws", "kerberos", "openlineage"}
    core = [needed for needed in told.get_all("Requires-Dist") or () if "extra ==" not in needed]
    assert len(core) > 10
    # An Airflow that is there has pins of its own: of these the core wants nothing.
    assert not [needed for needed in core if needed.startswith(("apache-airflow", "pyspark", "pandas", "opentelemetry"))]
    points = ConfigParser()
    points.read(folder / "entry_points.txt")
    assert {name: dict(points[name]) for name in points.sections()} == {
        "console_scripts": {"ferry": "ferry.cli.main:main"},
        "airflow.plugins": {"ferry_page": "ferry.airflow.plugin:FerryPagePlugin"},
        "apache_airflow_provider": {"provider_info": "ferry.airflow.provider_info:get_provider_info"},
    }


def test_the_core_and_the_command_line_need_neither_airflow_nor_spark(unpacked: Path) -> None:
    rooms = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py") if path.parent.name not in {"airflow", "spark"})
    names = [f"ferry.{path.relative_to(PACKAGE).with_suffix('').as_posix().replace('/', '.')}" for room in rooms
             for path in (PACKAGE / room).rglob("*.py") if path.stem not in {"__init__", "kerberos"}]  # fmt: skip
    assert len(names) > 200
    inside(unpacked, f"for name in {names}: importlib.import_module(name)")


def test_spark_finds_its_job_in_the_package(unpacked: Path) -> None:
    found = inside(unpacked, "from ferry.spark.submit import COPY_JOB, job_file; print(job_file(COPY_JOB))")
    assert found == str(unpacked / "ferry" / "spark_jobs" / "copy_ranges.py")


@pytest.mark.parametrize(("program", "command"), [
    ("from ferry.spark.submit import spark_home as asked; asked()", "pip install 'kafka-ferry[spark]'"),
    ("import ferry.airflow.dags", "pip install 'kafka-ferry[airflow]'"),
])  # fmt: skip
def test_what_is_missing_is_an_error_that_names_the_command(unpacked: Path, program: str, command: str) -> None:
    before = "import os; from ferry.errors import FerryError; os.environ.pop('SPARK_HOME', None)"
    assert command in inside(unpacked, f"{before}\ntry:\n    {program}\nexcept FerryError as problem: print(problem)")


def test_metrics_without_opentelemetry_say_what_to_install(unpacked: Path) -> None:
    wanted = "import os; os.environ['OTEL_EXPORTER_OTLP_ENDPOINT'] = 'http://127.0.0.1:1'"
    program = f"{wanted}; from ferry.monitoring.sending import send; print(send([], 0))"
    assert "pip install 'kafka-ferry[otel]'" in inside(unpacked, program)


def test_the_list_of_providers_names_the_package_and_its_version(unpacked: Path) -> None:
    """Airflow refuses a provider whose information has another name than its package."""
    told = json.loads(inside(unpacked, "from ferry.airflow.provider_info import *; import json; print(json.dumps(get_provider_info()))"))
    assert (told["package-name"], told["versions"]) == ("kafka-ferry", [__version__])
    assert told["name"]
    assert told["description"]
