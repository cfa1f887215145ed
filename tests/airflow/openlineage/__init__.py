"""Validates events of lineage with the official schemas."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

FACETS = ("facets", "inputFacets", "outputFacets")
_FOUND = [json.loads(path.read_text()) for path in Path(__file__).parent.glob("*.json")]
SCHEMAS: Registry[Any] = Registry().with_resources((schema["$id"], Resource.from_contents(schema)) for schema in _FOUND)
EVENT = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"


def validate(event: Mapping[str, Any]) -> set[str]:
    """Raise unless the event and its facets are as the schemas say. Returns the names of the facets with a schema here."""
    _validate(event, EVENT)
    known = set()
    for part in (event["run"], event["job"], *event["inputs"], *event["outputs"]):
        for name, facet in ((name, facet) for kind in FACETS for name, facet in (part.get(kind) or {}).items()):
            if facet["_schemaURL"].partition("#")[0] in SCHEMAS:
                _validate(facet, facet["_schemaURL"])
                known.add(name)
    return known


def _validate(found: Mapping[str, Any], schema: str) -> None:
    Draft202012Validator({"$ref": schema}, registry=SCHEMAS).validate(found)
