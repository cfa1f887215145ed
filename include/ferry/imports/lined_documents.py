"""Reads JSON and YAML documents in which each text knows its line, so that messages can name it.

A number or a boolean becomes a text, because each value becomes the value of a property: in JSON as it is written, in YAML as Kubernetes
reads it, by YAML 1.1 (`no` is false, 010 is 8). A key whose value is null is left out.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import yaml  # type: ignore[import-untyped]  # it has no types

from ferry.errors import ConfigError

_TAG = "tag:yaml.org,2002:"
_MERGE = f"{_TAG}merge"
# A document of people has some ten levels; one that refers to itself has no end.
MOST_LEVELS = 50
# A text of JSON, and the colon behind it if it is a key.
_JSON_STRING = re.compile(r'"(?:[^"\\]|\\.)*"(\s*:)?')


class Text(str):
    """A text of a document, and its line from 1."""

    __slots__ = ("line",)
    line: int

    def __new__(cls, text: str, line: int) -> Self:
        made = super().__new__(cls, text)
        made.line = line
        return made


# A dict of Nodes, whose keys are Texts, a list of Nodes, or a Text.
Node = Any
Fields = dict[Any, Node]


def decoded(path: Path, data: bytes) -> str:
    """A text of JSON or YAML. ConfigError if it is not UTF-8: a password could lose a letter."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        raise ConfigError(f"{path}:{line}: is not UTF-8") from None


def read_json(path: Path, text: str) -> Node:
    """The document; ConfigError with the line if it is no JSON."""
    try:
        found = json.loads(text, object_pairs_hook=_Pairs, parse_int=str, parse_float=str, parse_constant=str)
    except ValueError as problem:
        line = getattr(problem, "lineno", 1)
        raise ConfigError(f"{path}:{line}: is no JSON document: {getattr(problem, 'msg', problem)}") from None
    except RecursionError:
        raise ConfigError(f"{path}: has more than {MOST_LEVELS} levels") from None
    return _of_json(path, found, _key_lines(text), 1, 0)


class _Pairs(list[tuple[str, Any]]):
    """The keys and values of an object, in their order."""


def _key_lines(text: str) -> Iterator[int]:
    """The line of each key, in the order of the document."""
    line, place = 1, 0
    for found in _JSON_STRING.finditer(text):
        line, place = line + text.count("\n", place, found.start()), found.start()
        if found[1]:
            yield line


def _of_json(path: Path, found: Any, lines: Iterator[int], line: int, level: int) -> Node:
    if level > MOST_LEVELS:
        raise ConfigError(f"{path}:{line}: has more than {MOST_LEVELS} levels")
    match found:
        case _Pairs():
            read: Fields = {}
            for key, value in found:
                at = next(lines, line)
                if (node := _of_json(path, value, lines, at, level + 1)) is not None:
                    read.pop(key, None)
                    read[Text(key, at)] = node
            return read
        case list():
            return [node for one in found if (node := _of_json(path, one, lines, line, level + 1)) is not None]
        case bool():
            return Text("true" if found else "false", line)
        case None:
            return None
        case _:
            return Text(str(found), line)


def read_yaml(path: Path, text: str) -> Iterator[Node]:
    """Each document that is not empty; ConfigError with the line if the text is no YAML."""
    try:
        for node in yaml.compose_all(text, Loader=yaml.SafeLoader):
            if node is not None:
                yield _of_yaml(path, node, {}, 0)
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark
        raise ConfigError(f"{path}:{mark.line + 1 if mark else 1}: is no YAML document: {problem.problem}") from None
    except yaml.YAMLError:
        raise ConfigError(f"{path}: is no YAML document") from None


def _of_yaml(path: Path, node: yaml.Node, known: dict[int, Node], level: int) -> Node:
    """`known`: what was read so far, by node: an alias gives the same object again, so a document cannot grow without limit."""
    line = node.start_mark.line + 1
    if level > MOST_LEVELS:
        raise ConfigError(f"{path}:{line}: has more than {MOST_LEVELS} levels, or refers to itself")
    if id(node) not in known:
        match node:
            case yaml.MappingNode():
                known[id(node)] = _fields(path, node, known, level)
            case yaml.SequenceNode():
                known[id(node)] = [read for one in node.value if (read := _of_yaml(path, one, known, level + 1)) is not None]
            case _:
                known[id(node)] = _scalar(node, line)
    return known[id(node)]


def _fields(path: Path, node: yaml.MappingNode, known: dict[int, Node], level: int) -> Fields:
    own: Fields = {}
    merged: Fields = {}
    for key, value in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            raise ConfigError(f"{path}:{line}: a key must be a text")
        read = _of_yaml(path, value, known, level + 1)
        if key.tag == _MERGE:
            for one in reversed(read if isinstance(read, list) else [read]):
                merged |= one if isinstance(one, dict) else {}
        elif read is not None:
            own.pop(key.value, None)
            own[Text(key.value, line)] = read
    return {key: value for key, value in merged.items() if key not in own} | own


def _scalar(node: yaml.ScalarNode, line: int) -> Text | None:
    if node.tag == f"{_TAG}null":
        return None
    if node.tag in {f"{_TAG}bool", f"{_TAG}int"}:
        value = yaml.SafeLoader("").construct_object(node)
        return Text(str(value).lower(), line)
    return Text(node.value, line)


def line_of(node: Node) -> int:
    """The line of a text, or of the first text of a mapping or list; 1 if it has none."""
    match node:
        case Text():
            return node.line
        case dict():
            return min((key.line for key in node), default=1)
        case list():
            return min((line_of(one) for one in node), default=1)
    return 1
