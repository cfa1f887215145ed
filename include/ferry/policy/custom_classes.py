"""Replication policies and filters of a user's own: Python classes named by their import path, `package.module:Class`.

They take the place of MM2's Java plug-ins. A flow holds the path only, so that every process (scheduler, task, Spark executor) makes its
own object: the module must be importable there, by PYTHONPATH or, in Airflow, from the DAGs folder.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from typing import Any

from ferry.errors import ConfigError

_IMPORT_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)


def is_custom(name: str) -> bool:
    """Whether a class is named by its import path, so is no class of MM2's."""
    return _IMPORT_PATH.fullmatch(name) is not None


def custom_object(path: str, methods: tuple[str, ...], properties: Mapping[str, str], base: type | None = None) -> Any:
    """An object of the class at `path`, made without arguments and, where it has `configure`, configured with `properties`.

    ConfigError when it cannot be imported, is no class, lacks one of `methods`, or raises. A class that does not derive from `base` gets
    what `base` implements.
    """
    found = _imported(path)
    if not isinstance(found, type):
        raise ConfigError(f"{path} is no class")
    lacking = [name for name in methods if not callable(getattr(found, name, None)) or _is_abstract(found, name)]
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
    """What `found.method(*arguments)` answers. ConfigError when it raises or answers with another type than it should."""
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
    except Exception as problem:  # a module of a user's own may raise anything
        where = "it must be importable here and on Spark's executors: see PYTHONPATH"
        raise ConfigError(f"{path} cannot be imported ({_told(problem)}); {where}") from problem


def _is_abstract(found: type, name: str) -> bool:
    return name in getattr(found, "__abstractmethods__", ())


def _told(problem: Exception) -> str:
    return f"{type(problem).__name__}: {problem}" if str(problem) else type(problem).__name__
