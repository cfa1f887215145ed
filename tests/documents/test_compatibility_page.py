"""The documentation names the releases that are tried, and what older ones lack."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tools.docs.services_page import END, page, verdict
from tools.kafka.releases import NEWEST, OLDEST, RELEASES, needs_zookeeper

from ferry.clusters.admin.api_versions import SOURCE_NEEDS, SOURCE_WISHES, TARGET_NEEDS, TARGET_WISHES
from ferry.clusters.admin.service_profiles import READ, SERVICES

pytestmark = pytest.mark.unit

PAGE = (Path(__file__).parents[2] / "docs" / "compatibility.md").read_text(encoding="utf-8")


def test_the_table_of_releases() -> None:
    rows = re.findall(r"^\| (\d+\.\d+\.\d+) \| (ZooKeeper|KRaft)", PAGE, re.MULTILINE)
    assert rows == [(release, "ZooKeeper" if needs_zookeeper(release) else "KRaft") for release in RELEASES]
    assert (RELEASES[0], RELEASES[-1]) == (OLDEST, NEWEST)


def test_the_table_of_what_older_ones_lack() -> None:
    rows = set(re.findall(r"^\| (\d+\.\d+) \| (source|target) \| (.*) \|$", PAGE, re.MULTILINE))
    wishes = {("source", wish) for wish in SOURCE_WISHES} | {("target", wish) for wish in TARGET_WISHES}
    assert rows == {(wish.since, side, wish.without) for side, wish in wishes}


def test_what_is_refused() -> None:
    assert {need.since for need in TARGET_NEEDS} == {"2.5"}
    assert {need.since for need in SOURCE_NEEDS} == {"0.11"}
    assert "A target must be 2.5 or newer, and a source 0.11 or newer." in PAGE


def test_the_table_of_services_is_the_current_one() -> None:
    assert page() == PAGE, "run: python -m tools.docs"
    rows = PAGE.partition("| service |")[2].partition(END)[0]
    assert re.findall(r"^\| ([A-Z][^|]*) \| (works|works with .*?|refused because .*?) \|", rows, re.MULTILINE) == [
        (service.name, verdict(service)) for service in SERVICES
    ]
    assert f"Every limit was read on {READ}." in PAGE
