"""Exit codes: one per kind of outcome, and which one wins. Errors: where each class is, as docs/architecture.md says."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from itertools import chain, pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from ferry import errors
from ferry.errors import EXIT_CODE_PRECEDENCE, ExitCode, FerryError, error_named, span, time_text, worst_exit_code

pytestmark = pytest.mark.unit

PACKAGE = Path(errors.__file__).parent
# The packages that have errors of their own.
OWNERS = ("sandbox", "config", "page")
BUILT_IN = {name for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, BaseException)}


class Module(NamedTuple):
    name: str
    classes: dict[str, set[str]]  # and what stands in the brackets after their names
    caught: set[str]
    named: set[str]  # what neither catches a class nor derives from it: so it may raise it


@cache
def _modules() -> list[Module]:
    """All of Ferry, read and not imported: so the modules for Airflow are there too."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        classes = {node.name: _within(node.bases) for node in nodes if isinstance(node, ast.ClassDef)}
        handlers = [node.type for node in nodes if isinstance(node, ast.ExceptHandler) and node.type]
        questions = [node.args for node in nodes if isinstance(node, ast.Call) and _names([node.func]) & {"suppress", "isinstance"}]
        caught = _within(chain(handlers, *questions))
        named = set(nodes).difference(caught, *classes.values())
        name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        found.append(Module(name, {kind: _names(bases) for kind, bases in classes.items()}, _names(caught), _names(named)))
    return found


def _within(parts: Iterable[ast.AST]) -> list[ast.AST]:
    return [node for part in parts for node in ast.walk(part)]


def _names(nodes: Iterable[ast.AST]) -> set[str]:
    return {node.id if isinstance(node, ast.Name) else node.attr for node in nodes if isinstance(node, ast.Name | ast.Attribute)}


def _subclasses(roots: set[str]) -> dict[str, str]:
    """The classes that derive from one of these, directly or not, each with its module."""
    classes = [(kind, bases, module.name) for module in _modules() for kind, bases in module.classes.items()]
    found: dict[str, str] = {}
    while new := {kind: name for kind, bases, name in classes if kind not in found and bases & {*roots, *found}}:
        found |= new
    return found


def test_the_first_of_the_precedence_wins() -> None:
    for index, code in enumerate(EXIT_CODE_PRECEDENCE):
        assert worst_exit_code(EXIT_CODE_PRECEDENCE[index:]) is code


def test_nothing_bad_is_done() -> None:
    assert worst_exit_code([]) is ExitCode.DONE
    assert worst_exit_code([ExitCode.DONE]) is ExitCode.DONE


def test_every_code_but_done_has_a_rank() -> None:
    assert set(EXIT_CODE_PRECEDENCE) == set(ExitCode) - {ExitCode.DONE}


def test_every_error_has_one_bad_exit_code() -> None:
    kinds = [FerryError, *(getattr(import_module(module), name) for name, module in _subclasses({"FerryError"}).items())]
    assert len(kinds) > 40
    assert [kind for kind in kinds if not issubclass(kind, FerryError) or kind.exit_code not in EXIT_CODE_PRECEDENCE] == []
    # No code gives an error another one. (JobFailed, which is no FerryError, gets its own.)
    setting = [path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py") if ".exit_code = " in path.read_text(encoding="utf-8")]
    assert setting == [Path("airflow", "tasks.py")]


def test_an_error_is_in_the_package_that_alone_raises_it_or_in_errors() -> None:
    homes = {name: module.split(".")[1] for name, module in _subclasses({"FerryError"}).items()}
    raising = {name: {module.name.split(".")[1] for module in _modules() if name in module.named} for name in homes}
    assert homes == {name: next((owner for owner in OWNERS if packages == {owner}), "errors") for name, packages in raising.items()}


def test_ferry_catches_its_exceptions_that_are_no_errors() -> None:
    others = set(_subclasses(BUILT_IN)) - {"FerryError", *_subclasses({"FerryError"})}
    assert {"Fenced", "HandlerStopped", "LogMoved", "OutcomeUnknown", "RequestLost", "RequestNotSent"} <= others
    assert others.difference(*(module.caught for module in _modules())) == {"TransitionRefused"}  # a defect


def test_every_error_has_a_next_step_of_its_own() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, FerryError)]
    assert [kind.__name__ for kind in kinds if "next_step" not in vars(kind)] == []
    assert len({kind.next_step for kind in kinds}) == len(kinds)


def test_the_name_of_an_error_leads_to_its_class() -> None:
    assert error_named("SourceRecreated") is errors.SourceRecreated
    assert error_named("ExitCode") is error_named("no such name") is errors.PartitionsFailed


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (0.1, "100 ms"), (119, "119 s"), (120, "2 min"), (7199, "120 min"), (7200, "2 h"), (200_000, "2 days")],
)
def test_spans(seconds: float, words: str) -> None:
    assert span(seconds) == words


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [
        (0, "1970-01-01T00:00:00+00:00"),
        (253_402_300_799_999, "9999-12-31T23:59:59+00:00"),
        (1_764_000_000_000_123, "1764000000000123 ms"),
        ((1 << 63) - 1, f"{(1 << 63) - 1} ms"),
        (-(1 << 63), f"{-(1 << 63)} ms"),
    ],
)
def test_times_that_no_calendar_has(milliseconds: int, words: str) -> None:
    assert time_text(milliseconds) == words


# Behind a number that may be 1, as in `{len(names)} topics`.
SEVERAL = re.compile(
    r" (?:(?:more|new|known|of) )*(?:topics|partitions|groups|members|brokers|records|rows|failures|differences|replicas)(?![\w/])"
)


def test_a_number_of_things_is_counted_at_one_place() -> None:
    """`count_of` says `1 topic`. Messages of codecs, which only damaged bytes bring about, may say `1 records`."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for text in (node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.JoinedStr)):
            for number, words in pairwise(text.values):
                counted = isinstance(number, ast.FormattedValue) and (number.format_spec is not None or _is_computed(number.value))
                if counted and isinstance(words, ast.Constant) and SEVERAL.match(words.value) and path.parent.name != "wire":
                    found.append(f"{path.name}:{text.lineno}: {words.value}")
    assert found == []


def _is_computed(value: ast.expr) -> bool:
    return isinstance(value, ast.BinOp) or (isinstance(value, ast.Call) and _names([value.func]) == {"len"})
