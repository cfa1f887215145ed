"""Classes of users, by an import path, `package.module:Class`: replication policies and filters, and classes that give tokens.

They replace Java plug-ins. A flow holds only the path, and every process (scheduler, task, Spark executor) makes its own object. So
the module must be importable there, by PYTHONPATH or, in Airflow, from the DAGs folder.
"""

import pkgutil
import re
from collections.abc import Mapping
from typing import Any, TypeVar

from ferry.errors import ConfigError

Answer = TypeVar("Answer")
_IMPORT_PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


def is_custom(name: str) -> bool:
    """Whether `name` is an import path, `package.module:name`, not the name of a class of MM2."""
    return _IMPORT_PATH.fullmatch(name) is not None


def class_with(path: str, methods: tuple[str, ...]) -> type:
    """The class at `path`; ConfigError if it cannot be imported, is not a class, or lacks one of `methods`."""
    try:
        found = pkgutil.resolve_name(path)
    except Exception as problem:  # a custom module may raise anything
        where = "it must be importable here and on Spark's executors: see PYTHONPATH"
        raise ConfigError(f"{path} cannot be imported ({_told(problem)}); {where}") from problem
    if not isinstance(found, type):
        raise ConfigError(f"{path} is no class")
    abstract = getattr(found, "__abstractmethods__", ())
    if lacking := [name for name in methods if not callable(getattr(found, name, None)) or name in abstract]:
        raise ConfigError(f"{path} lacks {', '.join(lacking)}")
    return found


class CustomObject:
    """An object of the class at `path`, made without arguments, and configured with `properties` if it has `configure`.

    ConfigError as of `class_with`, or if the class raises. A class that does not derive from `base` gets the methods that `base`
    implements.
    """

    def __init__(self, path: str, methods: tuple[str, ...], properties: Mapping[str, str], base: type | None = None) -> None:
        self.path = path
        found = class_with(path, methods)
        try:
            whole = found if base is None or issubclass(found, base) else type(found.__name__, (found, base), {})
            self.made: Any = configured(whole, properties)
        except Exception as problem:
            raise ConfigError(f"{path} cannot be made and configured: {_told(problem)}") from problem

    def ask(self, method: str, *arguments: str, wants: tuple[type[Answer], ...]) -> Answer:
        """The result of a method. ConfigError if it raises or gives another type than `wants`."""
        call = f"{method}({', '.join(map(repr, arguments))})"
        try:
            result = getattr(self.made, method)(*arguments)
        except Exception as problem:
            raise ConfigError(f"{self.path}: {call} raised {_told(problem)}") from problem
        if not isinstance(result, wants):
            raise ConfigError(f"{self.path}: {call} gave {result!r}: it must give {' or '.join(each.__name__ for each in wants)}")
        return result


def configured(found: type, properties: Mapping[str, str]) -> Any:
    """An object of `found`. Raises what the class raises."""
    made = found()
    if hasattr(made, "configure"):
        made.configure(dict(properties))
    return made


def _told(problem: Exception) -> str:
    return f"{type(problem).__name__}: {problem}" if str(problem) else type(problem).__name__
