"""`python -m tools.english PATH…` finds patterns of English in docstrings and comments that a reader has to read twice.

A PATH is a Python file, or a folder whose Python files it reads. Each problem is a line `file:line: what is wrong`, and any makes the exit
code 1. Text between backquotes is code, and no English. Comments in adjacent lines are one text, so a sentence may go on in the next line.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator, Sequence
from pathlib import Path

_AMOUNT = re.compile(r"\bso\s+(?:many|much|long|often|few)\b(?![^.;:]*\bthat\b)", re.IGNORECASE)
_TOLD = re.compile(r"\b(?:[Tt]old|[Tt]ells?)\b")
_CODE = re.compile(r"`[^`]*`")
# A name of code: between backquotes, with a dot or an underscore, or with a capital and small letters.
_ELSEWHERE = re.compile(r"(?:As|See|Like)(?: [a-z]+| Kafka's)* (?:`[^`]*`|\w+[._][\w.]*\w|[A-Z][a-z]\w*)\.?")
# Names, each perhaps between backquotes, and the colon behind the last one.
_EXPLAINED = re.compile(r"(?:`?\b\w+\b`?(?:,\s+|\s+and\s+))*`?\b\w+\b`?:")

_SAY_THE_AMOUNT = "say the amount: `{}` points to no number; write `this many`, or the name of what counts"
_SAYS = "a machine says, reports or knows: write one of these, or `given` or `distinguish`, for `{}`"
_SAY_WHAT = "say what it does: this docstring only sends the reader elsewhere"
_BESIDE = "explain fields beside them: this docstring explains {}"
_GLOSSARY = 3


def problems(source: str) -> list[tuple[int, str]]:
    """Lines, from 1, and what is wrong there, in the order of the lines."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and (
            text := ast.get_docstring(node, clean=False)
        ):
            line = node.body[0].lineno
            found += _in_words(line, text)
            if _ELSEWHERE.fullmatch(text.strip()):
                found.append((line, _SAY_WHAT))
            if isinstance(node, ast.ClassDef) and len(explained := _explained_fields(node, text)) >= _GLOSSARY:
                found.append((line, _BESIDE.format(", ".join(explained))))
    for line, text in _comments(source):
        found += _in_words(line, text)
    return sorted(found)


def _in_words(first: int, text: str) -> Iterator[tuple[int, str]]:
    # As many characters and lines as before, so that a place in it is a place in the file.
    english = _CODE.sub(lambda code: re.sub(r"[^\n]", "_", code[0]), text)
    for pattern, message in ((_AMOUNT, _SAY_THE_AMOUNT), (_TOLD, _SAYS)):
        for hit in pattern.finditer(english):
            yield first + text.count("\n", 0, hit.start()), message.format(" ".join(hit[0].split()))


def _explained_fields(node: ast.ClassDef, text: str) -> list[str]:
    """The class's own fields that its docstring explains, in their order in the class."""
    fields = [entry.target.id for entry in node.body if isinstance(entry, ast.AnnAssign) and isinstance(entry.target, ast.Name)]
    named = {name for group in _EXPLAINED.findall(text) for name in re.findall(r"\w+", group)}
    return [name for name in fields if name in named]


def _comments(source: str) -> Iterator[tuple[int, str]]:
    """Comments, with the line where each begins. Those in adjacent lines, each alone in its line, are one."""
    block: list[str] = []
    last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        line, column = token.start
        text, alone = token.string.lstrip("#").strip(), not token.line[:column].strip()
        if block and alone and line == last + 1:
            block.append(text)
        else:
            if block:
                yield last - len(block) + 1, "\n".join(block)
            block = [text]
        last = line
    if block:
        yield last - len(block) + 1, "\n".join(block)


def main(paths: Sequence[str]) -> int:
    """Print the problems of these files and folders; 1 if there are any, else 0. FileNotFoundError: a path does not exist."""
    found = False
    for path in map(Path, paths):
        if not path.exists():
            raise FileNotFoundError(path)
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            for line, what in problems(file.read_text(encoding="utf-8")):
                sys.stdout.write(f"{file}:{line}: {what}\n")
                found = True
    return int(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
