"""Java properties files with line numbers."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.config.properties import parse_properties, read_properties
from ferry.errors import ConfigError

pytestmark = pytest.mark.unit

PATH = Path("mm2.properties")


def read(text: str) -> dict[str, tuple[str, int]]:
    return {key: (entry.value, entry.line) for key, entry in parse_properties(PATH, text.encode("latin-1")).entries.items()}


def test_reads_as_java_does() -> None:
    text = (
        "# comment\n! comment\n\n  a = 1  \nb:2\nc 3\nd\ne = x # no comment\nf = one, \\\n    two, \\\n    three\n"
        "g = \\u00e9\\t\\\\.\nh\\ i\\=j = k\r\nl=\xfc\r# last\rm=n"
    )
    assert read(text) == {
        "a": ("1  ", 4),
        "b": ("2", 5),
        "c": ("3", 6),
        "d": ("", 7),
        "e": ("x # no comment", 8),
        "f": ("one, two, three", 9),
        "g": ("\xe9\t\\.", 12),
        "h i=j": ("k", 13),
        "l": ("\xfc", 14),
        "m": ("n", 16),
    }


def test_last_of_equal_keys_wins() -> None:
    file = parse_properties(PATH, b"a=1\nb=2\na=3\n")
    assert [(entry.key, entry.value, entry.line) for entry in file.entries.values()] == [("b", "2", 2), ("a", "3", 3)]
    assert [(entry.value, entry.line) for entry in file.overridden] == [("1", 1)]


def test_malformed_escape_is_located() -> None:
    with pytest.raises(ConfigError, match=r"^mm2\.properties:3: a \\u that four"):
        parse_properties(PATH, b"a=1\nb=2\nc=\\users\n")


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    """Editors of Windows write one."""
    path = tmp_path / "mm2.properties"
    path.write_bytes("clusters = A, B\n".encode("utf-8-sig"))
    assert {key: entry.value for key, entry in read_properties(path).entries.items()} == {"clusters": "A, B"}
    path.write_text("clusters = A, B\n", encoding="utf-16")
    with pytest.raises(ConfigError, match=r"mm2\.properties: is UTF-16; save it as UTF-8"):
        read_properties(path)


def escaped(text: str) -> str:
    """Every character as `\\uXXXX`, in UTF-16 as Java writes it."""
    units = text.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[index]:02x}{units[index + 1]:02x}" for index in range(0, len(units), 2))


texts = st.text(st.characters(blacklist_categories=["Cs"]))


@given(st.dictionaries(texts.filter(bool), texts), st.lists(st.sampled_from(["", "# c", "  ! c"])))
def test_what_java_writes_is_read_back(entries: dict[str, str], padding: list[str]) -> None:
    lines = [*padding, *(f"{escaped(key)}={escaped(value)}" for key, value in entries.items())]
    file = parse_properties(PATH, "\n".join(lines).encode())
    assert {key: entry.value for key, entry in file.entries.items()} == entries
    assert [entry.line for entry in file.entries.values()] == [len(padding) + 1 + index for index in range(len(entries))]
