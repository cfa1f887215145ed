"""The reader of pages notices what a page gets wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.documents.code_blocks import Reader, blocks_of, matches

pytestmark = pytest.mark.unit

PAGE = """
# Page

<!-- stage: desk -->
<!-- file: greeting -->
```properties
hello
```

```sh
export NAME=reader
test "$DESK" = here
cat greeting
```

```text
hel…
```

- in a list

  <!-- exit: 3 -->
  ```sh
  test "$NAME" = reader
  exit 3
  ```

<!-- not run: no such command -->
```sh
no-such-command
```

<!-- needs: no-such-command -->
```sh
no-such-command
```

<!-- needs: true -->
```sh
test "$NAME" = reader
```
"""


def follow(tmp_path: Path, text: str) -> Reader:
    page, room = tmp_path / "page.md", tmp_path / "room"
    page.write_text(text)
    room.mkdir()
    reader = Reader(room, {}, installs=False, stages={"desk": lambda _: {"DESK": "here"}})
    reader.follow(page)
    return reader


def test_a_page_is_followed(tmp_path: Path) -> None:
    reader = follow(tmp_path, PAGE)
    assert (reader.commands, reader.left_out) == (3, ["page.md:34: needs no-such-command"])
    assert [block.mark for block in blocks_of(tmp_path / "page.md")] == ["stage", "file", "", "", "exit", "not run", "needs", "needs"]


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("hel…", "help…"),
        ("exit: 3", "exit: 4"),
        ("cat greeting", "cat meeting"),
        ("not run: no", "no run: no"),
        ("needs: no-such-command", "needs: true"),
    ],
)
def test_a_page_that_is_wrong_is_noticed(tmp_path: Path, right: str, wrong: str) -> None:
    with pytest.raises(AssertionError, match=r"page\.md:\d+"):
        follow(tmp_path, PAGE.replace(right, wrong))


def test_blanks_and_dots() -> None:
    assert matches("a  b\n… d", "x a b\n\n c  d")
    assert not matches("a b c", "a b\nx c")
