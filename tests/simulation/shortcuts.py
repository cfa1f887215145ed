"""Shortcuts through kafka-python for what a simulated run does thousands of times: the result is the same, and takes less time.

A message is made by a function that is compiled for its class and version, without a look at the schema. Kinds of coroutines are told by
their types and flags. Lines of a trace log that nobody reads are left out.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from types import CoroutineType, FunctionType, GeneratorType, MemberDescriptorType
from typing import Any

import kafka.net.selector
import kafka.protocol.broker_version_data
import pytest
from kafka.protocol.api_message import ApiMessage
from kafka.protocol.data_container import DataContainer

_NOT_GIVEN: Any = object()
_DEFERRED = inspect.CO_GENERATOR | inspect.CO_COROUTINE


@cache
def _maker(kind: Any, version: int | None) -> Callable[..., None]:
    """Sets the fields of a new message of this class and version, given by their names."""
    assert version is None or kind._struct.min_version <= version <= kind._struct.max_version, f"{kind.__name__} has no version {version}"
    names, keywords = {"NOT_GIVEN": _NOT_GIVEN, "version": version}, []
    lines = ["self._version, self.tags, self.unknown_tags = version, None, None"]
    if issubclass(kind, ApiMessage):
        keywords += ["min_version=None", "max_version=None"]
        lines += ["self._header, self._min_version, self._max_version = None, min_version, max_version"]
    for field in kind._struct._fields:
        name, is_tagged, is_there = field.name, field._tag is not None, version is not None and field.for_version_q(version)
        if is_there:
            names[f"usual_{name}"] = field.default
        if is_there and not is_tagged:
            keywords.append(f"{name}=usual_{name}")
            lines.append(f"self.{name} = {name}")
            continue
        keywords.append(f"{name}=NOT_GIVEN")
        lines += [f"if {name} is not NOT_GIVEN:", f" self.{name} = {name}"]
        lines += [f" self.tags = (self.tags or set()) | {{{name!r}}}"] if is_tagged else []
        lines += [f"else: self.{name} = usual_{name}"] if is_there else []
    exec("\n ".join([f"def make(self, {', '.join(keywords)}):", *lines]), names)  # noqa: S102 - as dataclasses do
    made: Callable[..., None] = names["make"]
    return made


def _make(message: Any, *places: Any, version: int | None = None, **given: Any) -> None:
    """Stands for `__init__` of messages and their parts."""
    if places:
        schema = message._struct
        fields = schema._fields if version is None else schema.untagged_fields(version)
        given |= {field.name: one for field, one in zip(fields, places, strict=False)}
    _maker(type(message), version)(message, **given)


@cache
def _defaults(kind: Any) -> dict[str, Any]:
    """Of all fields that have one."""
    found = {}
    for name, field in kind._struct.fields.items():
        with suppress(NotImplementedError):
            found[name] = field.default
    return found


def _default(message: Any, name: str) -> Any:
    """Stands for `__getattr__`, which is asked for fields that are not set."""
    try:
        return _defaults(type(message))[name]
    except KeyError:
        raise AttributeError(name) from None


@cache
def _slots(kind: type) -> tuple[str, ...]:
    return tuple(name for one in kind.__mro__ for name in vars(one).get("__slots__", ()))


def _copied(message: Any) -> Any:
    """What `copy` makes of a message."""
    made = object.__new__(type(message))
    for name in _slots(type(message)):
        setattr(made, name, getattr(message, name))
    return made


_begun = kafka.net.selector._initialize_coro


def _begin(found: Any) -> Any:
    """What a task runs: a coroutine or generator, or what makes one; a usual function is made one."""
    if type(found) is CoroutineType or type(found) is GeneratorType:
        return found
    code = getattr(found, "__code__", None)
    if code is None:
        return _begun(found)
    return found if code.co_flags & _DEFERRED else kafka.net.selector.yield_callback(found)


class _Inspect:
    """Stands for the module `inspect`, as far as kafka-python asks it."""

    isgenerator = staticmethod(lambda found: type(found) is GeneratorType)
    iscoroutine = staticmethod(lambda found: type(found) is CoroutineType)
    isfunction = staticmethod(lambda found: type(found) is FunctionType)
    ismethod = staticmethod(inspect.ismethod)
    isgeneratorfunction = staticmethod(inspect.isgeneratorfunction)
    isdatadescriptor = staticmethod(lambda found: type(found) is MemberDescriptorType)

    @staticmethod
    def iscoroutinefunction(found: Any) -> bool:
        code = getattr(found, "__code__", None)
        return inspect.iscoroutinefunction(found) if code is None else bool(code.co_flags & inspect.CO_COROUTINE)


def take(patch: pytest.MonkeyPatch) -> None:
    """From now on, this process takes the shortcuts."""
    patch.setattr(ApiMessage, "__init__", _make)
    patch.setattr(DataContainer, "__init__", _make)
    patch.setattr(DataContainer, "__getattr__", _default)
    patch.setattr(DataContainer, "__copy__", _copied, raising=False)
    for module in (kafka.net.selector, kafka.protocol.broker_version_data):
        patch.setattr(module, "inspect", _Inspect)
    patch.setattr(kafka.net.selector, "_initialize_coro", _begin)
    patch.setattr(kafka.net.selector, "log_trace", lambda *_: None)
