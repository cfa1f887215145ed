"""`ferry` inside the process of the tests, for what is not about processes: the start of a process takes most of a second of a core."""

from __future__ import annotations

import io
import logging
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from types import ModuleType
from unittest import mock

from ferry.cli import main


def ferry(*arguments: object, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """What `ferry` does with these arguments, and with `environment` on top of this process's; how it would have ended."""
    command = ["ferry", *map(str, arguments)]
    output, errors = io.StringIO(), io.StringIO()
    code: object = 0
    with (
        mock.patch.object(sys, "argv", command),
        _another_main(),
        mock.patch.dict(os.environ, environment or {}),
        redirect_stdout(output),
        redirect_stderr(errors),
    ):
        try:
            main._main()
        except SystemExit as end:
            code = end.code
        finally:
            logging.getLogger("kafka").setLevel(logging.NOTSET)
    return subprocess.CompletedProcess(command, code if isinstance(code, int) else 1, output.getvalue(), errors.getvalue())


@contextmanager
def _another_main() -> Iterator[None]:
    """Click names the program after the main module. (`mock.patch.dict` would drop all modules that a command imports.)"""
    ours = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = ours
