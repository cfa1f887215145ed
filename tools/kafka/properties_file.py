"""Java's properties files, as brokers and MirrorMaker 2 read them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def write_properties(settings: Mapping[str, str], path: Path) -> Path:
    """Write one line for each setting and return `path`. A backslash is an escape there, so it is doubled."""
    path.write_text("".join(f"{key} = {value}\n" for key, value in settings.items()).replace("\\", "\\\\"), encoding="latin-1")
    return path
