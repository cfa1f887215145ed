"""How a flow's ACL sync differs from MM2's, as settings. All defaults are MM2's behaviour."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class AclSettings:
    """Which ACLs are copied beside those of literal topic names, and what may be removed."""

    groups: bool = False
    prefixed: bool = False
    transactional_ids: bool = False
    write: Literal["drop", "keep"] = "drop"
    remove: bool = False
    report_only: bool = False


# Which property each field is read from.
PROPERTIES = {
    "groups": "ferry.sync.acls.groups",
    "prefixed": "ferry.sync.acls.prefixed",
    "transactional_ids": "ferry.sync.acls.transactional.ids",
    "write": "ferry.sync.acls.write",
    "remove": "ferry.sync.acls.remove",
    "report_only": "ferry.sync.acls.report.only",
}


def read_acls(value: Callable[[str], Any]) -> AclSettings:
    """The settings of one flow; `value` gives a property's effective value by its kind."""
    return AclSettings(**{name: value(key) for name, key in PROPERTIES.items()})
