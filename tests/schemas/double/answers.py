"""The JSON of answers. Fields that are empty are left out, as the registry does (`JsonInclude.NON_EMPTY`).

Releases before 8 answer less: no `guid`, `ts` and `deleted`, no `schemaType` for Avro, and a registration is answered with the id alone.
So a client cannot see there which version it got.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.schemas.double.content import AVRO
from tests.schemas.double.versions import Version

Body = dict[str, Any]
_NEW = ("guid", "ts", "deleted")


@dataclass(frozen=True)
class Answers:
    before_8: bool = False

    def version(self, one: Version) -> Body:
        """Of a read."""
        return self._shaped({"subject": one.subject, "version": one.number, "id": one.id} | _content(one) | _history(one))

    def found(self, one: Version) -> Body:
        """Of a lookup by content."""
        return self._shaped({"subject": one.subject, "version": one.number, "id": one.id} | _content(one))

    def registered(self, one: Version) -> Body:
        return {"id": one.id} if self.before_8 else self._shaped({"id": one.id, "version": one.number} | _content(one))

    def of_id(self, one: Version, with_subject: bool) -> Body:
        """Of an id or GUID: a subject and version only if a subject was asked for."""
        subject = {"subject": one.subject, "version": one.number} if with_subject and not self.before_8 else {}
        return self._shaped(subject | _content(one) | _history(one))

    def _shaped(self, body: Body) -> Body:
        body = {key: value for key, value in body.items() if value not in (None, [], {}, "")}
        if self.before_8:
            body = {key: value for key, value in body.items() if key not in _NEW and (key, value) != ("schemaType", AVRO)}
        return body


def refused(code: int, message: str) -> Mapping[str, Any]:
    return {"error_code": code, "message": message}


def _content(one: Version) -> Body:
    content = one.content
    return {
        "guid": content.guid,
        "schemaType": content.type,
        "references": [reference.shape for reference in content.references],
        "metadata": content.metadata,
        "ruleSet": content.rule_set,
        "schema": content.text,
    }


def _history(one: Version) -> Body:
    return {"ts": one.written, "deleted": one.deleted}
