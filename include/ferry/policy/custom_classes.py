"""Custom replication policies and filters: Python classes with an import path, `package.module:Class`.

They replace MM2's Java plug-ins. A flow holds only the path, and every process (scheduler, task, Spark executor) makes its own object. So
the module must be importable there, by PYTHONPATH or, in Airflow, from the DAGs folder.
"""

import importlib
import re
from collections.abc import Mapping
from typing import Any

from ferry.errors import ConfigError

_IMPORT_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)


def is_custom(name: str) -> bool:
    """Whether `name` is an import path, not the name of a class of MM2."""
    return _IMPORT_PATH.fullmatch(name) is not None


def custom_object(path: str, methods: tuple[str, ...], properties: Mapping[str, str], base: type | None = None) -> Any:
    """An object of the class at `path`, made without arguments, and configured with `properties` if it has `configure`.

    ConfigError if it cannot be imported, is not a class, lacks one of `methods`, or raises. A class that does not derive from `base` gets
    the methods that `base` implements.
    """
    found = _imported(path)
    if not isinstance(found, type):
        raise ConfigError(f"{path} is no class")
    abstract = getattr(found, "__abstractmethods__", ())
    lacking = [name for name in methods if not callable(getattr(found, name, None)) or name in abstract]
    if lacking:
        raise ConfigError(f"{path} lacks {', '.join(lacking)}")
    try:
        whole = found if base is None or issubclass(found, base) else type(found.__name__, (found, base), {})
        made = whole()
        if hasattr(made, "configure"):
            made.configure(dict(properties))
    except Exception as problem:
        raise ConfigError(f"{path} cannot be made and configured: {_told(problem)}") from problem
    return made


def answer(path: str, method: str, found: Any, *arguments: str, wants: tuple[type, ...]) -> Any:
    """The result of `found.method(*arguments)`. ConfigError if it raises or gives another type than `wants`."""
    call = f"{method}({', '.join(map(repr, arguments))})"
    try:
        result = getattr(found, method)(*arguments)
    except Exception as problem:
        raise ConfigError(f"{path}: {call} raised {_told(problem)}") from problem
    if not isinstance(result, wants):
        raise ConfigError(f"{path}: {call} gave {result!r}: it must give {' or '.join(each.__name__ for each in wants)}")
    return result


def _imported(path: str) -> Any:
    module, _, name = path.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except Exception as problem:  # a custom module may raise anything
        where = "it must be importable here and on Spark's executors: see PYTHONPATH"
        raise ConfigError(f"{path} cannot be imported ({_told(problem)}); {where}") from problem


def _told(problem: Exception) -> str:
    return f"{type(problem).__name__}: {problem}" if str(problem) else type(problem).__name__
