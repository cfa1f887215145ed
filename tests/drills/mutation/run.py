"""`make mutants ROOM=wire`: changes one thing at a time in a room of Ferry and asks whether a unit test notices (mutmut).

mutmut finds modules only below `src`, so a copy of the product and of its tests is staged in a directory of its own. Only lines that unit
tests reach are changed: what needs brokers is held by tests that are too slow to be repeated thousands of times.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
ROOMS = ("wire", "translation", "copying")
SETTINGS = """
[tool.mutmut]
source_paths = ["src"]
only_mutate = {modules}
also_copy = ["docs", "dags", "setup", "tools"]
mutate_only_covered_lines = true
pytest_add_cli_args = ["-m", "unit", "-p", "no:cacheprovider", "-p", "no:xdist", "-q", "-k", "not hundreds_of_thousands"]
pytest_add_cli_args_test_selection = {tests}
"""
TESTS = {
    "wire": ["tests/wire"],
    "translation": ["tests/translation", "tests/syncs/test_translated_groups.py"],
    "copying": ["tests/copying", "tests/monitoring", "tests/drills/upgrades"],
}


def stage(room: str, modules: list[str], directory: Path) -> None:
    """Lay out the copy; `modules` are changed, shell patterns allowed.

    Anything there before is removed, so nothing is taken from an older state of the code.
    """
    shutil.rmtree(directory, ignore_errors=True)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "include" / "ferry", directory / "src" / "ferry", ignore=ignored)
    for name in ("tests", "docs", "dags", "setup", "tools"):
        shutil.copytree(ROOT / name, directory / name, ignore=ignored)
    changed = [f"src/ferry/{room}/{module}.py" for module in modules]
    settings = SETTINGS.format(modules=changed, tests=TESTS[room])
    (directory / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text(encoding="utf-8") + settings, encoding="utf-8")


def mutmut(directory: Path, *arguments: str) -> str:
    """What mutmut prints; shown as it comes too."""
    binary = Path(sys.executable).with_name("mutmut")
    # A mutant is noticed by few examples or by none: a tenth of hypothesis' hundred.
    environment = {**os.environ, "FERRY_HYPOTHESIS_EXAMPLES": "15", "PYTHONPATH": ""}
    done = subprocess.run([binary, *arguments], cwd=directory, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    return done.stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--room", choices=ROOMS, required=True)
    parser.add_argument("--module", action="append", help="only this module, a shell pattern; may be repeated (default: all)")
    parser.add_argument("--directory", type=Path, default=ROOT / ".ferry" / "mutants")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    options = parser.parse_args()
    directory = options.directory / options.room
    stage(options.room, options.module or ["*"], directory)
    print(mutmut(directory, "run", "--max-children", str(options.processes))[-600:])  # noqa: T201 - the report
    for line in mutmut(directory, "results").splitlines():
        print(line)  # noqa: T201 - the report
    return 0


if __name__ == "__main__":
    sys.exit(main())
