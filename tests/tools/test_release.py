"""The files of a release: the same bytes from every checkout of a commit, and a bill of materials that names all that is in them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packaging.utils import canonicalize_name
from tools.release.building import ROOT, build, commit_time
from tools.release.sbom import sbom

from ferry import __version__

MADE = 1_700_000_000


@pytest.fixture(scope="module")
def bill() -> str:
    return sbom(MADE)


@pytest.fixture
def pieces(bill: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(bill)["components"]
    return found


@pytest.fixture
def clones(tmp_path: Path) -> list[Path]:
    """Two clones of this commit, in folders of other names. The files of the second are older, and nobody else may read them."""
    found = [tmp_path / "one", tmp_path / "far" / "two"]
    for clone in found:
        subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
    for path in found[1].rglob("*"):
        if ".git" not in path.parts and path.is_file():
            path.chmod(path.stat().st_mode & 0o700)
            os.utime(path, (MADE, MADE))
    return found


@pytest.mark.unit
@pytest.mark.parametrize("target", ["wheel", "sdist"])
def test_two_clones_build_the_same_bytes(target: str, clones: list[Path], tmp_path: Path) -> None:
    folders = [tmp_path / "first", tmp_path / "second"]
    one, two = (build(target, folder, clone) for folder, clone in zip(folders, clones, strict=True))
    assert one.name == two.name
    assert __version__ in one.name
    assert one.read_bytes() == two.read_bytes()


@pytest.mark.long
def test_two_clones_build_the_same_archive_for_executors(clones: list[Path], pieces: list[dict[str, Any]], tmp_path: Path) -> None:
    made = [tmp_path / "one.tar.gz", tmp_path / "two.tar.gz"]
    for clone, archive in zip(clones, made, strict=True):
        (clone / ".venv").symlink_to(Path(sys.prefix))
        subprocess.run([clone / "setup" / "spark-environment.sh", archive], check=True, capture_output=True)
    assert made[0].read_bytes() == made[1].read_bytes()
    with tarfile.open(made[0]) as archive:
        members = archive.getmembers()
    assert {member.mtime for member in members} == {commit_time()}
    packages = [Path(member.name).stem.split("-") for member in members if member.name.endswith(".dist-info")]
    assert {f"{canonicalize_name(name)}=={version}" for name, version in packages} == {*lock("executors"), f"kafka-ferry=={__version__}"}
    # Whoever passes it on owes the source of what is LGPL.
    sources = {Path(member.name).name for member in members if "/share/source/" in member.name}
    assert sources == {f"{piece['name']}-{piece['version']}.tar.gz" for piece in pieces if "LGPL" in json.dumps(piece["licenses"])}


@pytest.mark.unit
def test_the_bill_of_materials_is_valid_and_the_same_each_time(bill: str) -> None:
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(bill) is None
    assert sbom(MADE) == bill


@pytest.mark.unit
def test_the_bill_of_materials_has_every_locked_package_and_the_libraries_of_the_page(bill: str, pieces: list[dict[str, Any]]) -> None:
    assert set(lock()) <= set(map(pin, pieces))
    assert {pin(piece) for piece in pieces if "archive of the executors" in places(piece)} == set(lock("executors"))
    assert {piece["name"] for piece in pieces if "wheel, sdist" in places(piece)} == {"htm", "uPlot"}
    assert json.loads(bill)["metadata"]["component"]["version"] == __version__


@pytest.mark.unit
def test_it_names_what_compiled_packages_are_made_of(pieces: list[dict[str, Any]]) -> None:
    (cryptography,) = (piece for piece in pieces if piece["name"] == "cryptography")
    assert {"openssl", "pyo3"} <= {inner["name"] for inner in cryptography["components"]}


def places(piece: dict[str, Any]) -> set[str]:
    return {told["value"] for told in piece["properties"]}


def pin(piece: dict[str, Any]) -> str:
    return f"{piece['name']}=={piece['version']}"


def lock(*of: str) -> list[str]:
    """The pins of a lock, without extras."""
    text = (ROOT / f"{'-'.join(('requirements', *of))}.txt").read_text(encoding="utf-8")
    return ["==".join(found) for found in re.findall(r"^([\w.-]+)(?:\[.*\])?==(\S+)", text, re.MULTILINE)]
