"""Why a connection failed, in words."""

from __future__ import annotations

import pytest
from kafka.errors import SaslAuthenticationFailedError

from ferry.clusters.net.failures import reason

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("said", ["refused: [Error 7]", "SaslAuthenticationFailedError: refused: [Error 7]"])
def test_the_reason_is_what_the_broker_says_without_names_of_classes(said: str) -> None:
    assert reason(SaslAuthenticationFailedError(said)) == "refused: [Error 7]"
