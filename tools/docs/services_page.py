"""The table of managed services in `docs/compatibility.md`, from what Ferry knows of them."""

from __future__ import annotations

from pathlib import Path

from tools.docs.between import between

from ferry.clusters.admin.service_profiles import SERVICES
from ferry.clusters.admin.services import Limit, ManagedService
from ferry.config.settings import REMOTE_TOPICS

PAGE = Path("docs/compatibility.md")
BEGIN, END = "<!-- services: begin -->", "<!-- services: end -->"


def page() -> str:
    """The whole page, with the current table."""
    rows = "".join(f"| {service.name} | {verdict(service)} | {'<br>'.join(map(_told, service.limits))} |\n" for service in SERVICES)
    table = f"| service | Ferry | limits that a flow meets |\n|---|---|---|\n{rows}"
    return between(PAGE.read_text(encoding="utf-8"), BEGIN, END, table)


def verdict(service: ManagedService) -> str:
    """Works, or works with some settings."""
    settings = [f"`{setting}`" for setting in service.settings if not setting.key.endswith(f".{REMOTE_TOPICS}")]
    return f"works with {', '.join(settings)}" if settings else "works"


def _told(limit: Limit) -> str:
    side = "As a source: " if limit.of_source else ""
    return f"{side}{limit.what} {limit.ferry[0].upper()}{limit.ferry[1:]}. ([source]({limit.source}))"
