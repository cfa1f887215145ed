"""A command line of MirrorMaker 1, alone or within a script, becomes a legacy file (see config.legacy_file)."""

import re
import shlex
from pathlib import Path

from ferry.config.legacy_file import KNOWN, PREFIX
from ferry.config.problems import located
from ferry.config.properties import Entry, PropertiesFile
from ferry.errors import ConfigError

_COMMENT, _CONTINUED = re.compile(r"^[ \t]*#.*$", re.MULTILINE), re.compile(r"\\\r?\n")
# A command has an option behind it: the name alone is also a client's id, or a text for people.
_COMMAND = re.compile(r"(?:kafka-mirror-maker(?:\.sh|\.bat)?|kafka\.tools\.MirrorMaker)(?=[ \t]+--)")
# Options with other names, or without a value.
_OTHER_NAMES = {"--consumer": "consumer.config", "--producer": "producer.config"}
_FLAGS = frozenset({"--new.consumer", "--help", "--version"})
_ONLY_ASKS = frozenset({"--help", "--version"})
_PUNCTUATION = "();<>|&"


def commands_of(text: str) -> list[tuple[int, str]]:
    """The line and the arguments of each command in `text` that starts MirrorMaker 1."""
    # Blanks keep every place, so that the line can be counted in `text`.
    code = _CONTINUED.sub(_blanks, _COMMENT.sub(_blanks, text))
    found = [(text.count("\n", 0, match.start()) + 1, code[match.end() :].partition("\n")[0]) for match in _COMMAND.finditer(code)]
    return [(line, arguments) for line, arguments in found if arguments.split()[0] not in _ONLY_ASKS]


def _blanks(found: re.Match[str]) -> str:
    return " " * len(found[0])


def read_command_line(path: Path, line: int, arguments: str) -> tuple[PropertiesFile, list[tuple[Entry, str]]]:
    """The legacy file of a command in this line, and the options that have no meaning in Ferry, and why. ConfigError."""
    reader = shlex.shlex(arguments, posix=True, punctuation_chars=_PUNCTUATION)
    reader.whitespace_split = True
    try:
        words = list(reader)
    except ValueError as problem:
        raise ConfigError(located(path, line, "", f"the command cannot be read: {problem}")) from None
    entries: dict[str, Entry] = {}
    idle: list[tuple[Entry, str]] = []
    while words and not set(words[0]) <= set(_PUNCTUATION) and not (words[0].isdigit() and words[1:2] == [">"]):
        option, given, value = words.pop(0).partition("=")
        if option in _FLAGS:
            continue
        if not option.startswith("--"):
            raise ConfigError(located(path, line, option, "is no option of MirrorMaker 1"))
        if not given:
            if not words or set(words[0]) <= set(_PUNCTUATION):
                raise ConfigError(located(path, line, option, "has no value"))
            value = words.pop(0)
        name = PREFIX + _OTHER_NAMES.get(option, option.removeprefix("--"))
        if name in KNOWN:
            entries[name] = Entry(option, value, line, path)
        else:
            idle.append((Entry(option, "", line, path), "a flow has no such setting"))
    return PropertiesFile(path, entries), idle
