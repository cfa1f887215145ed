"""A page's code blocks, run in order as a reader would type them.

What runs: fences of `sh`. A fence of `text` behind one is what it prints: `…` stands for anything, blanks count as one, rules of tables as
none. A comment before a fence says more:

    <!-- file: NAME -->        the fence is written to NAME (of any language); with `append:` it is added to the end
    <!-- exit: 4 -->           the block ends with this exit code
    <!-- installs -->          installs the product: left out where it is installed already
    <!-- not run: REASON -->   needs what a test machine has not
    <!-- needs: COMMAND -->    run where this command succeeds, else told as left out
    <!-- stage: NAME -->       what follows is read by somebody who has just this: a function of stages.py
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

# A block that hangs must not hang the whole series: installing everything is the longest.
BLOCK_SECONDS = 600.0
# Makes a directory what the reader has, and says what he has in his environment.
Stage = Callable[[Path], Mapping[str, str]]
# Tables are drawn with these.
RULES = re.compile("[\u2500-\u257f]")
MARK = re.compile(r"<!--\s*(file|append|exit|installs|not run|needs|stage)\b:?\s*(.*?)\s*-->")


@dataclass(frozen=True)
class Block:
    """One fence: `line` counts from 1; `mark` is empty where there is none."""

    page: Path
    line: int
    language: str
    text: str
    mark: str = ""
    argument: str = ""

    @property
    def place(self) -> str:
        """For messages."""
        return f"{self.page.name}:{self.line}"


def blocks_of(page: Path) -> list[Block]:
    """All fences of a page, those in lists too."""
    return list(_blocks(page))


def _blocks(page: Path) -> Iterator[Block]:
    mark, argument = "", ""
    for token in MarkdownIt().parse(page.read_text(encoding="utf-8")):
        if token.type == "html_block" and (found := MARK.fullmatch(token.content.strip())):
            mark, argument = found[1], found[2]
            if mark == "stage":
                yield Block(page, token.map[0] + 1 if token.map else 0, "", "", mark, argument)
                mark, argument = "", ""
        elif token.type == "fence" and token.map:
            yield Block(page, token.map[0] + 1, token.info.strip(), token.content, mark, argument)
            mark, argument = "", ""
        elif token.type not in {"paragraph_close", "list_item_open", "list_item_close"}:
            mark, argument = "", ""


class Reader:
    """Somebody at a shell in `directory`: exported variables and the working directory last from block to block."""

    def __init__(
        self, directory: Path, environment: Mapping[str, str], *, installs: bool, stages: Mapping[str, Stage] | None = None
    ) -> None:
        self._directory = directory
        self._kept = directory.parent / f"{directory.name}.environment"
        self._kept.write_text("")
        self._environment = {**os.environ, **environment, "COLUMNS": "200", "NO_COLOR": "1"}
        self._installs = installs
        self._stages = stages or {}
        self.commands = 0
        self.left_out: list[str] = []

    def follow(self, page: Path) -> None:
        """Do what the page says. AssertionError names the block that does not do what the page says."""
        printed = ""
        for block in blocks_of(page):
            if block.mark == "stage":
                self._environment |= self._stages[block.argument](self._directory)
            elif block.mark == "not run" or (block.mark == "installs" and not self._installs):
                printed = ""
            elif block.mark == "needs" and not self._has(block.argument):
                self.left_out.append(f"{block.place}: needs {block.argument}")
                printed = ""
            elif block.mark in {"file", "append"}:
                with (self._directory / block.argument).open("w" if block.mark == "file" else "a", encoding="utf-8") as file:
                    file.write(block.text)
            elif block.language == "sh":
                printed = self.run(block.text, expected=int(block.argument or 0) if block.mark == "exit" else 0, place=block.place)
            elif block.language == "text" and printed:
                assert matches(block.text, printed), f"{block.place}: not what was printed:\n{printed}"

    def _has(self, command: str) -> bool:
        tried = ["bash", "-c", command]
        return not subprocess.run(tried, env=self._environment, capture_output=True, timeout=BLOCK_SECONDS, check=False).returncode

    def run(self, script: str, *, expected: int, place: str) -> str:
        """What a script prints; AssertionError where it ends otherwise than with `expected`."""
        whole = f'. "{self._kept}"; set -euo pipefail; trap \'export -p > "{self._kept}"\' EXIT\n{script}'
        done = subprocess.run(
            ["bash", "-c", whole],
            cwd=self._directory,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=BLOCK_SECONDS,
            check=False,
        )
        assert done.returncode == expected, f"{place}: exit code {done.returncode}:\n{script}\n{done.stdout}\n{done.stderr}"
        self.commands += 1
        return done.stdout + done.stderr


def matches(wanted: str, printed: str) -> bool:
    """Whether `wanted` stands in `printed`: `…` is anything, runs of blanks and rules of tables are one blank."""
    pieces = (re.escape(" ".join(piece.split())) for piece in wanted.strip().split("…"))
    return re.search(".*?".join(pieces), " ".join(RULES.sub(" ", printed).split())) is not None
