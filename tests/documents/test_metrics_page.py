"""One list of metrics: what measures, the documentation and the dashboard agree with it."""

from __future__ import annotations

import ast
import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest
from tools.docs.between import between
from tools.docs.metrics_page import METRICS, PAGE, page

from ferry.monitoring import measurements

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
DASHBOARD: dict[str, Any] = json.loads((ROOT / "monitoring" / "grafana" / "ferry.json").read_text(encoding="utf-8"))
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
# As Prometheus has them: dots and dashes become underscores, Airflow's prefix in front.
PREFIX = "airflow_ferry_"
EXPRESSIONS = [target["expr"] for panel in PANELS for target in panel["targets"]]
COLUMNS = 24


def named_in_the_code() -> set[str]:
    """Every text of the modules that measure which looks like a metric's name."""
    found = set()
    for path in (measurements.__file__, *(str(ROOT / f"include/ferry/syncs/{name}.py") for name in ("checkpoints", "group_offsets"))):
        tree = ast.parse(Path(str(path)).read_text(encoding="utf-8"))
        calls = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Measurement"
        ]
        found |= {call.args[0].value for call in calls if isinstance(call.args[0], ast.Constant)}
        found |= {key.value for node in ast.walk(tree) if isinstance(node, ast.Dict) for key in node.keys if isinstance(key, ast.Constant)}
        tuples = [node.elts[0] for node in ast.walk(tree) if isinstance(node, ast.Tuple) and len(node.elts) == 2]
        found |= {first.value for first in tuples if isinstance(first, ast.Constant)}
    # The names to which the code adds a statistic.
    spread = {"record-age-ms", "replication-latency-ms", "checkpoint-latency-ms"}
    named = {name for name in found if isinstance(name, str) and "-" in name}
    return named | {f"{name}-{part}" for name in spread for part in ("min", "avg", "max")} | spread


def test_names_are_unique_and_every_one_is_measured_somewhere() -> None:
    names = [metric.name for metric in METRICS]
    assert sorted(names) == sorted(named_in_the_code())


def test_the_page_has_every_metric_and_no_other() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == page(), "run: python -m tools.docs"
    assert text.count("\n| `ferry.") == len(METRICS)


def test_tables_need_a_place() -> None:
    assert between("a <!-- x --> b <!-- y --> c", "<!-- x -->", "<!-- y -->", "t") == "a <!-- x -->\n\nt\n<!-- y --> c"
    with pytest.raises(ValueError, match="lacks <!-- x -->"):
        between("# Another page", "<!-- x -->", "<!-- y -->", "t")


def test_the_dashboard_asks_for_metrics_that_exist_by_tags_that_they_have() -> None:
    known = {PREFIX + metric.name.replace("-", "_"): metric for metric in METRICS}
    asked: set[str] = set()
    for expression in EXPRESSIONS:
        names = re.findall(rf"({PREFIX}\w+)\{{([^}}]*)\}}", expression)
        assert names, expression
        for name, selectors in names:
            tags = set(re.findall(r"(\w+)=~", selectors)) | set(
                re.findall(r"by \(([\w, ]+)\)", expression)[0].split(", ") if " by " in expression else []
            )
            assert tags <= set(known[name].tags), expression
            asked.add(name)
    assert len(asked) > 15
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] == "query":
            assert re.search(rf"{PREFIX}\w+", variable["query"]["query"])[0] in known  # type: ignore[index]


def test_counters_are_not_asked_for() -> None:
    """Each task is a process of its own: what Prometheus makes of its counters means nothing."""
    counters = {PREFIX + metric.name.replace("-", "_") for metric in METRICS if metric.kind == "counter"}
    assert not [expression for expression in EXPRESSIONS for name in counters if re.search(rf"\b{name}(_total)?\b", expression)]


def test_the_dashboard_can_be_imported() -> None:
    assert DASHBOARD["id"] is None
    assert re.fullmatch(r"[\w-]{1,40}", DASHBOARD["uid"])
    assert DASHBOARD["title"]
    assert DASHBOARD["schemaVersion"] >= 36
    variables = {entry["name"]: entry for entry in DASHBOARD["templating"]["list"]}
    assert variables["datasource"]["type"] == "datasource"
    sources = [panel["datasource"] for panel in PANELS] + [target["datasource"] for panel in PANELS for target in panel["targets"]]
    assert {source["uid"] for source in sources} == {"${datasource}"}
    used = set(re.findall(r"\$(\w+)", " ".join(EXPRESSIONS)))
    assert used <= set(variables)
    assert [panel["title"] for panel in DASHBOARD["panels"] if panel["type"] == "row"] == [
        "Health", "Lag", "Headroom", "Throughput", "Losses", "Runs", "Groups",
    ]  # fmt: skip


def test_panels_have_ids_of_their_own_and_do_not_overlap() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    places = [panel["gridPos"] for panel in panels]
    for place in places:
        assert place["x"] >= 0 < place["w"]
        assert place["x"] + place["w"] <= COLUMNS
        assert place["h"] > 0
    for one, other in itertools.combinations(places, 2):
        apart = (
            one["x"] + one["w"] <= other["x"]
            or other["x"] + other["w"] <= one["x"]
            or one["y"] + one["h"] <= other["y"]
            or other["y"] + other["h"] <= one["y"]
        )
        assert apart, (one, other)


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: str(panel["title"]))
def test_a_panel_has_what_grafana_needs(panel: dict[str, Any]) -> None:
    assert panel["type"] in {"stat", "timeseries"}
    assert panel["title"]
    assert [target["refId"] for target in panel["targets"]] == [chr(65 + index) for index in range(len(panel["targets"]))]
    assert panel["fieldConfig"]["defaults"]["unit"]
    for target in panel["targets"]:
        assert target["expr"].count("(") == target["expr"].count(")")
        assert "last_over_time" in target["expr"]
