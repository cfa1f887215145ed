"""`sasl.jaas.config` as Kafka's JaasConfig reads it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.config.jaas import parse_jaas

pytestmark = pytest.mark.unit

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ('required username="a" password="b";', {"username": "a", "password": "b"}),
        ("required\n  username='a'\n\tpassword = b-c.d_e$f ;\n", {"username": "a", "password": "b-c.d_e$f"}),
        ('REQUIRED password="a;b=c \\" d\\\\e \'f\'";', {"password": "a;b=c \" d\\e 'f'"}),
        ('required password="\\101\\n\\t\\q\\0";', {"password": "A\n\tq\0"}),
        ('required /* c; */ a="1" // c;\n b="2" / c;\n;', {"a": "1", "b": "2"}),
        ("optional;", {}),
        ('required a="1" a="2";', {"a": "2"}),
        ('required "a b"="\xfc\u20ac\U0001f511";', {"a b": "\xfc\u20ac\U0001f511"}),
    ],
)
def test_reads_one_module(text: str, options: dict[str, str]) -> None:
    module = parse_jaas(f"{PLAIN} {text}")
    assert (module.java_class, module.options) == (PLAIN, options)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "holds no login module"),
        (f"{PLAIN} required a=b", "must end with a semicolon"),
        (f"{PLAIN} required a=b; {PLAIN} required;", "more than one login module"),
        (f"{PLAIN};", "needs the word required"),
        (f"{PLAIN} needed;", "needs the word required"),
        (";", "must begin with the class"),
        ("= required;", "must begin with the class"),
        (f"{PLAIN} required a;", "option without a value"),
        (f"{PLAIN} required a=;", "option without a value"),
        (f"{PLAIN} required a==b;", "option without a value"),
        (f"{PLAIN} required =b;", "without the name of an option"),
        (f"{PLAIN} required a=1234;", "unclear from character"),
        (f"{PLAIN} required a=b@c;", "unclear from character"),
        (f"{PLAIN} required /* a=b;\n;", "unclear from character"),
        (f'{PLAIN} required a="b;', "unclear from character"),
        (f'{PLAIN} required a="b\nc";', "unclear from character"),
    ],
)
def test_says_what_is_wrong(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_jaas(text)


def test_options_do_not_show() -> None:
    assert "geheim" not in repr(parse_jaas(f'{PLAIN} required password="geheim";'))


def quoted(text: str, quote: str) -> str:
    escapes = {"\\": "\\\\", quote: f"\\{quote}", "\n": "\\n", "\r": "\\r"}
    return quote + "".join(escapes.get(character, character) for character in text) + quote


names = st.from_regex(r"[A-Za-z_$][A-Za-z0-9._$-]*", fullmatch=True)
# A digit behind a backslash would be part of an octal escape; none is written here, so all texts are fair.
values = st.text(st.characters(blacklist_categories=["Cs"]))


@given(names, st.dictionaries(names, st.tuples(values, st.sampled_from("\"'"))), st.sampled_from([" ", "\n\t", " /* x */ ", " // x\n"]))
def test_every_written_option_is_read_back(java_class: str, options: dict[str, tuple[str, str]], gap: str) -> None:
    written = gap.join([java_class, "required", *(f"{name}={quoted(value, mark)}" for name, (value, mark) in options.items()), ";"])
    module = parse_jaas(written)
    assert module.java_class == java_class
    assert module.options == {name: value for name, (value, _) in options.items()}


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        module = parse_jaas(text)
    except ValueError:
        return
    assert module.java_class
    assert text.rstrip().rstrip(";") != text
