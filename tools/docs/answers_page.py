"""`docs/answers.md`: what Ferry does for every error code, from the tables of ferry.clusters.net.error_policy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ferry.clusters.net import error_policy
from ferry.clusters.net.error_codes import named
from ferry.clusters.net.error_policy import Action, Meaning, RequestKind
from ferry.errors import FerryError

PAGE = Path("docs/answers.md")
# All tables, in the order of the code.
REQUESTS = tuple(found for found in vars(error_policy).values() if isinstance(found, RequestKind))

_INTRODUCTION = """\
# What brokers answer

<!-- Written by `python -m tools.docs` from include/ferry/clusters/net/error_policy.py: change the tables there, then run it. -->

This page says what Ferry does for every error code that a broker may answer, for each kind of request. Messages name a code as this page
does. Ferry does what Kafka's own clients do; where it does not, `include/ferry/clusters/net/error_policy.py` says why. That file also
names Kafka's classes that give the codes.

Ferry does not ask again for ever. It gives up after 40 s for consumer groups and for listings of offsets, and after 75 s for the copy, for
coordinators and for controllers. Then the partition, the group or the command fails with the code's name, as `PartitionUnavailable`,
`GroupFailed` or `ClusterUnreachable`, and another run may succeed. A sync sends `DescribeAcls` only once; the next sync asks again.

When kafka-python and librdkafka connect, they ask for ApiVersions and log in by themselves. If a broker answers ApiVersions with an error,
they connect again. They treat every error of SaslAuthenticate as a refused login. When the first three logins are refused, Ferry stops.
Ferry also asks for ApiVersions itself; there it treats an error as a missing answer.

Lanes that copy, and `ferry verify`, use Metadata only to find leaders. They stop the topic's partitions at once if a row below names a
missing right or says "stops", and after 5 s if the topic is deleted. Otherwise they wait up to 75 s for a leader.
"""


def page() -> str:
    """The whole page."""
    return _INTRODUCTION + "".join(_section(request) for request in REQUESTS)


def _section(request: RequestKind) -> str:
    rows = "".join(f"| {codes} | {what} |\n" for codes, what in _rows(request))
    title = request.name[0].upper() + request.name[1:]
    return f"\n## {title}\n\n| Error | What Ferry does |\n|---|---|\n{rows}| any other | {request.otherwise.value} |\n"


def _rows(request: RequestKind) -> Iterator[tuple[str, str]]:
    by_meaning: dict[Meaning, list[int]] = {}
    for code, meaning in request.meanings.items():
        if code:
            by_meaning.setdefault(meaning, []).append(code)
    for meaning, codes in by_meaning.items():
        yield ", ".join(f"`{named(code)}`" for code in sorted(codes)), _what(meaning)


def _what(meaning: Meaning) -> str:
    names_no_error = meaning.error is FerryError or meaning.action is Action.DENIED
    kind = "" if names_no_error else f" (`{meaning.error.__name__}`)"
    told = re.sub(r" ?\(?\{(topic|group|id)\}\)?", "", meaning.told).replace("{timeout}", "60000")
    return f"{meaning.action.value}{kind}" + (f": {told}" if told else "")
