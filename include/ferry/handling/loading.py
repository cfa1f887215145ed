"""Finds a handler or listener by `package.module:name`. `check_*` check it without an instance; `make_*` return one."""

import importlib
import inspect
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any

from ferry.errors import ConfigError
from ferry.handling.interface import AssignmentListener, Record

Handle = Callable[[Record], Iterable[Record]]


def check_handler(name: str, args: str | None) -> None:
    """ConfigError if `name` is no message handler, or takes no `args`."""
    found = find(name)
    if not inspect.isroutine(found):
        _require(name, found, args, "handle")
    elif args is not None:
        raise ConfigError(f"{name} is a function, which takes no args: write a class, or remove ferry.message.handler.args")
    elif _mismatch(found, None) is not None:
        raise ConfigError(f"{name} must take one argument, the record")


def check_listener(name: str, args: str | None) -> None:
    """ConfigError if `name` is no assignment listener, or takes no `args`."""
    _require(name, find(name), args, "before_starting", "before_releasing")


def make_handler(name: str, args: str | None) -> Handle:
    """The function to call with each record. ConfigError."""
    check_handler(name, args)
    found = find(name)
    handle: Handle = found if inspect.isroutine(found) else _made(name, found, args).handle
    return handle


def make_listener(name: str, args: str | None) -> AssignmentListener:
    """The listener. ConfigError."""
    check_listener(name, args)
    listener: AssignmentListener = _made(name, find(name), args)
    return listener


def find(name: str) -> Any:
    """The object at an import path. ConfigError."""
    module, colon, path = name.partition(":")
    if not colon or not module or not path:
        raise ConfigError(f"{name} must be written as package.module:Class")
    try:
        found = importlib.import_module(module)
    except Exception as problem:
        what = f"module {module} cannot be imported ({type(problem).__name__}: {problem}); is its directory on PYTHONPATH?"
        raise ConfigError(what) from problem
    try:
        return attrgetter(path)(found)
    except AttributeError as problem:
        raise ConfigError(f"module {module} has no {path}") from problem


def _require(name: str, found: Any, args: str | None, *methods: str) -> None:
    for method in methods:
        if not callable(getattr(found, method, None)):
            raise ConfigError(f"{name} has no method {method}")
    if not inspect.isclass(found):
        if args is not None:
            raise ConfigError(f"{name} is no class, and only a class takes args: name a class, or remove them")
    elif (problem := _mismatch(found, *_given(args))) is not None:
        wanted = "without args" if args is None else "with the text of its args"
        raise ConfigError(f"{name} cannot be made {wanted}: {problem}") from problem


def _mismatch(found: Any, *arguments: object) -> TypeError | None:
    """Why `found` does not take these arguments; None if it does, or if it is a built-in without a signature."""
    try:
        inspect.signature(found).bind(*arguments)
    except TypeError as problem:
        return problem
    except ValueError:
        return None
    return None


def _given(args: str | None) -> tuple[str, ...]:
    return () if args is None else (args,)


def _made(name: str, found: Any, args: str | None) -> Any:
    if not inspect.isclass(found):
        return found
    try:
        return found(*_given(args))
    except Exception as problem:
        raise ConfigError(f"{name} could not be made: {type(problem).__name__}: {problem}") from problem
