"""Spark connections that a task cannot use are named before Spark starts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ferry.airflow.flows import FlowReference
from ferry.airflow.spark_operators import KUBERNETES, VerifyCopiesOperator
from ferry.airflow.versions import AirflowFailException

pytestmark = pytest.mark.airflow


def master_of(monkeypatch: pytest.MonkeyPatch, **connection: object) -> str:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_OWN", json.dumps({"conn_type": "spark", **connection}))
    task = VerifyCopiesOperator(task_id="verify", flow=FlowReference(Path("mm2.properties"), "A->B"), conn_id="spark_own")
    return task._master()


def test_kubernetes_needs_a_provider_that_spark_s_does_not_require(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AirflowFailException, match=f"spark_own names Kubernetes.*pip install {KUBERNETES}"):
        master_of(monkeypatch, host="k8s://https://api.example", port=6443)


def test_a_connection_without_a_host_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AirflowFailException, match="spark_own has no host"):
        master_of(monkeypatch)
