"""A command line of MirrorMaker 1, alone or within a script, becomes a legacy file (see config.legacy_file)."""

import re
import shlex
from pathlib import Path

from ferry.config.legacy_file import KNOWN, PREFIX
from ferry.config.problems import located
from ferry.config.properties import Entry, LineOf, PropertiesFile
from ferry.errors import ConfigError

_COMMENT, _CONTINUED = re.compile(r"^\s*#.*$", re.MULTILINE), re.compile(r"\\\r?\n")
_COMMAND = re.compile(r"kafka-mirror-maker(?:\.sh|\.bat)?(?=\s)|kafka\.tools\.MirrorMaker(?=\s)")
# Options with other names, or without a value.
_OTHER_NAMES = {"--consumer": "consumer.config", "--producer": "producer.config"}
_FLAGS = frozenset({"--new.consumer", "--help", "--version"})
_ENDS = (";", "|", "&", ">", "2>", "1>")


def command_of(text: str) -> tuple[int, str] | None:
    """The line and the arguments of the first command in `text` that starts MirrorMaker 1; None without one."""
    code = _COMMENT.sub("", text)
    found = _COMMAND.search(code)
    if found is None:
        return None
    return code.count("\n", 0, found.start()) + 1, _CONTINUED.sub(" ", code[found.end() :]).partition("\n")[0]


def read_command_line(path: Path, at: int, arguments: str) -> tuple[PropertiesFile, list[tuple[int, str, str]]]:
    """The legacy file of a command in line `at`, and (line, option, why) of options that have no meaning in Ferry. ConfigError."""
    line = LineOf(at, path)
    try:
        words = shlex.split(arguments, comments=True)
    except ValueError as problem:
        raise ConfigError(located(path, line, "", f"the command cannot be read: {problem}")) from None
    entries: dict[str, Entry] = {}
    idle: list[tuple[int, str, str]] = []
    while words and not words[0].startswith(_ENDS):
        option, given, value = words.pop(0).partition("=")
        if option in _FLAGS:
            continue
        if not option.startswith("--"):
            raise ConfigError(located(path, line, option, "is no option of MirrorMaker 1"))
        if not given:
            if not words:
                raise ConfigError(located(path, line, option, "has no value"))
            value = words.pop(0)
        name = PREFIX + _OTHER_NAMES.get(option, option.removeprefix("--"))
        if name in KNOWN:
            entries[name] = Entry(option, value, line)
        else:
            idle.append((line, option, "a flow has no such setting"))
    return PropertiesFile(path, entries), idle
