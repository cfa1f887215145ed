"""The page in a browser: a fixture server for all tests of a file, a browser context for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from tests.page.browsing import FixtureServer, Visit

Visitor = Callable[..., "Visit"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One Chromium; each test has a context of its own in it. Only for a file: its event loop would refuse any other in the process."""
    from tests.page.browsing import chromium  # noqa: PLC0415 - unit tests of this room need no browser

    with chromium() as found:
        yield found


@pytest.fixture(scope="session")
def fixture_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FixtureServer]:
    """The page with made-up flows."""
    from tests.page.browsing import FixtureServer  # noqa: PLC0415 - see above

    server = FixtureServer(tmp_path_factory.mktemp("page"))
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory for screenshots."""
    from tests.page.browsing import screenshots  # noqa: PLC0415 - see above

    return screenshots(tmp_path_factory.mktemp("screenshots"))


@pytest.fixture
def visit(browser: Browser, fixture_server: FixtureServer, pictures: Path, request: pytest.FixtureRequest) -> Iterator[Visit]:
    """A tab. At the end it must have met no error and nobody but the server. Indirect parameters are those of Browser.new_context."""
    from tests.page.browsing import LOOK_MS, Visit  # noqa: PLC0415 - see above

    options: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}, "color_scheme": "light", **getattr(request, "param", {})}
    with browser.new_context(**options) as context:
        context.set_default_timeout(LOOK_MS)
        visit = Visit(context, fixture_server.url, pictures)
        yield visit
        assert visit.complaints() == []
