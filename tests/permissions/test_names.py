"""What ACLs can say covers what filters match: worked examples, and every generated expression."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from tests.policy.expressions import EXPRESSIONS, NAMES

from ferry.errors import ConfigError
from ferry.permissions.required import covering
from ferry.policy.java_patterns import java_pattern
from ferry.policy.name_covers import Cover

pytestmark = pytest.mark.unit

EXACT = {
    ("orders", "payments"): [Cover("orders"), Cover("payments")],
    (".*",): [Cover("", open=True)],
    ("orders.*",): [Cover("orders", open=True)],
    (r"orders\..*", "orders.eu"): [Cover("orders.", open=True)],
    (r"\Qa.b\E",): [Cover("a.b")],
    ("(eu|us)-orders.*", "x"): [Cover("eu-orders", open=True), Cover("us-orders", open=True), Cover("x")],
    ("colou?r",): [Cover("color"), Cover("colour")],
    ("^orders$",): [Cover("orders")],
    ("^orders$", "^payments"): [Cover("orders"), Cover("payments")],
    ("(?<region>eu|us)-x",): [Cover("eu-x"), Cover("us-x")],
    (): [],
}
WIDER = {
    ("orders-[0-9]+",): [Cover("orders-", open=True, exact=False)],
    ("a.c",): [Cover("a.c", exact=False)],
    ("a.c.*", "(x"): [Cover("", open=True, exact=False)],
    ("(a", "x.y", "b)c"): [Cover("", open=True, exact=False)],
    ("a.c+",): [Cover("a", open=True, exact=False)],
    ("orders.+",): [Cover("orders", open=True, exact=False)],
    ("(?i)orders",): [Cover("", open=True, exact=False)],
    ("orders(?!-old).*",): [Cover("orders", open=True, exact=False)],
    (".*-orders", "x"): [Cover("", open=True, exact=False)],
    ("ab{2}", r"x\d"): [Cover("ab", open=True, exact=False), Cover("x", open=True, exact=False)],
    ("a^",): [Cover("a", exact=False)],
    ("a$b", "x"): [Cover("ab", exact=False), Cover("x")],
    ("(a|b|c|d)(a|b|c|d)(a|b|c|d)(a|b|c|d)",): [Cover("", open=True, exact=False)],
}


@pytest.mark.parametrize(("elements", "covers"), [*EXACT.items(), *WIDER.items()], ids=str)
def test_the_least_that_covers_a_list(elements: tuple[str, ...], covers: list[Cover]) -> None:
    assert list(covering(elements)) == covers


@example(expression="a^")
@given(expression=EXPRESSIONS)
def test_whatever_an_expression_matches_is_covered(expression: str) -> None:
    try:
        pattern = java_pattern([expression], "topics")
    except ConfigError:
        return
    covers = covering([f"(?:{expression})"])
    matched = {name for name in NAMES if name and pattern.fullmatch(name)}
    assert {name for name in matched if not any(cover.covers(Cover(name)) for cover in covers)} == set()
    said = {name for name in NAMES if name and any(cover.exact and cover.covers(Cover(name)) for cover in covers)}
    assert {name for name in said - matched if "\n" not in name and "\r" not in name} == set()
