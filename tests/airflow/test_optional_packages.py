"""Ferry in an Airflow without a package that Ferry does not require: Airflow starts, has the page, and a message names the package.

The modules are imported where one package after the other cannot be. `make airflow-releases` installs such environments.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.airflow

ROOT = Path(__file__).parents[2]
# By extra of the package: the modules of its requirements. Of what Airflow itself requires: those that are taken away from Ferry alone.
EXTRAS: dict[str, tuple[tuple[str, ...], ...]] = {
    "airflow": (("airflow.providers.apache",), ("airflow.providers.standard",)),
    "spark": (("pyspark", "py4j", "pandas", "numpy", "pyarrow"),),
    "otel": (("opentelemetry",),),
    "aws": (("aws_msk_iam_sasl_signer", "boto3", "botocore"),),
    "kerberos": (("gssapi",),),
    "openlineage": (("openlineage",), ("airflow.providers.openlineage",)),
}
SPARK_PROVIDER, STANDARD_PROVIDER = (names[0] for names in EXTRAS["airflow"])
OTHERS = ("airflow.providers.fab", "airflow.providers.cncf")
# What cannot be imported without it: only what makes DAGs, and what the OpenLineage provider calls.
DAGS = {"dags", "recovering", "recovery_dags", "spark_operators", "verify_dag"}
LACKING = {
    SPARK_PROVIDER: DAGS,
    STANDARD_PROVIDER: {"recovery_dags"},
    "openlineage": {"lineage"},
    "airflow.providers.openlineage": {"lineage"},
}
ALL = "all of them"
PROGRAM = """
import importlib, json, os, pkgutil, sys
def modules():
    import ferry.airflow
    return ["ferry.airflow." + module.name for module in pkgutil.iter_modules(ferry.airflow.__path__)]
for module in modules():  # once, so that all that is there is loaded
    importlib.import_module(module)
def remove(names):
    for name in [name for name in sys.modules if any(name == one or name.startswith(one + ".") for one in names)]:
        del sys.modules[name]
class Absent:
    names = ()
    def find_spec(self, name, path=None, target=None):
        if any(name == one or name.startswith(one + ".") for one in self.names):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent)
def without(names):
    Absent.names, Absent.find_spec = names, Absent().find_spec
    remove([*names, "ferry"])
    from ferry.airflow.plugin import FerryPagePlugin
    found = {"page": [app["name"] for app in FerryPagePlugin().fastapi_apps], "lacking": {}}
    for module in modules():
        try:
            importlib.import_module(module)
        except Exception as problem:
            found["lacking"][module.rpartition(".")[2]] = [type(problem).__name__, str(problem)]
    return found
for names in json.loads(sys.argv[1]):
    sys.stdout.flush()
    if not os.fork():
        try:
            print(json.dumps(["found", names, without(names)]), flush=True)
        finally:
            os._exit(0)
    os.wait()
"""


def test_every_extra_is_taken_away() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert EXTRAS.keys() == project["optional-dependencies"].keys()


@pytest.mark.long
def test_airflow_has_its_page_and_every_module_that_does_not_need_the_package(tmp_path: Path) -> None:
    each = [*(names for groups in EXTRAS.values() for names in groups), OTHERS]
    asked = [*each, [name for names in each for name in names]]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, json.dumps(asked)],
        env={**os.environ, "AIRFLOW_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('["found"')]
    found = {ALL if names == asked[-1] else names[0]: what for _, names, what in told}
    assert [what["page"] for what in found.values()] == [["Ferry"]] * (len(each) + 1), done.stderr[-4000:]
    wanted = {names[0]: LACKING.get(names[0], set()) for names in each} | {ALL: DAGS | {"lineage"}}
    assert {name: set(what["lacking"]) for name, what in found.items()} == wanted
    errors = {kind for what in found.values() for module, (kind, _) in what["lacking"].items() if module == "dags"}
    assert errors == {"ConfigError"}
    assert "apache-airflow-providers-apache-spark" in found[SPARK_PROVIDER]["lacking"]["dags"][1]
