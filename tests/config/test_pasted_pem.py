"""PEM texts in properties files: no line of one is ever shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ferry.config import load_config
from ferry.config.properties import GOES_ON, MISPLACED, parse_properties, without_pem
from ferry.config.providers import Provider, UnresolvedReference
from ferry.errors import ConfigError

pytestmark = pytest.mark.unit

Problems = Callable[..., list[str]]

BODY = ["MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", "c2VjcmV0/Kg+2bGV0dGVycw8f7A9", "KbQ1aA=="]
BEGIN, END = "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----"
KEY = "A.ssl.keystore.key"
LOGIN = "A.security.protocol = SSL\nA.ssl.keystore.type = PEM\nA.ssl.keystore.certificate.chain = x\n"
PASTED = "\n".join([BEGIN, *BODY, END])
JOINED = "\\n\\\n".join([BEGIN, *BODY, END])


def shown(texts: list[str]) -> list[str]:
    told = "\n".join(texts)
    return [line for line in BODY if line.rstrip("=") in told]


@pytest.mark.parametrize(
    "text",
    [
        f"{KEY} = {PASTED}\n",
        f"{KEY} = {PASTED}\n{PASTED}\n",
        f"{KEY} = {PASTED.replace(END, '')}\n",
        f"{KEY} = {PASTED.replace(BODY[0], BODY[0] + chr(92))}\n",
        f"{KEY} = {PASTED.replace(BEGIN, BEGIN + chr(92) + 'n' + chr(92))}\n",
        f"{KEY} = {PASTED.replace(BODY[0], 'Proc-Type: 4,ENCRYPTED' + chr(10) * 2 + BODY[0]).replace(END, '')}\n",
    ],
    ids=["with an end", "a chain", "without an end", "one backslash", "the first backslash only", "headers and no end"],
)
def test_a_pasted_key_is_one_problem_and_shows_no_line(problems: Problems, text: str) -> None:
    found = problems(f"{LOGIN}{text}A->B.topcis = x\n")
    assert shown(found) == []
    assert found[0] == f"8: {KEY}: {GOES_ON}"
    assert found[-1].endswith("did you mean A->B.topics?"), "what stands behind it is read again"
    assert len(found) == 2


def test_a_key_below_its_property(problems: Problems) -> None:
    found = problems(f"{LOGIN}{KEY} = x\n{PASTED}\n")
    assert found == [f"9: {GOES_ON}"]


def test_a_key_that_a_backslash_joins_to_the_line_above_is_not_shown(problems: Problems) -> None:
    for name in ("B.bootstrap.servers = b:9092", "A->B.topics = orders", "ferry.lanes = 3", "A.unknown = 3"):
        found = problems(f"{name}\\\n{KEY} = {JOINED}\n")
        assert shown(found) == []
        assert found[0].startswith(f"5: {name.partition(' ')[0]}: "), found
    assert found == ["5: A.unknown: is not a known property"]
    assert MISPLACED in problems(f"A->B.topics = orders\\\n{KEY} = {JOINED}\n")[0]


def test_a_key_with_its_backslashes_is_read_as_it_is() -> None:
    file = parse_properties(Path("x"), f"{KEY} = {JOINED}\nB.x = 1\n".encode())
    assert (list(file.entries), file.begun) == ([KEY, "B.x"], ())
    assert file.entries[KEY].value == "\n".join([BEGIN, *BODY, END])


def test_pem_texts_are_left_out_of_any_text() -> None:
    text = f"before {PASTED!r} between {PASTED} behind {BEGIN}\n{BODY[0]}"
    assert shown([without_pem(text)]) == []
    assert without_pem(text) == "before '[hidden]' between [hidden] behind [hidden]"


def test_a_key_pasted_into_a_file_of_secrets_is_reported_when_it_is_resolved(tmp_path: Path) -> None:
    path = tmp_path / "secrets.properties"
    path.write_text(f"before = 1\nkey = {PASTED}\nbehind = 2\n")
    provider = Provider("file", "file")
    assert (provider.get(str(path), "before"), provider.get(str(path), "behind")) == ("1", "2")
    with pytest.raises(UnresolvedReference) as caught:
        provider.get(str(path), "key")
    assert str(caught.value) == f"provider file: key key in {path}: {GOES_ON}"


def test_a_client_file_of_the_first_mirrormaker(tmp_path: Path) -> None:
    consumer, producer, path = (tmp_path / f"{name}.properties" for name in ("consumer", "producer", "legacy"))
    consumer.write_text(f"bootstrap.servers = a:9092\nssl.keystore.key = {PASTED}\n")
    producer.write_text("bootstrap.servers = b:9092\n")
    path.write_text(f"legacy.consumer.config = {consumer}\nlegacy.producer.config = {producer}\nlegacy.include = x\n")
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert shown([str(caught.value)]) == []
    assert f"{consumer}:2: ssl.keystore.key: {GOES_ON}" in str(caught.value)
