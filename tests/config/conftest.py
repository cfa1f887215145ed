"""Files and certificates for the tests of this room."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.certificates import Authority, authority_of_tests

from ferry.config import FerryConfig, load_config
from ferry.errors import ConfigError

with warnings.catch_warnings():
    # kafka-python reads its schemas by a deprecated call when it is imported.
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka.net.manager  # noqa: F401

TWO_CLUSTERS = """\
clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
A->B.enabled = true
"""

Load = Callable[..., FerryConfig]
Problems = Callable[..., list[str]]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Loads two clusters and a flow A->B, with more lines behind; `whole=True`: these lines only."""

    def from_text(more: str = "", *, whole: bool = False, **arguments: object) -> FerryConfig:
        path = tmp_path / "mm2.properties"
        path.write_text(more if whole else TWO_CLUSTERS + more, encoding="latin-1")
        return load_config(path, **arguments)  # type: ignore[arg-type]

    return from_text


@pytest.fixture
def problems(load: Load, tmp_path: Path) -> Problems:
    """The problems of a file, without its path in front: `5: key: what`."""

    def from_text(more: str = "", **arguments: object) -> list[str]:
        with pytest.raises(ConfigError) as caught:
            load(more, **arguments)
        prefix = f"{tmp_path / 'mm2.properties'}:"
        lines = str(caught.value).split("\n")
        assert all(line.startswith(prefix) for line in lines)
        return [line.removeprefix(prefix).strip() for line in lines]

    return from_text


@pytest.fixture
def authority() -> Authority:
    """Certificates, made once."""
    return authority_of_tests()
