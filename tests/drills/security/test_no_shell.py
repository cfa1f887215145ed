"""Values of files, arguments and parameters are values: no shell, template or substitution runs what they say."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.conftest import Lab

ROOT = Path(__file__).parents[3]
CODE = [path for room in ("include", "dags", "spark_jobs", "benchmarks") for path in (ROOT / room).rglob("*.py")]
RUN_SECONDS = 900
# Executed by a shell, by Jinja, or by Java's and Spark's substitutions, each of these would leave a file or another text.
HOSTILE = 'it\'s "x" $(touch never) `touch never`; touch never #{{ 7 * 7 }} ${env:HOME} %s\\'


@pytest.mark.unit
def test_no_subprocess_is_given_to_a_shell() -> None:
    assert len(CODE) > 200
    found = [f"{path.name}:{node.lineno}" for path in CODE for node in ast.walk(ast.parse(path.read_text())) if _shells(node)]
    assert found == []


def _shells(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = ast.unparse(node.func)
    if name in {"os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput", "eval", "exec"}:
        return True
    text = name.startswith("subprocess.") and node.args and isinstance(node.args[0], ast.Constant | ast.JoinedStr)
    # Typer's completion script is *of* a shell; nothing is run.
    return bool(text) or (name != "get_completion_script" and any(word.arg == "shell" for word in node.keywords))


@pytest.mark.unit
@pytest.mark.parametrize("call", ["subprocess.run(x, shell=True)", "os.system('x')", "subprocess.Popen(f'{x} y')", "eval(x)"])
def test_the_audit_finds_shells(call: str) -> None:
    assert any(_shells(node) for node in ast.walk(ast.parse(call)))


def ferry(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).parent / "ferry"), *arguments]
    environment = {**os.environ, "TMPDIR": str(directory)}
    return subprocess.run(command, capture_output=True, text=True, timeout=RUN_SECONDS, check=False, cwd=directory, env=environment)


@pytest.mark.long
@pytest.mark.brokers
@pytest.mark.spark
def test_a_run_with_hostile_values_copies_and_executes_none(lab: Lab, tmp_path: Path) -> None:
    topic = lab.topic(lab.source)
    producer = Producer(lab.source.client_settings())
    producer.produce(topic, value=HOSTILE.encode(), key=HOSTILE.encode(), headers={HOSTILE: HOSTILE.encode()})
    assert producer.flush(30) == 0
    place = tmp_path / HOSTILE.replace("/", "_") / "two\nlines"
    place.mkdir(parents=True)
    # In a properties file a backslash is written twice.
    value = HOSTILE.replace("\\", "\\\\").replace("${env:HOME}", "")
    written = lab.config(f"A->B.topics = {topic}", f"A.client.id = {value}", f"A->B.groups.exclude = {topic}", *lab.copy_only)
    config, report = place / "mm2 $(touch never).properties", place / "report `touch never`.json"
    config.write_text(written.read_text())
    flow = next(line.split(".enabled")[0] for line in config.read_text().splitlines() if "->" in line and ".enabled" in line)
    refused = ferry(place, "run", str(config), "--flow", flow, "--master", f"local[1]; {HOSTILE}")
    assert refused.returncode == 2
    assert "is no Spark master" in refused.stderr
    done = ferry(place, "run", str(config), "--flow", flow, "--master", "local[1]", "--report", str(report), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(report.read_text())["totals"]["records"] == 1
    for arguments in (("--flow", HOSTILE), ("--flow", flow, "--topic", HOSTILE), ("--flow", flow, "--until", HOSTILE)):
        refused = ferry(place, "run", str(config), *arguments)
        assert (refused.returncode in {0, 2, 5}, "Traceback" in refused.stderr) == (True, False), refused.stderr
    assert list(tmp_path.rglob("never")) == []
    assert not (Path.cwd() / "never").exists()


@pytest.mark.unit
def test_aliases_that_no_topic_could_be_named_after_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "mm2.properties"
    path.write_text("clusters = $(touch never), B\n$(touch\\ never).bootstrap.servers = a:1\nB.bootstrap.servers = b:1\n")
    done = ferry(tmp_path, "plan", str(path), "--flow", "$(touch never)->B")
    assert done.returncode == 2, done.stderr
    assert not (tmp_path / "never").exists()
