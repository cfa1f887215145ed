"""The sync of schemas between two doubles of a registry: what it copies, refuses, restores, and how much it asks."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.schemas.double.answers import Answers
from tests.schemas.double.faults import Answered, Cut, Request, busy
from tests.schemas.registries import IDENTITY, Pair, pair

from ferry.errors import FerryError, IdsNotKept, RegistryLoginRefused, RegistryUnreachable, SchemasRefused
from ferry.ledger.state import ImportMode, encode_state
from ferry.schemas import registry as requests
from ferry.schemas.registry import SchemaRegistry
from ferry.verify.registries import verify_schemas

pytestmark = pytest.mark.unit


class Killed(BaseException):
    """The process ends here."""


def record(name: str, *fields: str) -> str:
    return json.dumps({"type": "record", "name": name, "namespace": "acme", "fields": [{"name": one, "type": "string"} for one in fields]})


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pair]:
    with pair(tmp_path, monkeypatch) as found:
        yield found


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "TRY_SECONDS", 0.5)
    monkeypatch.setattr(requests, "FIRST_PAUSE_SECONDS", 0.01)


def fill(made: Pair) -> None:
    """Three strategies, references over subjects, a soft-deleted version, a deleted subject, contents of every kind, own settings."""
    source = made.source
    common = source.seed("common", record("Money", "amount"))
    for fields in (("a",), ("a", "b"), ("a", "b", "c")):
        source.seed(
            "orders-value", record("Order", *fields), references=[{"name": "acme.Money", "subject": "common", "version": common.number}]
        )
    source.seed("orders-key", '"string"')
    source.seed("acme.Order", record("Order", "x"))
    source.seed("orders-acme.Order", record("Order", "y"))
    text = 'syntax = "proto3";\npackage acme;\nmessage Ship {\n  string to = 1;\n}\n'
    source.seed("ships-value", text, schemaType="PROTOBUF", metadata={"properties": {"owner": "me"}})
    rules = {"domainRules": [{"name": "positive", "kind": "CONDITION", "mode": "WRITE", "type": "CEL", "expr": "message.a > 0"}]}
    source.seed("json-value", '{"title": "Thing", "type": "object"}', schemaType="JSON", ruleSet=rules)
    source.seed("gone-value", record("Gone", "a"))
    registry = source.registry
    registry.delete_version("orders-value", "2", False)
    registry.delete_subject("gone-value", False)
    registry.set_config("orders-value", {"compatibility": "FULL"})
    registry.set_mode("ships-value", "READONLY", False)


def renamed(made: Pair) -> dict[tuple[str, int], tuple[int, bool, str]]:
    names = {"acme.Order": "acme.Order", "common": "common"}
    return {(names.get(subject, f"A.{subject}"), number): found for (subject, number), found in made.content(made.source).items()}


def modes(made: Pair) -> dict[str, str]:
    return {name: scope for name, scope in made.target.registry.scopes.modes.items() if name}


def test_everything_is_copied_under_its_id(made: Pair) -> None:
    fill(made)
    outcome = made.sync()
    assert outcome.failed == ()
    assert made.content(made.target) == renamed(made)
    shown = {one.subject: one.content for one in made.target.registry.schemas("", True, False)}
    assert [(one.subject, one.version) for one in shown["A.orders-value"].references] == [("common", 1)]
    assert shown["A.ships-value"].metadata == {"properties": {"owner": "me"}}
    assert "positive" in json.dumps(shown["A.json-value"].rule_set)
    assert made.target.registry.scopes.configs["A.orders-value"]["compatibilityLevel"] == "FULL"
    assert modes(made) == {"A.ships-value": "READONLY"}
    assert made.state.imports == {}


def test_nothing_is_written_when_nothing_changed(made: Pair) -> None:
    fill(made)
    made.sync()
    made.target.forget_requests()
    writes = made.writes
    assert made.sync().changes == ()
    assert [request for request in made.target.log if request.writes] == []
    assert made.writes == writes


def test_a_dry_run_writes_nothing_and_says_the_same(made: Pair) -> None:
    fill(made)
    dry = made.sync(dry_run=True)
    assert [request for request in made.target.log if request.writes] == []
    assert made.writes == 0
    assert dry.changes == made.sync().changes
    assert len(dry.changes) > len(made.content(made.target))


def test_the_source_is_only_read(made: Pair) -> None:
    fill(made)
    made.sync()
    assert {request.method for request in made.source.log} == {"GET"}


def test_the_number_of_requests_grows_with_the_number_of_versions(made: Pair) -> None:
    for subject in range(20):
        for version in range(1, 4):
            made.source.seed(f"s{subject}-value", record(f"R{subject}", *"abc"[:version]))
    made.sync()
    posts = made.target.requests["POST", "/subjects/{subject}/versions"]
    assert posts == 60
    assert made.target.asked <= 60 + 20 * 3 + 20  # each version; a mode asked for, set and restored for each subject; a few
    assert made.source.asked <= 20 * 2 + 12
    made.source.seed("s3-value", record("R3", *"abcd"))
    made.target.forget_requests()
    made.sync()
    assert [request.method for request in made.target.log if request.writes] == ["PUT", "POST", "DELETE"]


def test_names_stay_under_the_identity_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pair(tmp_path, monkeypatch, IDENTITY) as made:
        fill(made)
        assert made.sync().failed == ()
        assert made.content(made.target) == made.content(made.source)


def test_contexts_are_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pair(tmp_path, monkeypatch, IDENTITY, "sync.schemas.contexts = .=.copy, .x") as made:
        made.source.seed(":.x:b-value", record("B", "two"))
        made.source.seed("a-value", record("A", "one"), references=[{"name": "b", "subject": ":.x:b-value", "version": 1}])
        made.source.seed(":.y:c-value", record("C", "three"))
        outcome = made.sync()
        assert outcome.failed == ()
        assert {subject for subject, _ in made.content(made.target)} == {":.copy:a-value", ":.x:b-value"}
        assert "context .y of A is not copied" in outcome.notices[0]


def test_an_older_registry_answers_ids_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pair(tmp_path, monkeypatch, before_8=True) as made:
        fill(made)
        assert made.sync().failed == ()
        assert made.content(made.target) == renamed(made)


@pytest.mark.parametrize("path", ["/schemas", "/subjects/{subject}/versions"])
def test_a_version_that_appears_between_two_lists_is_not_taken_for_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """`path`: of the lists. Without pages of schemas, versions are listed subject by subject."""
    with pair(tmp_path, monkeypatch) as made:
        made.source.api.answers = Answers(before_8=True)
        made.source.seed("a-value", record("R", "a"))
        kinds: list[bool] = []

        def usual(request: Request) -> Answered | None:
            return Answered(404) if _lists(request) and path != "/schemas" else None

        def register_between(request: Request) -> Answered | None:
            if request.route == path:
                kinds.append("deleted" in request.query)
                if len(kinds) > 1 and kinds[-1] != kinds[-2]:
                    made.source.plan = usual
                    made.source.seed("a-value", record("R", "a", "b"))
            return usual(request)

        made.source.plan = register_between
        made.sync()
        assert [change.action for change in made.sync().changes] in ([], ["register"])
        assert {found[1] for found in made.content(made.target).values()} == {False}
        assert not [request for request in made.target.log if request.method == "DELETE" and "versions" in request.path]


def test_small_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pair(tmp_path, monkeypatch, page=3) as made:
        made.source.api.page = 2
        fill(made)
        assert made.sync().failed == ()
        assert made.content(made.target) == renamed(made)
        assert made.sync().changes == ()


def test_a_subject_may_follow_later_and_be_deleted_later(made: Pair) -> None:
    fill(made)
    made.sync()
    made.source.seed("orders-value", record("Order", *"abcd"))
    made.source.registry.delete_version("orders-value", "1", False)
    outcome = made.sync()
    assert [(change.what, change.action) for change in outcome.changes] == [
        ("subject A.orders-value version 4", "register"),
        ("subject A.orders-value version 1", "delete"),
    ]
    assert made.content(made.target) == renamed(made)


# Refusals: each is named, and nothing is written.


def refused(made: Pair, *words: str) -> None:
    before = made.content(made.target)
    outcome = made.sync()
    assert {failure.error for failure in outcome.failed} == {"SchemasRefused"}
    told = " ".join(str(failure) for failure in outcome.failed)
    assert [word for word in words if word not in told] == []
    assert made.content(made.target) == before
    assert [request for request in made.target.log if request.writes] == []
    assert outcome.changes == ()


def test_another_schema_under_the_id(made: Pair) -> None:
    made.target.seed("other", record("Other", "z"))
    made.source.seed("orders-value", record("Order", "a"))
    refused(made, "subject A.orders-value version 1", "id 1 means another schema on the target", "subject other version 1")
    assert [change.reason for change in made.sync(dry_run=True).changes] == ["only when nothing fails"]
    assert [one.what for one in verify_schemas(made.flow).differences] == ["subject A.orders-value version 1"], "named once"


def test_another_schema_under_the_version(made: Pair) -> None:
    for name in ("x", "y"):
        made.source.seed("filler", record("Filler", name))
    made.target.seed("A.orders-value", record("Other", "z"))
    made.source.seed("orders-value", record("Order", "a"))
    refused(made, "subject A.orders-value version 1", "another schema under this version")


def test_a_reference_that_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pair(tmp_path, monkeypatch, "sync.schemas.subjects.exclude = common") as made:
        fill(made)
        refused(made, "subject A.orders-value version 1", "subject common version 1", "sync.schemas.subjects.exclude")


def test_references_in_a_circle(made: Pair) -> None:
    made.source.seed("a", record("A", "one"))
    made.source.seed("b", record("B", "two"), references=[{"name": "a", "subject": "a", "version": 1}])
    versions = made.source.registry.versions
    first = next(one for one in versions.of("a"))
    object.__setattr__(first.content, "references", next(iter(versions.of("b"))).content.references[:0])
    looped = [{"name": "b", "subject": "b", "version": 1}]
    reading = made.source.api.answers.__class__.version
    made.source.api.answers.__class__.version = lambda self, one: (
        reading(self, one) | ({"references": looped} if one.subject == "a" else {})
    )  # type: ignore[method-assign]
    try:
        refused(made, "in a circle", "subject a version 1", "subject b version 1")
    finally:
        made.source.api.answers.__class__.version = reading  # type: ignore[method-assign]


@pytest.mark.parametrize("scope", [None, "A.orders-value"])
def test_a_target_that_is_closed(made: Pair, scope: str | None) -> None:
    made.source.seed("orders-value", record("Order", "a"))
    made.target.registry.set_mode(scope, "READONLY", False)
    refused(made, "subject A.orders-value", "READONLY")


def test_a_registry_that_ignores_the_mode_import(made: Pair) -> None:
    """As Apicurio 3.3.3: it answers 200 to IMPORT, says so, and gives ids and versions of its own. Nothing of it stays."""
    made.source.seed("filler", record("Filler", "a"))
    made.source.registry.delete_subject("filler", False)
    made.source.registry.delete_subject("filler", True)
    made.source.seed("orders-value", record("Order", "a"))
    _ignore_import(made)
    with pytest.raises(IdsNotKept, match=r"subject A\.orders-value version 1 with id 2 was registered, and it has id 1"):
        made.sync()
    assert made.content(made.target) == {}
    assert made.state.imports == {}


def _ignore_import(made: Pair) -> None:
    registering = made.target.registry.register

    def ignoring(subject: str, request: dict[str, object], *more: object) -> object:
        made.target.registry.scopes.modes.pop(subject, None)
        return registering(subject, {name: value for name, value in request.items() if name not in {"id", "version"}}, *more)

    made.target.registry.register = ignoring  # type: ignore[method-assign, assignment]


def test_a_login_that_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pair(tmp_path, monkeypatch, "B.schema.registry.basic.auth.user.info = ferry:wrong", users={"ferry": "right"}) as made:
        with pytest.raises(RegistryLoginRefused, match="the schema registry of B") as refusal:
            made.sync()
        assert "wrong" not in str(refusal.value)


@pytest.mark.parametrize("login", ["basic.auth.user.info = ferry:right", "bearer.auth.token = t0ken"])
def test_logins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, login: str) -> None:
    users, tokens = {"ferry": "right"}, frozenset({"t0ken"})
    with pair(tmp_path, monkeypatch, f"B.schema.registry.{login}", users=users, tokens=tokens) as made:
        fill(made)
        assert made.sync().failed == ()


def test_a_right_that_is_missing(made: Pair) -> None:
    fill(made)
    made.target.forbids = lambda request: request.method == "POST"
    with pytest.raises(RegistryLoginRefused, match="40301"):
        made.sync()
    assert modes(made) == {}
    assert made.state.imports == {}


READS = frozenset(
    ("GET", route)
    for route in (
        *("/contexts", "/subjects", "/schemas", "/subjects/{subject}/versions", "/subjects/{subject}/versions/{version}"),
        *("/config", "/config/{subject}", "/mode", "/mode/{subject}"),
    )
)
WRITES = frozenset(
    {
        ("POST", "/subjects/{subject}/versions"),
        ("DELETE", "/subjects/{subject}/versions/{version}"),
        *((method, "/mode/{subject}") for method in ("PUT", "DELETE")),
        ("PUT", "/config/{subject}"),
    }
)


@pytest.mark.parametrize("before_8", [False, True])
def test_the_rights_of_the_documentation_are_enough(made: Pair, before_8: bool) -> None:
    """docs/security.md lists them."""
    made.source.api.answers = made.target.api.answers = Answers(before_8)
    made.source.forbids = lambda request: (request.method, request.route) not in READS
    made.target.forbids = lambda request: (request.method, request.route) not in READS | WRITES
    fill(made)
    assert made.sync().failed == ()
    assert made.content(made.target) == renamed(made)
    assert not verify_schemas(made.flow).differences


def test_a_registry_that_is_away(made: Pair) -> None:
    made.source.plan = lambda _: Cut(done=False)
    with pytest.raises(RegistryUnreachable, match="the schema registry of A"):
        made.sync()


def test_a_registry_that_fails_and_comes_back(made: Pair) -> None:
    fill(made)
    troubles: Iterator[Answered | Cut] = iter([Answered(503), Cut(done=False), Cut(done=True), busy(0), Answered(500)] * 5)
    made.target.plan = lambda request: next(troubles, None) if request.number % 3 == 0 else None
    assert made.sync().failed == ()
    assert made.content(made.target) == renamed(made)


def test_retry_after_is_obeyed(made: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(requests, "TRY_SECONDS", 60.0)
    monkeypatch.setattr(requests.clock, "sleep", waited.append)
    answers = iter([busy(7)])
    made.source.plan = lambda _: next(answers, None)
    made.sync()
    assert waited == [7.0]


def test_a_server_that_is_no_registry(made: Pair) -> None:
    made.source.plan = lambda _: Answered(404)
    with pytest.raises(RegistryUnreachable, match=r"the schema registry of A .*: is schema.registry.url the URL of a schema registry"):
        made.sync()


# Kills.

# Requests and writes of Ferry's state in a whole sync of `fill`.
STEPS = 80


@pytest.mark.parametrize("seed", range(20))
def test_a_kill_at_any_step_is_mended_by_the_next_sync(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    with pair(tmp_path, monkeypatch) as made:
        fill(made)
        made.source.seed("common", record("Money", "amount", "currency"))
        made.target.registry.set_mode("A.json-value", "READWRITE", False)
        sent, sending, keeping = [0], SchemaRegistry._send, made.keep
        dies_at = 30 + chance.randrange(STEPS - 30)  # the first ones only read

        def step() -> bool:
            sent[0] += 1
            return sent[0] == dies_at

        def send(self: SchemaRegistry, *request: object) -> object:
            dies, answered = step(), chance.random() < 0.5
            if dies and not answered:
                raise Killed
            found = sending(self, *request)  # type: ignore[arg-type]
            if dies:
                raise Killed
            return found

        def keep(*arguments: object) -> None:
            if step():
                if chance.random() < 0.5:
                    keeping(*arguments)  # type: ignore[arg-type]
                raise Killed
            keeping(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(SchemaRegistry, "_send", send)
        monkeypatch.setattr("ferry.syncs.schemas._append", keep)
        with pytest.raises(Killed):
            made.sync()
        dies_at = -1
        assert made.sync().failed == ()
        assert made.content(made.target) == renamed(made)
        assert modes(made) == {"A.ships-value": "READONLY", "A.json-value": "READWRITE"}
        assert made.state.imports == {}
        assert made.sync().changes == ()


def test_modes_that_a_killed_sync_left_are_restored_even_if_nothing_else_is_done(made: Pair) -> None:
    made.target.seed("A.orders-value", record("Other", "z"))
    made.source.seed("orders-value", record("Order", "a"))
    made.target.registry.set_mode("A.orders-value", "IMPORT", True)
    made.records.append(encode_state(ImportMode("A.orders-value", "READWRITE")))
    assert [failure.error for failure in made.sync().failed] == ["SchemasRefused"]
    assert modes(made) == {"A.orders-value": "READWRITE"}
    assert made.state.imports == {}


def test_settings_of_many_subjects_are_compared_in_turn(made: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ferry.syncs.schemas.SETTINGS_EACH", 3)
    for number in range(8):
        made.source.seed(f"s{number}", record(f"R{number}", "a"))
    made.sync()
    made.source.registry.set_config("s6", {"compatibility": "FULL"})
    changes = [made.sync().changes for _ in range(3)]
    assert [change.what for found in changes for change in found] == ["subject s6"]


def test_the_level_of_all_is_named_and_not_written(made: Pair) -> None:
    made.source.registry.set_config(None, {"compatibility": "NONE"})
    outcome = made.sync()
    assert "the compatibility level as a whole is NONE at A" in " ".join(outcome.notices)
    assert [request for request in made.target.log if request.writes] == []


def test_the_level_of_all_is_copied_if_the_file_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pair(tmp_path, monkeypatch, "sync.schemas.global = true") as made:
        made.source.registry.set_config(None, {"compatibility": "FULL"})
        assert [change.what for change in made.sync().changes] == ["context ."]
        assert made.target.registry.scopes.configs[None]["compatibilityLevel"] == "FULL"


def test_a_request_says_who_refused_it_and_nothing_secret(made: Pair) -> None:
    made.source.plan = lambda request: Answered(422, 42299, "no") if _lists(request) else None
    with pytest.raises(SchemasRefused, match=r"the schema registry of A \(.*\): GET /schemas: 42299: no"):
        made.sync()
    assert issubclass(IdsNotKept, FerryError)


def _lists(request: Request) -> bool:
    return request.path == "/schemas"
