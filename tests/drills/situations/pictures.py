"""`make pictures`: the pictures in the documentation, taken in the Airflow of a demo that runs."""

from __future__ import annotations

from demo.__main__ import DIRECTORY
from demo.airflow_services import ROOT, DemoAirflow
from demo.story import OPEN
from playwright.sync_api import Browser, expect
from tests.drills.situations.keeping import THEME, logged_in
from tests.page.browsing import LOOK_MS, chromium
from tests.page.views import drawn, settled

IMAGES = ROOT / "docs" / "images"
SIZE = {"width": 1366, "height": 760}
# By file: the theme, and where on the page.
PICTURES = {
    "overview": ("light", "view=overview"),
    "dark": ("dark", "view=overview"),
    "runs": ("light", "view=runs"),
    "coverage": ("light", f"view=coverage&topic={OPEN}"),
}


def take(browser: Browser, airflow: DemoAirflow) -> None:
    state = logged_in(browser, airflow.url, airflow.user, airflow.password)
    for name, (theme, address) in PICTURES.items():
        with browser.new_context(storage_state=state, viewport=SIZE, color_scheme=theme) as context:  # type: ignore[arg-type]
            context.set_default_timeout(LOOK_MS)
            context.add_init_script(THEME.format(theme))
            page = context.new_page()
            page.goto(f"{airflow.url}/plugin/ferry?{address}")
            settled(page)
            expect(page.get_by_text("Not read yet")).to_have_count(0)
            if name == "runs":
                drawn(page)
            page.screenshot(path=IMAGES / f"{name}.png")


if __name__ == "__main__":
    directory = DIRECTORY.resolve()
    with chromium() as found:
        take(found, DemoAirflow(directory / "airflow", directory / "mm2.properties"))
