"""A JVM for comparisons with java.util.regex itself."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError

# Which of the names a Java expression matches whole; None when Java refuses the expression.
JavaMatches = Callable[[str, Sequence[str]], set[str] | None]


@pytest.fixture(scope="session")
def jvm() -> Iterator[Any]:
    """Java's classes, through the gateway that PySpark brings."""
    found = importlib.util.find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    jar = next((Path(found.origin).parent / "jars").glob("py4j-*.jar"))
    port, token = launch_gateway(jarpath=str(jar), classpath=str(jar), die_on_exit=True, enable_auth=True)
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
    yield gateway.jvm
    gateway.shutdown()


@pytest.fixture(scope="session")
def java_matches(jvm: Any) -> JavaMatches:
    """`java_matches(expression, names)`; lists of names are sent over once."""
    sent: dict[tuple[str, ...], Any] = {}

    def match(expression: str, names: Sequence[str]) -> set[str] | None:
        key = tuple(names)
        if key not in sent:
            sent[key] = jvm.java.util.ArrayList()
            for name in names:
                sent[key].add(name)
        others = jvm.java.util.ArrayList(sent[key])
        try:
            others.removeIf(jvm.java.util.regex.Pattern.compile(expression).asMatchPredicate())
        except Py4JJavaError:  # some it compiles, and then fails to match with
            return None
        rest = set(jvm.java.lang.String.join("\0", others).split("\0")) if others.size() else set()
        return set(names) - rest

    return match
