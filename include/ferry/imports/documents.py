"""Reads JSON and YAML documents in which each text knows its line, so that messages can name it.

JSON is read by the YAML reader, which keeps lines; Python's JSON reader only checks it. A number or a boolean stays the text as written,
because each value becomes the value of a property. A key without a value is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import yaml  # type: ignore[import-untyped]  # it has no types

from ferry.errors import ConfigError

# As in YAML 1.1, which Kubernetes reads.
_NULL = "tag:yaml.org,2002:null"


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


def read_json(path: Path, text: str) -> Node:
    """The document; ConfigError with the line if it is no JSON."""
    try:
        json.loads(text)
    except ValueError as problem:
        line = getattr(problem, "lineno", 1)
        raise ConfigError(f"{path}:{line}: is no JSON document: {getattr(problem, 'msg', problem)}") from None
    # YAML allows no tabs between tokens, and JSON none within them.
    return next(read_yaml(path, text.replace("\t", " ")))


def read_yaml(path: Path, text: str) -> Iterator[Node]:
    """Each document that is not empty; ConfigError with the line if the text is no YAML."""
    try:
        for node in yaml.compose_all(text, Loader=yaml.SafeLoader):
            if node is not None:
                yield _plain(path, node)
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark
        raise ConfigError(f"{path}:{mark.line + 1 if mark else 1}: is no YAML document: {problem.problem}") from None
    except yaml.YAMLError:
        raise ConfigError(f"{path}: is no YAML document") from None


def _plain(path: Path, node: yaml.Node) -> Node:
    line = node.start_mark.line + 1
    match node:
        case yaml.MappingNode():
            pairs = [(_key(path, key), value) for key, value in node.value]
            return {key: _plain(path, value) for key, value in pairs if value.tag != _NULL}
        case yaml.SequenceNode():
            return [_plain(path, value) for value in node.value]
        case _:
            return Text(node.value, line)


def _key(path: Path, node: yaml.Node) -> Text:
    line = node.start_mark.line + 1
    if not isinstance(node, yaml.ScalarNode):
        raise ConfigError(f"{path}:{line}: a key must be a text")
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
