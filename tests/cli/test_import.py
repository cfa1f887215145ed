"""`ferry import`: files in, one mm2.properties out, and nothing is overwritten or shown that should not be."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from tests.cli.inside import ferry

from ferry.config import load_config

pytestmark = pytest.mark.unit

SOURCE = {
    "name": "source",
    "config": {
        "connector.class": "MirrorSourceConnector",
        "source.cluster.alias": "A",
        "target.cluster.alias": "B",
        "source.cluster.bootstrap.servers": "a:9092",
        "target.cluster.bootstrap.servers": "b:9092",
        "source.cluster.security.protocol": "SASL_SSL",
        "source.cluster.sasl.mechanism": "PLAIN",
        "source.cluster.sasl.jaas.config": (
            'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="hidden-word";'
        ),
        "key.converter": "ByteArrayConverter",
    },
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.json"
    path.write_text(json.dumps(SOURCE))
    return path


def test_a_connector_becomes_a_file_that_others_cannot_read(tmp_path: Path, source: Path) -> None:
    new = tmp_path / "new.properties"
    done = ferry("import", source, "--to", new)
    assert done.returncode == 0
    assert stat.S_IMODE(new.stat().st_mode) == 0o600
    assert [flow.name for flow in load_config(new).flows] == ["A->B"]
    assert "taken over" in done.stdout
    assert "no effect" in done.stdout
    assert "cannot be kept" not in done.stdout.partition("written")[0]
    assert "hidden-word" not in done.stdout + done.stderr
    assert "hidden-word" in new.read_text()


def test_the_document(tmp_path: Path, source: Path) -> None:
    new = tmp_path / "new.properties"
    document = json.loads(ferry("import", source, "--to", new, "--json").stdout)
    assert document["file"] == str(new)
    assert document["counts"] == {"taken over": 8, "no effect": 1, "cannot be kept": 0}
    assert document["flows_switched_off"] == []
    (converter,) = [entry for entry in document["entries"] if entry["key"] == "key.converter"]
    assert (converter["fate"], converter["becomes"], converter["line"]) == ("no effect", "", 1)


def test_what_cannot_be_kept_switches_the_flow_off(tmp_path: Path, source: Path) -> None:
    changed = {**SOURCE["config"], "transforms": "mask"}  # type: ignore[dict-item]
    source.write_text(json.dumps(changed))
    new = tmp_path / "new.properties"
    done = ferry("import", source, "--to", new)
    assert done.returncode == 0
    assert "warning: A->B: switched off" in done.stderr
    assert "A->B.enabled = false\n" in new.read_text()
    assert "# NOT KEPT: single message transforms" in new.read_text()


def test_a_file_is_overwritten_only_with_force(tmp_path: Path, source: Path) -> None:
    new = tmp_path / "new.properties"
    new.write_text("mine\n")
    done = ferry("import", source, "--to", new)
    assert done.returncode == 2
    assert "exists already" in done.stderr
    assert new.read_text() == "mine\n"
    assert ferry("import", source, "--to", new, "--force").returncode == 0


def test_bad_input_leaves_no_file(tmp_path: Path, source: Path) -> None:
    source.write_text('{"name": "x"')
    new = tmp_path / "new.properties"
    done = ferry("import", source, "--to", new)
    assert done.returncode == 2
    assert "source.json:1: is no JSON document" in done.stderr
    assert not new.exists()
