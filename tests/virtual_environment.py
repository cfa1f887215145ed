"""A bare virtual environment for what a test installs. uv installs what pip would."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path


def virtual_environment(place: Path, python: str, *packages: str, constraints: Path | None = None) -> Path:
    """The Python of a new environment with these packages. `python`: its version. `constraints`: a file that pins other packages."""
    uv = shutil.which("uv")
    assert uv
    subprocess.run([uv, "venv", "--quiet", "--python", python, place], check=True)
    program = place / "bin" / "python"
    pins = ["--constraints", str(constraints)] if constraints else []
    subprocess.run([uv, "pip", "install", "--no-config", "--quiet", "--python", program, *pins, *packages], check=True)
    return program
