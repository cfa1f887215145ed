"""Two processes that start brokers at the same time choose different ports."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ferry.sandbox import ports

pytestmark = pytest.mark.unit

OTHER = """
import sys
from ferry.sandbox.ports import free_ports
print(*free_ports(1), flush=True)
sys.stdin.read()
"""


def test_a_port_that_another_process_has_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen([sys.executable, "-c", OTHER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        taken = int(other.stdout.readline())
        choices = iter([taken, *range(taken + 1, taken + 100)])
        monkeypatch.setattr(ports.secrets, "randbelow", lambda _: next(choices) - ports.FIRST_PORT)
        (chosen,) = ports.free_ports(1)
        assert chosen > taken
        other.communicate()
    monkeypatch.setattr(ports.secrets, "randbelow", lambda _: taken - ports.FIRST_PORT)
    assert ports.free_ports(1) == [taken], "the other process has ended"
