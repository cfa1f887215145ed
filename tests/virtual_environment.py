"""A bare virtual environment for what a test installs. uv installs what pip would."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path


def virtual_environment(place: Path, python: str, *packages: str, constraints: Path | None = None, day: str = "") -> Path:
    """The Python of a new environment with these packages. `python`: its version. See `install`."""
    subprocess.run([_uv(), "venv", "--quiet", "--python", python, place], check=True)
    program = place / "bin" / "python"
    install(program, *packages, constraints=constraints, day=day)
    return program


def install(program: Path, *packages: str, constraints: Path | None = None, day: str = "") -> None:
    """Into the environment of this Python. `constraints`: a file that pins other packages. `day`: only what was released before it."""
    pins = ["--constraints", str(constraints)] if constraints else []
    then = ["--exclude-newer", day] if day else []
    subprocess.run([_uv(), "pip", "install", "--no-config", "--quiet", "--python", program, *pins, *then, *packages], check=True)


def _uv() -> str:
    uv = shutil.which("uv")
    assert uv
    return uv
