"""What Airflow does with each error and exit code."""

from __future__ import annotations

import re
from pathlib import Path
from unittest.mock import Mock

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from ferry.airflow.flows import FlowReference
from ferry.airflow.tasks import failure_of_exit_code, typed_retries
from ferry.clusters.kept import shared
from ferry.errors import ClusterUnreachable, ConfigError, ExitCode, FerryError, SourceDataLost, Superseded

pytestmark = pytest.mark.airflow

REFERENCE = FlowReference(Path("/etc/ferry/mm2.properties"), "A->B")


@pytest.mark.parametrize(
    ("code", "final"),
    [
        (ExitCode.OTHER, False),
        (ExitCode.BAD_INPUT, True),
        (ExitCode.UNREACHABLE, False),
        (ExitCode.DATA_LOST, True),
        (ExitCode.PARTLY_FAILED, False),
        (ExitCode.SUPERSEDED, True),
        (137, False),
    ],
)
def test_exit_codes(code: int, final: bool) -> None:
    failure = failure_of_exit_code(code)
    assert isinstance(failure, AirflowFailException) is final
    assert str(int(code)) in str(failure)


@pytest.mark.parametrize(("error", "final"), [(ConfigError, True), (Superseded, True), (SourceDataLost, True), (ClusterUnreachable, False)])
def test_errors(error: type[FerryError], final: bool) -> None:
    with pytest.raises(AirflowException) as caught, typed_retries(REFERENCE):
        raise error("what and where")
    assert isinstance(caught.value, AirflowFailException) is final
    assert "what and where" in str(caught.value)


def test_the_next_step_has_commands_to_paste() -> None:
    told = "then end this warning: ferry ack-loss /etc/ferry/mm2.properties --flow 'A->B'"
    with pytest.raises(AirflowFailException, match=re.escape(told)), typed_retries(REFERENCE):
        raise SourceDataLost("t-0 offset 4")


def test_a_task_keeps_its_clients_to_the_end() -> None:
    cluster, client = Mock(), Mock()
    with typed_retries(REFERENCE):
        for _ in range(2):
            with shared("reader", lambda: client, cluster):
                client.close.assert_not_called()
        client.close.assert_not_called()
    client.close.assert_called_once()
