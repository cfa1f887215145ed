"""Alerts reach every callback in its own form; one that raises, leaves or hangs keeps nobody."""

from __future__ import annotations

import logging
import time
from dataclasses import replace

import pytest
from tests.alerting import callbacks
from tests.waiting import NEVER_SECONDS

from ferry.alerting import delivering
from ferry.alerting.alert import Alert, AlertKind, Severity
from ferry.alerting.delivering import check_callback, check_callbacks, deliver
from ferry.config.settings import AlertSettings
from ferry.errors import ConfigError

pytestmark = pytest.mark.unit

ALERT = Alert("A->B", AlertKind.FAILURE, Severity.ERROR, "PartitionsFailed", "t-0 failed", "run again", run_id="r1", url="http://x")
HERE = "tests.alerting.callbacks"


@pytest.fixture(autouse=True)
def told() -> list[tuple[str, object]]:
    callbacks.TOLD.clear()
    return callbacks.TOLD


def settings(*names: str, **args: dict[str, object]) -> AlertSettings:
    return AlertSettings(
        callbacks=tuple(f"{HERE}:{name}" for name in names), callback_args={f"{HERE}:{name}": given for name, given in args.items()}
    )


def test_each_kind_of_callback_is_called_in_its_own_form(told: list[tuple[str, object]]) -> None:
    given = settings(
        "tell",
        "tell_later",
        "Notifier",
        "Called",
        tell={"channel": "#ops"},
        Notifier={"text": "Ferry: {{ alert.message }}"},
        Called={"room": "2"},
    )
    assert deliver(given, [ALERT]) == []
    assert sorted(told, key=str) == sorted(
        [("#ops", ALERT.document()), ("later", ALERT.document()), ("Ferry: t-0 failed", "r1"), ("2", ALERT.key)], key=str
    )


def test_a_callback_that_raises_does_not_stop_others_and_its_text_is_not_logged(
    told: list[tuple[str, object]], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        problems = deliver(settings("raising", "leaving", "tell"), [ALERT])
    assert sorted(problems) == [f"callback {HERE}:leaving failed: SystemExit", f"callback {HERE}:raising failed: RuntimeError"]
    assert len(told) == 1
    assert "secret-token" not in caplog.text
    assert "RuntimeError" in caplog.text


def test_a_failed_alert_does_not_stop_others(told: list[tuple[str, object]]) -> None:
    problems = deliver(settings("particular"), [replace(ALERT, url=""), ALERT])
    assert (problems, len(told)) == ([f"callback {HERE}:particular failed: ValueError"], 1)


def test_a_callback_that_hangs_is_not_waited_for(told: list[tuple[str, object]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivering, "DELIVERY_SECONDS", 0.5)
    began = time.monotonic()
    (problem,) = deliver(settings("hanging", "tell"), [ALERT])
    assert time.monotonic() - began < NEVER_SECONDS
    assert "did not return within 0.5 s" in problem
    assert len(told) == 1


def test_without_alerts_no_callback_is_called(told: list[tuple[str, object]]) -> None:
    assert deliver(settings("tell", "raising"), []) == []
    assert told == []


def test_a_missing_callback_is_reported(told: list[tuple[str, object]]) -> None:
    assert deliver(settings("no_such"), [ALERT]) == [f"callback {HERE}:no_such failed: ConfigError"]


@pytest.mark.parametrize(
    ("name", "args", "said"),
    [
        ("no_such", {}, "has no no_such"),
        ("NUMBER", {}, "cannot be called"),
        ("tell", {"chanel": "#ops"}, "unexpected keyword argument 'chanel'|cannot be called with"),
        ("Notifier", {}, "missing a required (keyword-only )?argument: 'text'"),
        ("Mute", {}, "neither notify nor __call__"),
    ],
)
def test_a_callback_that_cannot_work_is_refused(name: str, args: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        check_callback(f"{HERE}:{name}", args)


def test_callbacks_that_work_are_accepted() -> None:
    check_callbacks(settings("tell", "tell_later", "Notifier", "Called", Notifier={"text": ""}, Called={"room": ""}))
