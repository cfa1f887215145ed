"""How the double serves: logins, limits, faults, counts, and the answers of older releases."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.certificates import authority_of_tests
from tests.schemas.double.faults import Answered, Cut, at, busy
from tests.schemas.double.server import RegistryDouble

pytestmark = pytest.mark.unit

A, B = (f'{{"type":"record","name":"{name}","fields":[]}}' for name in "ab")
PAGE = 3


@pytest.fixture
def double() -> Iterator[RegistryDouble]:
    with RegistryDouble(page=PAGE) as double:
        yield double


def ask(double: RegistryDouble, path: str, method: str = "GET", body: bytes = b"", **headers: str) -> tuple[int, bytes, Mapping[str, str]]:
    connection = HTTPConnection(urlsplit(double.url).netloc)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read(), dict(answer.getheaders())
    finally:
        connection.close()


def register(double: RegistryDouble, subject: str = "a") -> tuple[int, bytes, Mapping[str, str]]:
    return ask(double, f"/subjects/{subject}/versions", "POST", b'{"schema": "\\"int\\""}')


def test_requests_are_counted_by_method_and_route(double: RegistryDouble) -> None:
    double.seed("a", A)
    for path in ("/subjects/a/versions/1", "/subjects/b/versions/1", "/subjects?deleted=true"):
        ask(double, path)
    assert double.requests == {("GET", "/subjects/{subject}/versions/{version}"): 2, ("GET", "/subjects"): 1}
    assert [one.number for one in double.log] == [1, 2, 3]
    double.forget_requests()
    assert not double.requests


@pytest.mark.parametrize("limit", ["", "&limit=100", "&limit=0", "&limit=-1"])
def test_a_page_is_at_most_as_long_as_the_server_allows(double: RegistryDouble, limit: str) -> None:
    for number in range(PAGE + 1):
        double.seed(f"s{number}", A)
    assert ask(double, f"/schemas?deleted=true{limit}")[1].count(b'"subject"') == PAGE
    assert ask(double, f"/schemas?offset={PAGE}{limit}")[1].count(b'"subject"') == 1


def test_a_connection_is_cut_before_or_after_the_request_is_done(double: RegistryDouble) -> None:
    for done in (False, True):
        double.plan = at(double.asked + 1, Cut(done))
        with pytest.raises((HTTPException, OSError)):
            register(double)
        assert double.registry.versions.any_in("a", deleted=False) is done
    assert register(double)[0] == 200


def test_an_answer_of_the_plan_replaces_the_request(double: RegistryDouble) -> None:
    double.plan = lambda request: Answered(503) if request.writes else None
    assert register(double)[0] == 503
    assert ask(double, "/subjects")[1] == b"[]"


def test_a_busy_registry_says_when_to_ask_again(double: RegistryDouble) -> None:
    double.plan = at(1, busy(7))
    status, _, headers = ask(double, "/subjects")
    assert (status, headers["Retry-After"]) == (429, "7")
    assert ask(double, "/subjects")[0] == 200


@pytest.mark.parametrize(
    ("login", "status"),
    [
        ("", 401),
        ("Basic " + base64.b64encode(b"me:wrong").decode(), 401),
        ("Basic " + base64.b64encode(b"me:secret").decode(), 200),
        ("Bearer other", 401),
        ("Bearer good", 200),
    ],
)
def test_only_users_and_tokens_are_let_in(login: str, status: int) -> None:
    with RegistryDouble(users={"me": "secret"}, tokens=frozenset({"good"})) as double:
        headers = {"Authorization": login} if login else {}
        assert ask(double, "/subjects", **headers)[0] == status


def test_a_user_may_be_forbidden_something(double: RegistryDouble) -> None:
    double.forbids = lambda request: request.writes
    assert register(double)[:2] == (403, b'{"error_code": 40301, "message": "the user may not do this"}')
    assert ask(double, "/subjects")[0] == 200


def test_over_tls(tmp_path: Path) -> None:
    authority = authority_of_tests()
    certificate = tmp_path / "registry.pem"
    certificate.write_text(
        authority.local_broker.key_pem() + authority.local_broker.certificate_pem + authority.intermediate.certificate_pem
    )
    with RegistryDouble(certificate=certificate) as double:
        connection = HTTPSConnection(urlsplit(double.url).netloc, context=ssl.create_default_context(cadata=authority.root.certificate_pem))
        connection.request("GET", "/subjects")
        assert connection.getresponse().read() == b"[]"
        connection.close()


def test_older_releases_answer_less() -> None:
    with RegistryDouble(before_8=True) as double:
        assert register(double)[1] == b'{"id": 1}'
        assert ask(double, "/subjects/a/versions/1")[1] == b'{"subject": "a", "version": 1, "id": 1, "schema": "\\"int\\""}'
        assert ask(double, "/schemas/guids/00000000-0000-0000-0000-000000000000")[1].startswith(b'{"error_code": 404,')
        double.registry.incompatible = lambda *_: True
        assert b'"error_code": 409,' in ask(double, "/subjects/a/versions", "POST", b'{"schema": "\\"long\\""}')[1]


@pytest.mark.parametrize(
    ("level", "mode", "status"), [("BACKWARD", "READWRITE", 409), ("NONE", "READWRITE", 200), ("BACKWARD", "IMPORT", 200)]
)
def test_a_test_says_what_is_incompatible(double: RegistryDouble, level: str, mode: str, status: int) -> None:
    double.seed("a", A)
    double.registry.incompatible = lambda subject, new, there: subject == "a" and new.text == B and len(there) == 1
    double.registry.scopes.update_config(None, {"compatibility": level})
    double.registry.set_mode("a", mode, force=True)
    body: dict[str, Any] = {"id": 5} if mode == "IMPORT" else {}
    with_id = ("" if not body else '"id": 5, ').encode()
    assert ask(double, "/subjects/a/versions", "POST", b'{%s"schema": %s}' % (with_id, _quoted(B)))[0] == status
    verdict = ask(double, "/compatibility/subjects/a/versions", "POST", b'{"schema": %s}' % _quoted(B))[1]
    assert verdict == (b'{"is_compatible": true}' if level == "NONE" or status == 200 else b'{"is_compatible": false}')


def test_equal_contents_have_one_guid_in_every_registry() -> None:
    with RegistryDouble() as one, RegistryDouble() as other:
        other.seed("before", B)
        first, second = one.seed("a", A), other.seed("b", A)
        assert (first.id, second.id) == (1, 2)
        assert ask(other, f"/schemas/guids/{first.content.guid}")[0] == 200
        assert ask(other, f"/schemas/guids/{first.content.guid}/ids")[1] == b'[{"context": ".", "id": 2}]'
        # A reference's subject is in it: another registry that names the subject otherwise gives another GUID.
        named = [
            registry.seed("c", B, references=[{"name": "a", "subject": where, "version": 1}])
            for registry, where in ((one, "a"), (other, "b"))
        ]
        assert named[0].content.guid != named[1].content.guid


def _quoted(text: str) -> bytes:
    return ('"' + text.replace('"', '\\"') + '"').encode()


def test_parts_that_only_a_paid_registry_has() -> None:
    with RegistryDouble() as double:
        assert ask(double, "/exporters")[0] == 404
        double.api.exporters, double.api.keks = ["to-eu"], ["key"]
        assert (ask(double, "/exporters")[1], ask(double, "/dek-registry/v1/keks")[1]) == (b'["to-eu"]', b'["key"]')
