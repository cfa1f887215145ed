"""Limits, deadline and callbacks of a flow, as the file gives them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ferry.config import load_config
from ferry.config.settings import AlertSettings
from ferry.errors import ConfigError

pytestmark = pytest.mark.unit

FILE = """\
clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
A->B.enabled = true
"""


@pytest.fixture
def alerts(tmp_path: Path) -> Callable[..., AlertSettings]:
    def load(*lines: str) -> AlertSettings:
        path = tmp_path / "mm2.properties"
        path.write_text(FILE + "\n".join(lines) + "\n")
        return load_config(path).flows[0].alerts

    return load


def test_nothing_is_set_by_default(alerts: Callable[..., AlertSettings]) -> None:
    assert alerts() == AlertSettings()
    assert not alerts().has_limits


def test_a_flow_wins_over_the_top_level(alerts: Callable[..., AlertSettings]) -> None:
    found = alerts("ferry.alert.lag.records = 5", "A->B.ferry.alert.lag.records = 7", "ferry.alert.headroom.seconds = 60")
    assert (found.lag_records, found.headroom_seconds, found.lag_seconds, found.has_limits) == (7, 60, None, True)


def test_callbacks_and_their_arguments(alerts: Callable[..., AlertSettings]) -> None:
    found = alerts(
        "ferry.alert.callback = ops.telling:page, ops.slack:Notifier", 'ferry.alert.callback.args = {"ops.slack:Notifier": {"text": "x"}}'
    )
    assert found.callbacks == ("ops.telling:page", "ops.slack:Notifier")
    assert found.callback_args == {"ops.slack:Notifier": {"text": "x"}}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("ferry.alert.lag.records = many", "whole number"),
        ("ferry.alert.deadline.seconds = 0", "whole number from 1"),
        ("ferry.alert.callback = ops.telling.page", "package.module:name"),
        ("ferry.alert.callback.args = [1]", "JSON object of objects"),
        ('ferry.alert.callback.args = {"a:b": 1}', "JSON object of objects"),
        ('ferry.alert.callback.args = {"a:b": {"k": "hush"}}', "gives arguments to a:b, which ferry.alert.callback does not name"),
        ("ferry.alert.lag.record = 1", "did you mean ferry.alert.lag.records"),
    ],
)
def test_a_bad_value_names_key_and_line(alerts: Callable[..., AlertSettings], line: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        alerts(line)
    assert "mm2.properties:5" in str(caught.value)
    assert "hush" not in str(caught.value)
