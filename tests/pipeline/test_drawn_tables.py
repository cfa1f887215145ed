"""Tables on terminals of any width: a name is never cut, and a line is no longer than the terminal if its words are not."""

from __future__ import annotations

from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from ferry.pipeline.drawn_tables import draw
from ferry.pipeline.tables import Table

pytestmark = pytest.mark.unit

LONGEST = "a-topic.with_every-kind.of_part-" * 7 + "x" * 25
WORDS = st.text("abcdefgh-._/", min_size=1, max_size=40)
CELLS = st.one_of(st.none(), st.integers(0, 10**12), st.lists(WORDS, max_size=6).map(" ".join))


def drawn(table: Table, width: int) -> list[str]:
    console = Console(file=StringIO(), width=width, highlight=False)
    draw(table, console)
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined]


@pytest.mark.parametrize("width", [60, 80, 160, 300, 600])
def test_a_name_of_249_characters_is_whole(width: int) -> None:
    assert len(LONGEST) == 249
    table = Table("A->B: to copy", ("topic", "partition", "remote topic"), [(LONGEST, 0, f"A.{LONGEST}"), ("orders", 1, "A.orders")])
    lines = drawn(table, width)
    assert [word for line in lines for word in line.split() if LONGEST in word] == [LONGEST, f"A.{LONGEST}"]
    if width < 600:
        assert lines[:3] == ["A->B: to copy", LONGEST, "  partition: 0"]
        assert lines[-3:] == ["orders", "  partition: 1", "  remote topic: A.orders"]


@given(st.integers(1, 5).flatmap(lambda size: st.lists(st.tuples(*[CELLS] * size), min_size=1, max_size=5)), st.integers(40, 200))
def test_no_word_is_cut(rows: list[tuple[object, ...]], width: int) -> None:
    table = Table("", tuple(f"column{number}" for number in range(len(rows[0]))), rows)
    lines = drawn(table, width)
    words = sorted(word for text in table.texts for cell in text for word in cell.split())
    shown = sorted(word for line in lines for word in line.split())
    missing = [word for word in words if word not in shown]
    assert missing == []
    longest = max(map(len, words), default=0)
    assert max(map(len, lines), default=0) <= max(width, longest + len("  column9: "))
