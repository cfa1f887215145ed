"""Which of the topics that the flow's rules match a run may copy, and what people want to know about the others."""

from collections.abc import Collection, Iterable, Mapping, Set

from ferry.clusters.admin.cluster_admin import ClusterAdmin
from ferry.clusters.admin.describe import TopicDescription
from ferry.config import Flow
from ferry.config.keys import nearest_name
from ferry.copying.request import RunRequest
from ferry.errors import ArgumentError, ConfigError, NotAuthorized, some_of
from ferry.ledger.run_report import PartitionFailure
from ferry.ledger.state import FlowState
from ferry.permissions.hidden import Hidden, hidden_topics
from ferry.policy.naming import is_machinery
from ferry.policy.selection import LeftOut, Selection, named


def allowed_topics(  # noqa: PLR0917 - the request, the source, and its topics
    flow: Flow, request: RunRequest, source: ClusterAdmin, topics: Mapping[str, TopicDescription], matched: Selection, state: FlowState
) -> tuple[Selection, list[PartitionFailure]]:
    """Those of the matched topics that the request wants, and the topics that the source hides or that Ferry never copies.

    ArgumentError for a topic that the flow does not copy, NotAuthorized if everything is hidden.
    """
    copied = {head.topic for head in state.heads.values()}
    hidden = hidden_topics(flow, source, topics, copied) if flow.copies and not request.topics else ()
    denied = [PartitionFailure(entry.name, -1, NotAuthorized.__name__, entry.problem) for entry in hidden if entry.needed]
    if denied and not matched.selected:
        raise NotAuthorized("; ".join(failure.problem for failure in denied))
    selection, refused = (_narrow(matched, request), []) if request.topics else _with_reasons(flow, matched, topics, hidden, copied)
    return selection, [*denied, *refused]


def _with_reasons(
    flow: Flow, selection: Selection, there: Collection[str], hidden: Iterable[Hidden], copied: Set[str]
) -> tuple[Selection, list[PartitionFailure]]:
    """The selection with reasons for skipped topics, and with the topics that the flow names although no flow copies them.

    It also skips hidden topics that the flow does not need (heartbeats), and topics that the flow names and the source lacks.
    """
    wanted, rules, skipped, refused = flow.named_topics if flow.copies else frozenset(), flow.topic_rules, [], []
    dropped = copied - named(flow.topics_exclude)  # who excludes a topic by its name means it
    for name, reason, expected in selection.skipped:
        if name in wanted and reason != rules.filter.why_not(name):
            text = f"Ferry never copies it, though topics names it: {reason}; take it out of topics, or write its records to another topic"
            refused.append(PartitionFailure(name, -1, ConfigError.__name__, text))
        else:
            more = f"{_NAMED}; correct topics or topics.exclude" if name in wanted else _dropped(flow, reason) if name in dropped else ""
            skipped.append(LeftOut(name, reason + more, bool(more) or expected))
    skipped += [LeftOut(f"topic {entry.name}", entry.problem, None) for entry in hidden if not entry.needed]
    seen = {*there, *(entry.name for entry in hidden)}
    gone = f"copied before, and {flow.source.alias} has no such topic any more"
    skipped += [LeftOut(name, gone) for name in sorted(copied - seen - wanted)]
    others = [topic for topic in there if not is_machinery(topic)]
    lacks = f"{flow.source.alias} has no such topic{_NAMED}; correct topics, or create the topic"
    skipped += [LeftOut(name, lacks + nearest_name(name, others), True) for name in sorted(wanted - seen)]
    return Selection(selection.selected, tuple(skipped)), refused


_NAMED = ", though topics names it"


def _dropped(flow: Flow, reason: str) -> str:
    """What follows the reason of a topic that was copied before. The head keeps its position, so that a later run can go on there."""
    now, again = "", "change that back"
    if reason.startswith("not in the property "):
        now, again = f" (topics = {some_of(flow.topics)})", "put it back into the property topics"
    goes_on = f"and the next run goes on where the copy stopped, as far as {flow.source.alias} still has the records"
    return f"{now}, but it was copied before; {again}, {goes_on}; or, if it is left out on purpose, name it in topics.exclude"


def _narrow(selection: Selection, request: RunRequest) -> Selection:
    """Only the topics that a request names; ArgumentError for names that the flow does not copy."""
    known = dict(selection.selected)
    unknown = [topic for topic in request.topics if topic not in known]
    if unknown:
        why, unseen = {topic: reason for topic, reason, _ in selection.skipped}, "not at the source, or hidden from the user there"
        told = (f"{topic}: {why.get(topic) or unseen + nearest_name(topic, known)}" for topic in unknown)
        raise ArgumentError(f"flow {request.flow} does not copy topic {'; '.join(told)}")
    return Selection(tuple((topic, known[topic]) for topic in request.topics), selection.skipped)
