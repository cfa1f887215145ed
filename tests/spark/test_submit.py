"""Where Spark is looked for."""

from __future__ import annotations

import importlib.util
from importlib.machinery import ModuleSpec
from importlib.metadata import version
from pathlib import Path

import pytest

from ferry.errors import SparkMissing
from ferry.spark.submit import spark_home

pytestmark = pytest.mark.unit


def test_the_client_of_airflows_provider_alone_is_no_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has PySpark's modules, but neither spark-submit nor a jar."""
    client = ModuleSpec("pyspark", None, is_package=True)
    client.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: client)
    monkeypatch.delenv("SPARK_HOME", raising=False)
    with pytest.raises(SparkMissing, match=rf"pip install 'kafka-ferry\[spark\]' pyspark=={version('pyspark-client')}$"):
        spark_home()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert spark_home() == tmp_path
