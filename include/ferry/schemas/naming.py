"""Which subjects a flow copies, and their names on the target (pure).

The serializers of Confluent know three strategies. `<topic>-key` and `<topic>-value` belong to a topic, and so does `<topic>-<record>`,
where the record is the name in the schema itself: such a subject is renamed as the topic is. A subject named after its record belongs to no
topic, and keeps its name, as does every other one. If both directions of a flow run, a subject of a topic that came from the target would
come back under one more alias: it is left out.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from ferry.policy.filters import NameRule
from ferry.policy.selection import TopicRules
from ferry.schemas.contents import SchemaVersion, Subject

_SUFFIXES = ("-key", "-value")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_PACKAGE = re.compile(r"\bpackage\s+([\w.]+)\s*;")
_MESSAGE = re.compile(r"\bmessage\s+(\w+)")


def record_names(version: SchemaVersion) -> frozenset[str]:
    """The full names of the record that a schema describes: of Avro's record, Protobuf's messages, or the title of a JSON Schema."""
    if version.type == "PROTOBUF":
        text = _COMMENT.sub(" ", version.text)
        package = _PACKAGE.search(text)
        return frozenset(f"{package[1]}.{name}" if package else name for name in _MESSAGE.findall(text))
    try:
        document = json.loads(version.text)
    except ValueError:
        return frozenset()
    name = document.get("title" if version.type == "JSON" else "name") if isinstance(document, Mapping) else None
    if not isinstance(name, str) or not name:
        return frozenset()
    space = "" if version.type == "JSON" or "." in name else document.get("namespace")
    return frozenset({f"{space}.{name}" if space else name})


def topic_of(subject: str, records: Collection[str]) -> str:
    """The topic of a subject whose schemas describe `records`; empty if it belongs to none."""
    if subject in records:
        return ""
    endings = [*_SUFFIXES, *(f"-{name}" for name in sorted(records, key=len, reverse=True))]
    return next((subject.removesuffix(end) for end in endings if subject.endswith(end) and subject != end), "")


@dataclass(frozen=True)
class SubjectNaming:
    """The rules of one flow. `contexts`: the target's context of each of the source's that is copied."""

    topics: TopicRules
    subjects: NameRule
    contexts: Mapping[str, str]

    def images(self, versions: Iterable[SchemaVersion]) -> dict[Subject, Subject | str]:
        """For each subject of the source its name on the target, or why it is not copied (a text)."""
        records: dict[Subject, set[str]] = {}
        for version in versions:
            records.setdefault(version.subject, set()).update(record_names(version))
        return {subject: self._image(subject, names) for subject, names in sorted(records.items())}

    def _image(self, subject: Subject, records: Collection[str]) -> Subject | str:
        context = self.contexts.get(subject.context)
        if context is None:
            return f"context {subject.context} is not in sync.schemas.contexts"
        if why := self.subjects.why_not(subject.name):
            return why
        topic = topic_of(subject.name, records)
        if topic and (why := self.topics.why_back(topic)):
            return why
        return Subject(context, self.topics.remote_topic(topic) + subject.name.removeprefix(topic) if topic else subject.name)
