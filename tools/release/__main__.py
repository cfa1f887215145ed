"""`python -m tools.release`: the files of a release of the commit that is checked out, in dist/ (make dist)."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tools.release.building import ROOT, build, commit_time
from tools.release.licences import FERRY
from tools.release.sbom import sbom

FOLDER = ROOT / "dist"
# Debian's: the interpreter of executors that use the archive. It is not in the archive.
PYTHON = Path("/usr/bin/python3.11")


def main() -> None:
    changed = subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    if changed:
        sys.exit(f"dist: a release is built from a commit. Commit or remove these changes first:\n{changed}")
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    build("wheel", FOLDER)
    build("sdist", FOLDER)
    archive = FOLDER / f"ferry-executors-{FERRY.version}-{PYTHON.name}-{os.uname().machine}.tar.gz"
    subprocess.run([ROOT / "setup" / "spark-environment.sh", archive, PYTHON], check=True)
    (FOLDER / f"{FERRY.name}-{FERRY.version}.cdx.json").write_text(sbom(commit_time()) + "\n", encoding="utf-8")
    sums = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in sorted(FOLDER.iterdir())]
    (FOLDER / "SHA256SUMS").write_text("".join(sums), encoding="utf-8")
    sys.stdout.writelines(sums)


if __name__ == "__main__":
    main()
