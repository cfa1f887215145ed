"""Findings about one flow (pure): rights, limits of remote topics, expirations against the schedule, memory, headroom, losses."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from ferry import clock
from ferry.clusters.admin.service_profiles import named
from ferry.clusters.admin.services import ManagedService
from ferry.clusters.net.partitions import grouped
from ferry.config import Cluster, Flow
from ferry.config.settings import OWN_TOPICS, REMOTE_TOPICS
from ferry.copying.lanes import number_of_lanes
from ferry.doctor.cluster_checks import services_of
from ferry.doctor.cluster_facts import ClusterFacts, RightsFacts
from ferry.doctor.finding import Finding, Verdict, failure, ok, warning
from ferry.doctor.flow_facts import FlowFacts
from ferry.doctor.granted import Granted, granted
from ferry.doctor.machine import MachineFacts
from ferry.doctor.service_checks import service_findings, too_many_topics, topics_beforehand
from ferry.errors import ConfigError, ExitCode, NotAuthorized, count_of, some_of, span
from ferry.monitoring.health import FlowHealth
from ferry.monitoring.verdict import Health, verdict_of
from ferry.permissions.commands import commands
from ferry.permissions.required import required_rights
from ferry.permissions.rights import Right
from ferry.pipeline.few_replicas import reassignment, told
from ferry.pipeline.tables import left_out_lines
from ferry.syncs.config_differences import by_kind, tombstones_lost

MEBIBYTE = 1 << 20
# Memory of a worker itself, and of the JVMs of launcher and driver (measured, docs/limits.md).
WORKER_OWN, DRIVER = 100 * MEBIBYTE, 700 * MEBIBYTE
# Without a schedule Ferry does not know when the next run comes, so it warns of a headroom below a day.
UNSCHEDULED_SECONDS = 86_400.0
NAMES_SHOWN = 5
# A person still pastes this many commands.
COMMANDS_SHOWN = 10
_CHECKS = {Health.LOSS: "losses", Health.FAILING: "partitions"}


def flow_findings(flow: Flow, facts: FlowFacts, machine: MachineFacts, pause: float | None) -> Iterator[Finding]:
    """All findings about a flow whose clusters answer. `pause`: the longest time between two scheduled runs, in s; None: no schedule."""
    where, source, target = f"flow {flow.name}", facts.source, facts.target
    if facts.alike is not None and facts.alike.same:
        yield failure(where, "two clusters", facts.alike.why, facts.alike.remedy, ExitCode.BAD_INPUT)
        return
    if facts.alike is not None:
        yield warning(where, "two clusters", facts.alike.why, facts.alike.remedy)
    refused = facts.status is not None and any(stopped.error == ConfigError.__name__ for stopped in facts.status.stopped)
    if flow.copies and not facts.selected and not refused:
        fix = f"correct {flow.name}.topics, or grant Describe on the topics to {_principal(flow.source, facts.source_rights) or 'the user'}"
        yield warning(where, "topics", f"none of those that {flow.source.alias} shows match {', '.join(flow.topics)}", fix)
    else:
        yield ok(where, "topics", f"{facts.selected} to copy")
    yield from service_findings(flow, source, target)
    yield from too_many_topics(flow, target, facts.selected)
    yield from topics_beforehand(flow, target, facts.missing_topics, facts.compacted)
    needed = required_rights(flow)
    yield from rights_findings("rights at the source", flow, flow.source, needed.source, facts.source_rights, services_of(source))
    yield from rights_findings("rights at the target", flow, flow.target, needed.target, facts.target_rights, services_of(target))
    yield _replicas(where, flow, target)
    for found in grouped((entry.key, entry) for entry in facts.few_replicas).values():  # topics keep the replicas that they began with
        yield warning(where, "replicas", told(found), reassignment(flow.target.bootstrap, found, facts.brokers))
    for wrong in facts.wrong_topics:
        yield (failure if wrong.stops else warning)(where, "internal topics", wrong.problem, wrong.fix)
    yield from _differences(where, facts, pause)
    yield from _expirations(where, target, pause)
    yield memory_finding(where, flow, machine, len(facts.status.partitions) if facts.status else 0)
    yield from _standing(where, facts, pause)


def rights_findings(  # noqa: PLR0917 - whose rights, those that it needs, then what is known
    check: str, flow: Flow, cluster: Cluster, needed: Collection[Right], facts: RightsFacts, services: Iterable[ManagedService] = ()
) -> Iterator[Finding]:
    """Missing rights, each with the command that grants it, and rights that could not be checked. `services`: that `cluster` may be of."""
    where = f"flow {flow.name}"
    if hidden := dict.fromkeys(service.access for service in services if service.access):
        fix = f"give Ferry's user the rights that {flow.command('acls')} prints (as commands of Kafka)"
        yield warning(where, check, f"not checked: {' or '.join(hidden)} decide, and Kafka's protocol does not show them", fix)
        return
    if facts.enforced is False:
        yield ok(where, check, f"{cluster.alias} has no ACLs of Kafka: users may do everything, unless something else limits them")
        return
    principal = _principal(cluster, facts)
    answers = grouped((granted(right, facts, principal), right) for right in needed)
    missing, unknown = answers.get(Granted.NO, []), answers.get(Granted.UNKNOWN, [])
    told = list(commands(cluster.bootstrap, principal or "User:NAME", missing))
    for comment, command in told[:COMMANDS_SHOWN]:
        yield failure(where, check, f"missing at {cluster.alias}: {comment.removeprefix('# ')}", command)
    if len(told) > COMMANDS_SHOWN:
        yield failure(where, check, f"{len(told) - COMMANDS_SHOWN} more resources lack rights", flow.command("acls"))
    if unknown:
        names = some_of(sorted({f"{right.operation.value} on {right.resource}" for right in unknown}), NAMES_SHOWN)
        found = f"could not be checked, {_why_unknown(principal, facts)}: {names}"
        yield warning(where, check, found, f"compare with: {flow.command('acls')}")
    if not missing and not unknown:
        yield ok(where, check, f"{principal or cluster.user_name} has every right that is needed ({len(needed)})")


def _principal(cluster: Cluster, facts: RightsFacts) -> str | None:
    """The principal by which brokers know Ferry; None: only they know it."""
    return None if facts.renamed else cluster.principal


def _why_unknown(principal: str | None, facts: RightsFacts) -> str:
    if principal is None:
        return "only brokers know Ferry's principal"
    if facts.acls is None:
        return "Ferry may not see ACLs (Describe on the cluster)"
    why = "brokers do not tell what Ferry may do, and no ACL lets it see ACLs: they may have no authorizer, or Ferry may be a super user"
    return why if facts.operations is None else "ACLs deny it for some of these names"


def memory_finding(where: str, flow: Flow, machine: MachineFacts, partitions: int) -> Finding:
    """Whether this machine has enough memory for a run of this many partitions with --master local[…]."""
    tasks = min(machine.cores if flow.tasks_max is None else flow.tasks_max, number_of_lanes(partitions, flow.lanes))
    wanted = tasks * (flow.memory_bytes + WORKER_OWN) + DRIVER
    told = f"{count_of(tasks, 'task')} may take {wanted // MEBIBYTE} MiB (ferry.memory.mb={flow.memory_bytes // MEBIBYTE})"
    has = f"{machine.memory_available // MEBIBYTE} of {machine.memory // MEBIBYTE} MiB are free here"
    fits = (machine.memory_available - DRIVER) // (flow.memory_bytes + WORKER_OWN)
    fix = f"set {flow.name}.tasks.max={max(1, fits)}, or lower {flow.name}.ferry.memory.mb"
    if wanted > machine.memory:
        return failure(where, "memory", f"{told}; {has}", fix)
    if wanted > machine.memory_available:
        return warning(where, "memory", f"{told}; {has}", fix)
    return ok(where, "memory", f"{told}; {has}")


def _replicas(where: str, flow: Flow, target: ClusterFacts) -> Finding:
    services = services_of(target)
    least, default, told = target.config("min.insync.replicas") or 1, target.config("default.replication.factor") or 1, []
    for key in (REMOTE_TOPICS, OWN_TOPICS):
        factor = flow.wanted_replicas(key).on(target.known_brokers, default)
        refusing = [service for service in services if service.factors and factor not in service.factors]
        if refusing and len(refusing) == len(services):
            told.append(f"the brokers' default of replicas, because {named(services)} refuses {factor}")
            continue
        if factor > target.known_brokers:
            has = count_of(target.known_brokers, "broker")
            found = f"{key} wants {factor} replicas, and {target.alias} has {has}: no topic can be created"
            return failure(where, "replicas", found, f"start as many brokers, or set {key}={target.known_brokers}")
        if factor < least:
            get = f"new topics get {count_of(factor, 'replica')}"
            found = f"{get}, and {target.alias} wants min.insync.replicas={least}: nothing can be written"
            return failure(where, "replicas", found, f"set {key}={least} or more, and have as many brokers")
        told.append(count_of(factor, "replica") + (f" (the brokers' default if {target.alias} is {named(refusing)})" if refusing else ""))
    remote, own = told
    both = f"new topics get {own}" if own == remote else f"new remote topics get {remote}, Ferry's own topics {own}"
    return ok(where, "replicas", f"{both}; min.insync.replicas is {least}")


def _differences(where: str, facts: FlowFacts, pause: float | None) -> Iterator[Finding]:
    """Differences of existing remote topics. `ferry plan` also names those of topics that a run would create."""
    since = {topic: max(seconds, pause or 0.0) for topic, seconds in facts.since_last_run.items()}
    if lost := tombstones_lost(facts.tombstones_kept, since):
        yield warning(where, "tombstones", *lost.split("; ", 1))
    for found, kind in by_kind(facts.differences):
        yield (failure if kind.refused else warning)(where, "topic configs", found, kind.remedy)
    if facts.differences:
        return
    topics = count_of(facts.compared, "remote topic")
    fit = f"sizes, timestamps and retention of {topics} fit" if facts.compared else "no remote topic exists yet: nothing to compare"
    yield ok(where, "topic configs", fit)


def _expirations(where: str, target: ClusterFacts, pause: float | None) -> Iterator[Finding]:
    ids, offsets = target.config("transactional.id.expiration.ms"), target.config("offsets.retention.minutes")
    if ids is None or offsets is None:
        return
    if pause is None:
        kept = f"after {offsets // 1440} days without a run the target forgets Ferry's positions; then Ferry reads them from its own topics"
        yield ok(where, "expiration", f"no schedule; {kept}")
        return
    if ids / 1000 <= pause:
        fix = f"raise transactional.id.expiration.ms of the brokers of {target.alias} above {round(pause * 1000)}"
        yield warning(where, "expiration", f"{span(pause)} between runs, and transactional ids are forgotten after {span(ids / 1000)}", fix)
    if offsets * 60 <= pause:
        fix = f"raise offsets.retention.minutes of the brokers of {target.alias} above {round(pause / 60)}"
        found = f"{span(pause)} between runs, and the target forgets positions after {span(offsets * 60)}: then Ferry reads its own topics"
        yield warning(where, "expiration", found, fix)
    if min(ids / 1000, offsets * 60) > pause:
        yield ok(where, "expiration", f"at most {span(pause)} between runs; ids are kept {span(ids / 1000)}, offsets {span(offsets * 60)}")


def _standing(where: str, facts: FlowFacts, pause: float | None) -> Iterator[Finding]:
    if facts.problem is not None:
        # A cluster that refuses one request is not unreachable.
        code = ExitCode.PARTLY_FAILED if isinstance(facts.problem, NotAuthorized) else facts.problem.exit_code
        yield failure(where, "status", str(facts.problem), facts.problem.next_step, code)
    if facts.status is None:
        return
    for text in left_out_lines(entry for entry in facts.status.left_out if entry.expected):
        yield warning(where, "topics", text, "correct topics or topics.exclude if it should be copied")
    for text in left_out_lines(entry for entry in facts.status.left_out if not entry.expected):
        yield ok(where, "topics", text)
    yield from _headroom(where, facts.status, UNSCHEDULED_SECONDS if pause is None else pause, scheduled=pause is not None)
    # Problems that a run or a verify found earlier may be over.
    status = replace(facts.status, last_run=None, newest_run=None, last_verify=None)
    for reason in verdict_of(status, clock.time()).reasons:
        if reason.health in _CHECKS:
            yield failure(where, _CHECKS[reason.health], reason.text, reason.next_step)


def _headroom(where: str, status: FlowHealth, next_run: float, *, scheduled: bool) -> Iterator[Finding]:
    unread = sorted(f"{entry.topic}-{entry.partition}" for entry in status.counted if entry.age_unknown)
    if unread:
        named = some_of(unread, NAMES_SHOWN)
        found = f"unknown for {count_of(len(unread), 'partition')}, because Ferry could not read their first uncopied record: {named}"
        fix = "check that the source's brokers answer and that Read on the topics is granted, then try again"
        yield warning(where, "headroom", found, fix)
    left = [(entry.headroom_seconds, f"{entry.topic}-{entry.partition}") for entry in status.counted if entry.headroom_seconds is not None]
    if not left:
        if not unread:
            yield ok(where, "headroom", "no uncopied record is about to expire")
        return
    least, place = min(left)
    until = "the next run" if scheduled else "a day has passed"
    if least <= next_run:
        verdict = Verdict.FAILURE if scheduled else Verdict.WARNING
        fix = f"raise retention.ms of {place.rpartition('-')[0]} at the source now; then run, as soon as nothing fails here, and more often"
        when = f"in {span(least)}, before {until}" if least > 0 else "at any time"
        yield Finding(where, "headroom", verdict, f"{place}: the source may drop uncopied records {when}", fix)
    else:
        yield ok(where, "headroom", f"{span(least)} left for {place}, the partition with the least")
