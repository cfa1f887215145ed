"""Writes a new file in one step, readable by its owner only."""

import os
import tempfile
from pathlib import Path

from ferry.errors import ArgumentError


def check_new_file(path: Path, *, force: bool) -> None:
    """ArgumentError when `path` exists (without `force`) or cannot be written. Called before the first question."""
    # os.path instead of Path, which raises if a directory may not be searched or a name is too long.
    folder = path.absolute().parent
    if os.path.isdir(path):  # noqa: PTH112 - see above
        raise ArgumentError(f"{path} is a directory: give the path of a file")
    if os.path.lexists(path) and not force:
        raise ArgumentError(f"{path} exists already: give another FILE, or --force to overwrite it")
    if not os.path.isdir(folder) or not os.access(folder, os.W_OK):  # noqa: PTH112 - see above
        raise ArgumentError(f"{path} cannot be written: {folder} is no directory in which you may write")


def write_new_file(path: Path, text: str, *, force: bool) -> None:
    """Write a temporary file of mode 600, then rename it. ArgumentError when the file exists meanwhile, or cannot be written."""
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
                os.link(scratch, path)  # fails if the file exists; a rename would overwrite it
        finally:
            Path(scratch).unlink(missing_ok=True)
    except FileExistsError as problem:
        raise ArgumentError(f"{path} exists already: give another FILE, or --force to overwrite it") from problem
    except OSError as problem:
        raise ArgumentError(f"{path} cannot be written: {problem.strerror}") from problem
