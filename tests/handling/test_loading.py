"""Names of handlers and listeners that lead nowhere are problems of the file, told with key and line; what can be made is made."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from ferry.config import FerryConfig, load_config
from ferry.errors import ConfigError
from ferry.handling import Record
from ferry.handling.loading import make_handler, make_listener

pytestmark = pytest.mark.unit

RECORD = Record("t", 0, 0, 0, None, b"v")
SOURCE = """
class Upper:
    def __init__(self, args="none"):
        if args == "bad":
            raise ValueError("args must not be bad")
        self.args = args

    def handle(self, record):
        return [record, self.args]

    def before_starting(self, assignments): ...

    def before_releasing(self, assignments): ...


class WithoutArgs:
    def handle(self, record):
        return []


class NeedsArgs:
    def __init__(self, args):
        pass

    def handle(self, record):
        return []


def twice(record):
    return [record, record]


def nothing():
    return []


ready = WithoutArgs()
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"handlers_{secrets.token_hex(4)}"
    (tmp_path / f"{name}.py").write_text(SOURCE)
    (tmp_path / f"{name}_broken.py").write_text("import no_such_module_anywhere\n")
    monkeypatch.syspath_prepend(tmp_path)
    return name


def load(tmp_path: Path, *lines: str) -> FerryConfig:
    path = tmp_path / "mm2.properties"
    start = ["clusters = A, B", "A.bootstrap.servers = 127.0.0.1:1", "B.bootstrap.servers = 127.0.0.1:2", "A->B.enabled = true"]
    path.write_text("\n".join([*start, *lines]) + "\n")
    return load_config(path)


def test_a_class_with_and_without_args_a_function_an_object(module: str) -> None:
    assert list(make_handler(f"{module}:Upper", "x y")(RECORD)) == [RECORD, "x y"]
    assert list(make_handler(f"{module}:Upper", None)(RECORD)) == [RECORD, "none"]
    assert list(make_handler(f"{module}:twice", None)(RECORD)) == [RECORD, RECORD]
    assert list(make_handler(f"{module}:ready", None)(RECORD)) == []
    make_listener(f"{module}:Upper", None).before_starting([])


def test_settings_of_a_flow(module: str, tmp_path: Path) -> None:
    (flow,) = load(
        tmp_path,
        f"ferry.message.handler = {module}:twice",
        f"A->B.ferry.message.handler = {module}:Upper",
        "A->B.ferry.message.handler.args = a=1, b=2",
        f"ferry.assignment.listener = {module}:Upper",
        "ferry.abort.on.send.failure = false",
    ).flows
    found = flow.handling
    assert (found.message_handler, found.message_handler_args) == (f"{module}:Upper", "a=1, b=2")
    assert (found.assignment_listener, found.assignment_listener_args, found.abort_on_send_failure) == (f"{module}:Upper", None, False)


@pytest.mark.parametrize(
    ("name", "args", "problem"),
    [
        ("no.such.module:Handler", None, "module no.such.module cannot be imported (ModuleNotFoundError"),
        ("{module}_broken:Handler", None, "No module named 'no_such_module_anywhere'"),
        ("{module}:Missing", None, "has no Missing"),
        ("{module}", None, "must be written as package.module:Class"),
        ("{module}:WithoutArgs", "x", "cannot be made with the text of its args"),
        ("{module}:NeedsArgs", None, "cannot be made without args"),
        ("{module}:twice", "x", "is a function, which takes no args"),
        ("{module}:nothing", None, "must take one argument, the record"),
        ("builtins:dict", None, "has no method handle"),
    ],
)
def test_a_handler_that_cannot_be_used_is_named_with_its_line(
    module: str, tmp_path: Path, name: str, args: str | None, problem: str
) -> None:
    lines = [f"ferry.message.handler = {name.format(module=module)}", *([f"ferry.message.handler.args = {args}"] if args else [])]
    with pytest.raises(ConfigError) as raised:
        load(tmp_path, *lines)
    assert f"{tmp_path}/mm2.properties:5: ferry.message.handler: " in str(raised.value)
    assert problem in str(raised.value)


def test_a_listener_that_cannot_be_used_and_rerouting(module: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        load(tmp_path, f"A->B.ferry.assignment.listener = {module}:WithoutArgs", "ferry.handler.reroute = true")
    first, second = str(raised.value).splitlines()
    assert first.startswith(f"{tmp_path}/mm2.properties:5: A->B.ferry.assignment.listener: ")
    assert first.endswith("has no method before_starting")
    assert second.startswith(f"{tmp_path}/mm2.properties:6: ferry.handler.reroute: names the topics of the target")


def test_who_chooses_topics_copies_exactly_once(module: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"ferry\.handler\.reroute: needs transaction\.producer=true"):
        load(tmp_path, f"ferry.message.handler = {module}:twice", "ferry.handler.reroute = orders-eu", "transaction.producer = false")


def test_args_without_a_handler_are_a_warning(tmp_path: Path) -> None:
    assert any(
        "ferry.message.handler.args: has no effect without" in text for text in load(tmp_path, "ferry.message.handler.args = x").warnings
    )


def test_a_class_that_raises_when_it_is_made(module: str) -> None:
    with pytest.raises(ConfigError, match="could not be made: ValueError: args must not be bad"):
        make_handler(f"{module}:Upper", "bad")
