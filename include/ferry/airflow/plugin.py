"""Airflow's plugin: the Ferry page, its entry in the navigation and a tab on DAGs, and the notes of DAG runs.

The entry point `airflow.plugins` of the package names it, so Airflow finds it wherever Ferry is installed.
"""

import importlib.util
import logging
from functools import cached_property
from typing import Any

from airflow.plugins_manager import AirflowPlugin

from ferry.airflow import run_note

log = logging.getLogger(__name__)


# Airflow 3.0 has no apps in its own pages: there a link in its menu opens the page. Without the FAB provider its api-server would not
# start with such a link.
_TAKES_LINKS = not hasattr(AirflowPlugin, "react_apps") and importlib.util.find_spec("airflow.providers.fab") is not None


class FerryPagePlugin(AirflowPlugin):
    """Tasks load plugins too. So modules that only the api-server needs are imported when it asks for them."""

    name = "ferry_page"
    listeners = [run_note]  # noqa: RUF012 - Airflow reads a list

    appbuilder_menu_items = [{"name": "Ferry", "href": "/ferry/"}] if _TAKES_LINKS else []
    # A browser runs the module of one address only once, but Airflow needs a function of its own for each of these entries.
    react_apps = [  # noqa: RUF012 - Airflow reads a list
        {
            "name": "Ferry",
            "bundle_url": "ferry/static/main.js",
            "icon": "ferry/static/icon.svg",
            "destination": "nav",
            "url_route": "ferry",
            "nav_top_level": True,
        },
        {"name": "Ferry", "bundle_url": "ferry/static/main.js?tab", "destination": "dag", "url_route": "ferry-flow"},
    ]

    @cached_property
    def fastapi_apps(self) -> list[dict[str, Any]]:  # type: ignore[override]  # Airflow only reads it
        """The app at /ferry. An error here must not keep Airflow's api-server from starting."""
        try:
            from ferry.airflow.page import page_app  # noqa: PLC0415 - see the text of the class
        except Exception:
            log.exception("there is no Ferry page, because something that it needs is missing or has the wrong version")
            return []
        return [{"app": page_app(), "url_prefix": "/ferry", "name": "Ferry"}]
