"""A new file that is there whole or not at all, and that nobody else reads."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from ferry.errors import ArgumentError


def check_new_file(path: Path, *, force: bool) -> None:
    """ArgumentError when `path` is there (and no `force`), or cannot be: said before anything is asked."""
    # os.path's ask: Path's fail where a directory may not be searched, or a name is too long.
    folder = path.absolute().parent
    if os.path.isdir(path):  # noqa: PTH112 - see above
        raise ArgumentError(f"{path} is a directory: give the path of a file")
    if os.path.lexists(path) and not force:
        raise ArgumentError(f"{path} is there already: give another FILE, or --force to overwrite it")
    if not os.path.isdir(folder) or not os.access(folder, os.W_OK):  # noqa: PTH112 - see above
        raise ArgumentError(f"{path} cannot be written: {folder} is no directory that you may write to")


def write_new_file(path: Path, text: str, *, force: bool) -> None:
    """Write beside it, mode 600, then put it in place in one step. ArgumentError when another one came first, or it cannot be written."""
    try:
        descriptor, scratch = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".new", dir=path.absolute().parent)
        try:
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            if force:
                Path(scratch).replace(path)
            else:
                os.link(scratch, path)  # fails where a rename would overwrite
        finally:
            with suppress(FileNotFoundError):
                Path(scratch).unlink()
    except FileExistsError as problem:
        raise ArgumentError(f"{path} is there already: give another FILE, or --force to overwrite it") from problem
    except OSError as problem:
        raise ArgumentError(f"{path} cannot be written: {problem.strerror}") from problem
