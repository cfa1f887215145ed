"""The rooms of include/ferry stand as docs/architecture.md draws them, and every module is short enough to read."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "include" / "ferry"
ROOMS = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))
LOWEST = {"errors", "ending", "cache", "clock"}
MOST_LINES = 450
MOST_DECISIONS = 15
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DECISIONS = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.match_case)
# What differs from one run to the next. Code takes it from ferry/clock.py, and by the name of that module: a test may put others there.
FROM_THE_CLOCK = re.compile(
    r"(time|random|secrets|sched|asyncio|queue|multiprocessing|concurrent\.futures\.\w+Executor)\b"
    r"|threading\.(?!R?Lock$|current_thread$|main_thread$)|uuid\.uuid[14]$|os\.(times|urandom|getrandom)$"
    r"|datetime\.(datetime\.(now|utcnow|today)|date\.today)$"
)
# Packages for people and for other systems, beside the path of a run.
BESIDE_RUNS = ("ferry.airflow", "ferry.cli", "ferry.page", "ferry.sandbox", "ferry.spark")
TAKEN_ELSEWHERE = {
    "ferry.alerting.delivering": {"asyncio", "asyncio.run", "asyncio.wait_for"},  # callbacks of Airflow, after a run
    "ferry.config.assertions": {"uuid.uuid4"},  # of a login
    "ferry.config.stores": {"secrets", "secrets.token_hex"},  # a password
    "ferry.copying.lane_runner": {"concurrent.futures.ThreadPoolExecutor"},  # calls of users' listeners
    "ferry.schemas.at_once": {"concurrent.futures.ThreadPoolExecutor"},  # requests over HTTP, which no simulated cluster answers
    "ferry.ending": {"secrets", "secrets.token_hex"},  # the name of a directory
}
BEGIN = re.compile(r"^Begin with `([\w/]+)\.py`", re.MULTILINE)


def _imported(name: str) -> set[str]:
    """The other rooms and modules directly below ferry that a room or module imports, also where only type checks need them."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in [*PACKAGE.glob(f"{name}.py"), *(PACKAGE / name).rglob("*.py")]]
    assert trees
    statements = [node for tree in trees for node in ast.walk(tree)]
    # A relative import would not be seen; `from ferry import x` and `import ferry.x` are.
    assert not [node for node in statements if isinstance(node, ast.ImportFrom) and node.level]
    names = [f"{node.module}.{alias.name}" for node in statements if isinstance(node, ast.ImportFrom) for alias in node.names]
    names += [alias.name for node in statements if isinstance(node, ast.Import) for alias in node.names]
    return {parts[1] for parts in (full.split(".") for full in names) if parts[0] == "ferry" and parts[1:]} - {name}


def test_the_drawing_has_the_floors_that_lint_checks() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    contract, of_clusters = settings["contracts"]
    checked = [re.findall(r"\w+", layer) for layer in contract["layers"]]
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    drawing = page.partition("```text\n")[2].partition("```")[0]
    # Names of rooms are in columns of their own; two blanks or more end the last one.
    drawn = [[name for name in re.split(r"\s{2,}", line.strip()) if re.fullmatch(r"[a-z]+", name)] for line in drawing.splitlines()]
    assert drawn == checked
    # "|": rooms that do not import each other; ":": rooms that may.
    separators = [set(re.sub(r"[\w ]", "", layer)) for layer in contract["layers"]]
    assert set().union(*separators[:-1]) == {"|"}
    assert separators[-1] == {":"}
    assert "Only in the lowest layer `ending` imports `errors`." in page.replace("\n", " ")
    assert {name: found for name in LOWEST if (found := _imported(name) & LOWEST)} == {"ending": {"errors"}}
    assert contract["exhaustive"], "a new room must get a floor"
    assert of_clusters["exhaustive"]
    assert not settings["exclude_type_checking_imports"]


def test_the_table_has_every_room_once() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    cells = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    assert sorted(name for cell in cells for name in re.findall(r"`(\w+)`", cell)) == ROOMS


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_says_what_it_is_for_and_where_to_begin(room: str) -> None:
    docstring = ast.get_docstring(ast.parse((PACKAGE / room / "__init__.py").read_text(encoding="utf-8"))) or ""
    purpose, _, rest = docstring.partition("\n\n")
    assert purpose
    assert rest.startswith("Knows ")
    known = rest.partition(".")[0]
    assert re.findall(r"`(\w+)`", known) == sorted(_imported(room) & set(ROOMS)), known
    first = BEGIN.search(rest)
    assert first, docstring
    assert (PACKAGE / room / f"{first.group(1)}.py").exists()


def _modules() -> dict[str, ast.Module]:
    """Every module of include/ferry by its name; a package by its own."""
    parsed = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
        parsed[name] = ast.parse(path.read_text(encoding="utf-8"))
    return parsed


def _imports(module: ast.Module, known: Iterable[str]) -> set[str]:
    """Those of the `known` modules that a module imports anywhere: also in functions, and where only type checks need them."""
    found: set[str] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom):
            submodules = (f"{node.module}.{alias.name}" for alias in node.names)
            found |= {name if name in known else str(node.module) for name in submodules}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found & set(known)


def _circle(imports: Mapping[str, set[str]]) -> list[str]:
    """Modules that import each other in a circle, the first one again at the end; empty if there is none."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as found:
        return list(found.args[1])
    return []


def test_no_modules_import_each_other_in_a_circle() -> None:
    modules = _modules()
    assert _circle({name: _imports(module, modules) for name, module in modules.items()}) == []


@pytest.mark.parametrize(
    "statement",
    ["from ferry import a", "import ferry.a", "from ferry.a import x", "def f():\n    from ferry.a import x", "if T:\n    import ferry.a"],
)
def test_a_circle_is_found(statement: str) -> None:
    modules = {"ferry.a": ast.parse("from ferry.b import x"), "ferry.b": ast.parse(statement), "ferry.c": ast.parse("import ferry.a")}
    assert set(_circle({name: _imports(module, modules) for name, module in modules.items()})) == {"ferry.a", "ferry.b"}


def _past_the_clock(module: ast.Module) -> set[str]:
    """What a module takes of FROM_THE_CLOCK, in full names; and names that it imports from clock.py, which no test could replace."""
    names: dict[str, str] = {}
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {
                alias.asname or alias.name.partition(".")[0]: alias.name if alias.asname else alias.name.partition(".")[0]
                for alias in node.names
            }

    def full(node: ast.AST) -> str:
        if isinstance(node, ast.Attribute) and (before := full(node.value)):
            return f"{before}.{node.attr}"
        return names.get(node.id, "") if isinstance(node, ast.Name) else ""

    used = {full(node) for node in ast.walk(module)} | set(names.values())
    return {name for name in used if FROM_THE_CLOCK.match(name)} | {name for name in names.values() if name.startswith("ferry.clock.")}


def test_only_the_clock_reads_time_waits_and_draws() -> None:
    modules = {name: module for name, module in _modules().items() if name != "ferry.clock" and not name.startswith(BESIDE_RUNS)}
    assert {name: found for name, module in modules.items() if (found := _past_the_clock(module))} == TAKEN_ELSEWHERE


@pytest.mark.parametrize(
    ("code", "taken"),
    [
        ("import time", {"time"}),
        ("import time as t\nt.sleep(1)", {"time", "time.sleep"}),
        ("def f():\n    from time import sleep", {"time.sleep"}),
        ("import datetime\ndatetime.datetime.now()", {"datetime.datetime.now"}),
        ("from datetime import datetime as d\nd.now()\nd.fromisoformat(x)", {"datetime.datetime.now"}),
        ("import threading\nthreading.Lock()\nthreading.Event()", {"threading.Event"}),
        ("from threading import Lock, Timer", {"threading.Timer"}),
        ("from uuid import UUID, uuid4", {"uuid.uuid4"}),
        ("from concurrent.futures import Future, ThreadPoolExecutor", {"concurrent.futures.ThreadPoolExecutor"}),
        ("from ferry.clock import time", {"ferry.clock.time"}),
        ("from ferry import clock\nclock.time()\nevent.time.now()\nrandom()", set()),
    ],
)
def test_what_is_taken_past_the_clock_is_found(code: str, taken: set[str]) -> None:
    assert _past_the_clock(ast.parse(code)) == taken


def test_no_module_is_too_long() -> None:
    long = {
        str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py") if len(path.read_text(encoding="utf-8").splitlines()) > MOST_LINES
    }
    assert long == set()


def _decisions(function: ast.AST) -> int:
    """How often a function decides. The linter's rule (C901) counts no comprehension, and no `and`. A function inside counts by itself."""
    found, waiting = 0, list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        if isinstance(node, FUNCTIONS):
            continue
        found += isinstance(node, DECISIONS)
        found += len(node.values) - 1 if isinstance(node, ast.BoolOp) else 0
        found += 1 + len(node.ifs) if isinstance(node, ast.comprehension) else 0
        waiting += ast.iter_child_nodes(node)
    return found


def test_no_function_decides_too_much() -> None:
    """A function that may be complex for the linter says why there."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        lines = source.splitlines()
        functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, FUNCTIONS)]
        for function in (one for one in functions if "C901" not in lines[one.lineno - 1]):
            found[f"{path.relative_to(PACKAGE)}:{function.lineno} {function.name}"] = _decisions(function)
    assert {name: count for name, count in found.items() if count > MOST_DECISIONS} == {}


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ("if a: pass\nelif b: pass\nelse: pass", 2),
        ("x = a if b and c or d else e", 3),
        ("x = [y for a in b if c if d for y in a]", 4),
        ("for a in b:\n    while c: pass", 2),
        ("try: pass\nexcept A: pass\nexcept B: pass", 2),
        ("match a:\n    case 1: pass\n    case _: pass", 2),
        ("def inside():\n    if a: pass", 0),
        ("x = lambda: a or b", 1),
    ],
)
def test_what_counts_as_a_decision(code: str, count: int) -> None:
    assert _decisions(ast.parse(code)) == count
