"""Ids of the target's own: what the sync registers without ids, and the map from the source's ids that it keeps."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.schemas.registries import IDENTITY, Pair, flow_between, pair

from ferry.errors import ConfigError
from ferry.schemas.registry import SchemaRegistry
from ferry.verify.registries import verify_schemas

pytestmark = pytest.mark.unit

ALL = "sync.schemas.rewrite.ids.topics = .*"


def record(name: str, *fields: str) -> str:
    return json.dumps({"type": "record", "name": name, "namespace": "acme", "fields": [{"name": one, "type": "string"} for one in fields]})


@pytest.fixture(params=[False, True], ids=["8", "before 8"])
def made(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pair]:
    with pair(tmp_path, monkeypatch, ALL, before_8=request.param) as found:
        found.target.seed("of-others", record("Other", "z"))  # has id 1 there
        found.target.registry.set_config(None, {"compatibility": "NONE"})
        yield found


def fill(made: Pair) -> None:
    """Gaps in the numbers of versions, a reference to the version behind a gap, a soft-deleted version, one schema in two subjects."""
    source = made.source
    source.registry.set_config(None, {"compatibility": "NONE"})
    source.seed("common", record("Lost", "x"))
    common = source.seed("common", record("Money", "amount"))
    for permanent in (False, True):
        source.registry.delete_version("common", "1", permanent)
    assert common.number == 2
    source.seed("orders-value", record("Order", "a"))
    source.seed("orders-value", record("Order", "b"), references=[{"name": "acme.Money", "subject": "common", "version": 2}])
    source.seed("orders-value", record("Order", "c"))
    source.registry.delete_version("orders-value", "1", False)
    source.seed("ships-value", record("Order", "c"))


def texts(made: Pair) -> dict[str, list[tuple[int, bool, str]]]:
    found: dict[str, list[tuple[int, bool, str]]] = {}
    for (subject, number), (_, deleted, text) in made.content(made.target).items():
        found.setdefault(subject, []).append((number, deleted, json.loads(text)["fields"][0]["name"]))
    return found


def test_schemas_get_ids_of_the_target_and_the_map_is_kept(made: Pair) -> None:
    fill(made)
    outcome = made.sync()
    assert outcome.failed == ()
    assert texts(made) == {
        "of-others": [(1, False, "z")],
        "common": [(1, False, "amount")],
        "A.orders-value": [(1, True, "a"), (2, False, "b"), (3, False, "c")],
        "A.ships-value": [(1, False, "c")],
    }
    (shown,) = [one for one in made.target.registry.schemas("", True, False) if (one.subject, one.number) == ("A.orders-value", 2)]
    assert [(one.subject, one.version) for one in shown.content.references] == [("common", 1)]
    here, there = made.content(made.source), made.content(made.target)
    ids = made.state.new_ids((".", "."))
    assert ids[here["orders-value", 2][0]] == there["A.orders-value", 2][0]
    assert ids[here["orders-value", 3][0]] == ids[here["ships-value", 1][0]] == there["A.ships-value", 1][0]
    assert {number for number in ids if isinstance(number, int)} == {found[0] for found in here.values()}
    assert made.state.imports == {}
    assert {request.method for request in made.target.log if "mode" in request.path} <= {"GET"}


def test_nothing_is_written_when_nothing_changed(made: Pair) -> None:
    fill(made)
    made.sync()
    made.target.forget_requests()
    writes = made.writes
    again = made.sync()
    assert (again.changes, again.failed) == ((), ())
    assert [request for request in made.target.log if request.writes] == []
    assert made.writes == writes
    assert verify_schemas(made.flow).differences == ()


def test_a_schema_that_comes_later_is_added_to_the_map(made: Pair) -> None:
    fill(made)
    made.sync()
    new = made.source.seed("orders-value", record("Order", "d"))
    made.source.registry.delete_version("orders-value", "3", False)
    assert [(change.action, change.detail) for change in made.sync().changes] == [
        ("register", f"id {new.id} of the source"),
        ("delete", "soft"),
    ]
    assert made.state.new_ids((".", "."))[new.id] == made.content(made.target)["A.orders-value", 4][0]
    assert texts(made)["A.orders-value"][2:] == [(3, True, "c"), (4, False, "d")]


def test_a_content_that_was_deleted_and_came_again_is_one_live_version(made: Pair) -> None:
    """A registration removes the deleted version of its content if no schema refers to it; an import never does."""
    registry = made.source.registry
    registry.set_mode("orders-value", "IMPORT", True)
    for version in (1, 2):
        made.source.seed("orders-value", record("Order", "a"), id=7, version=version)
    registry.delete_version("orders-value", "1", False)
    assert [deleted for _, deleted, _ in made.content(made.source).values()] == [True, False]
    assert made.sync().failed == ()
    assert texts(made)["A.orders-value"] == [(1, False, "a")]
    assert made.state.new_ids((".", "."))[7] == made.content(made.target)["A.orders-value", 1][0]
    assert (made.sync().changes, verify_schemas(made.flow).differences) == ((), ())


def test_guids_are_mapped_where_both_registries_say_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pair(tmp_path, monkeypatch, ALL) as made:
        made.source.seed("common-value", record("Money", "amount"))
        made.source.seed("orders-value", record("Order", "b"), references=[{"name": "acme.Money", "subject": "common-value", "version": 1}])
        assert made.sync().failed == ()
        found = {entry.id: (entry.guid, entry.target_guid) for entry in made.state.schema_ids}
        assert found[1][0] == found[1][1] != ""  # the GUID is computed from the content
        assert found[2][0] != found[2][1]  # which names the renamed subject here
        assert all(made.state.new_ids((".", "."))[guid] == there for guid, there in found.values())


def test_one_context_into_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pair(tmp_path, monkeypatch, ALL, IDENTITY, "sync.schemas.contexts = .=.copy") as made:
        made.target.seed(":.copy:x", record("Other", "z"))
        made.source.seed("a-value", record("A", "one"))
        assert made.sync().failed == ()
        assert [(one.context, one.target_context, one.id, one.target) for one in made.state.schema_ids] == [(".", ".copy", 1, 2)]
        assert made.state.new_ids((".", ".")) == {}


def test_a_copied_topic_that_the_filter_leaves_out_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ("sync.schemas.rewrite.ids.topics = orders", "topics = orders, ships")
    with pair(tmp_path, monkeypatch, *lines) as made:
        for subject in ("orders-value", "ships-value", "others-value", "acme.Order"):
            made.source.seed(subject, record("Order", "a"))
        (failure,) = made.sync().failed
        assert (failure.what, failure.error) == ("subject A.ships-value version 1", "SchemasRefused")
        assert "topic ships is copied, and its records would keep the source's ids" in str(failure)
        assert [request for request in made.target.log if request.writes] == []


def test_a_subject_that_ferry_closed_is_opened_for_a_moment(made: Pair) -> None:
    made.source.seed("orders-value", record("Order", "a"))
    made.source.registry.set_mode("orders-value", "READONLY", False)
    assert made.sync().failed == ()
    made.source.registry.set_mode("orders-value", "READWRITE", False)
    made.source.seed("orders-value", record("Order", "b"))
    made.source.registry.set_mode("orders-value", "READONLY", False)
    assert made.sync().failed == ()
    assert made.target.registry.scopes.modes["A.orders-value"] == "READONLY"
    assert [number for number, *_ in texts(made)["A.orders-value"]] == [1, 2]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (("sync.schemas.contexts = .=.a, .x",), "needs one context"),
        (("sync.schemas.rewrite.ids.parts = all",), "key and value"),
    ],
)
def test_what_the_file_may_not_say(lines: tuple[str, ...], words: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=words):
        flow_between(tmp_path, "http://a:1", "http://b:1", ALL, *lines)


@pytest.mark.parametrize("seed", range(10))
def test_a_kill_at_any_step_is_mended_by_the_next_sync(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    with pair(tmp_path, monkeypatch, ALL) as made:
        made.target.registry.set_config(None, {"compatibility": "NONE"})
        made.target.seed("of-others", record("Other", "z"))
        fill(made)
        sending, left = SchemaRegistry._send, [chance.randrange(1, 9)]

        def send(self: SchemaRegistry, method: str, *request: object) -> object:
            left[0] -= method != "GET"
            dies, answered = left[0] == 0 and method != "GET", chance.random() < 0.5
            if dies and not answered:
                raise KeyboardInterrupt
            found = sending(self, method, *request)  # type: ignore[arg-type]
            if dies:
                raise KeyboardInterrupt
            return found

        monkeypatch.setattr(SchemaRegistry, "_send", send)
        with pytest.raises(KeyboardInterrupt):
            made.sync()
        assert made.sync().failed == ()
        assert texts(made)["A.orders-value"] == [(1, True, "a"), (2, False, "b"), (3, False, "c")]
        assert {one.id for one in made.state.schema_ids} == {found[0] for found in made.content(made.source).values()}
        assert made.state.imports == {}
        assert made.sync().changes == ()
