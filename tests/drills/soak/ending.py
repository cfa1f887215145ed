"""The verdict: faults are off and everything was copied. Each check by clients that share no code with Ferry, or by Ferry's own proof."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
)
from tests.drills.exactness.judging import judge
from tests.drills.histories.anomalies import counted
from tests.drills.histories.checking import check, lost_at_source, revived_at_source, torn_at_source
from tests.drills.histories.model import Place
from tests.drills.soak.landscape import CONFIGS, GROUPS
from tests.drills.soak.recording import Recorder
from tests.drills.soak.report import Log
from tests.drills.soak.runs import FERRY
from tests.drills.soak.stage import FLOW, Stage
from tests.drills.soak.topics import COMPACTED, FIRST, REMOTE_PREFIX
from tools.kafka import SandboxCluster, compare_topics
from tools.kafka.reading import partition_bounds, read_partition

ANSWER_SECONDS = 60.0
COMMAND_SECONDS = 600.0
SHOWN = 10
# What an ALLOW of the source becomes on a remote topic, which only the flow may write.
BECOMES = {AclOperation.WRITE: None, AclOperation.ALL: AclOperation.READ}
NO_SUCH_COMMAND = "No such command"

Content = tuple[object, ...]


class Ending:
    """All checks over one stage; each tells its verdict to the log."""

    def __init__(self, stage: Stage, topics: Iterable[str], recorder: Recorder, log: Log) -> None:
        self._stage, self._recorder, self._log = stage, recorder, log
        self._topics = sorted(topics)

    def judge(self) -> None:
        """All of them."""
        self.compare()
        self.verify()
        self.histories()
        self.groups()
        self.configs()
        self.acls()
        self.status()

    def compare(self) -> None:
        """Every topic record by record; of the compacted one the newest record of each key."""
        source, target = self._stage.source.bootstrap, self._stage.target.bootstrap
        pairs = {topic: f"{REMOTE_PREFIX}{topic}" for topic in self._topics if topic != COMPACTED}
        found = compare_topics(source, target, pairs)
        problems = [str(difference)[:500] for difference in found.differences[:SHOWN]]
        for number, (here, there) in enumerate(zip(self._newest(source, COMPACTED), self._newest(target, f"A.{COMPACTED}"), strict=True)):
            problems += [
                f"{COMPACTED}-{number}: key {key!r} differs" for key in here.keys() | there.keys() if here.get(key) != there.get(key)
            ]
        self._log.verdict("records compared", f"{found.records:,} records of {found.topics + 1} topics", problems)

    @staticmethod
    def _newest(bootstrap: str, topic: str) -> list[dict[bytes | None, Content]]:
        return [
            {record.key: record.content for record in read_partition(bootstrap, topic, number, bounds)}
            for number, bounds in partition_bounds(bootstrap, topic).items()
        ]

    def verify(self) -> None:
        """Ferry's own proof."""
        code, document, complaints = self._ferry("verify", "--flow", FLOW, "--json")
        if NO_SUCH_COMMAND in complaints:
            self._log.verdict("ferry verify", "there is no such command", [])
        else:
            self._log.verdict("ferry verify", f"exit code {code}", [] if code == 0 else [f"{complaints[-500:]} {str(document)[:2_000]}"])

    def histories(self) -> None:
        """What readers saw all along."""
        source = self._stage.source.bootstrap
        complete = {(topic, number): end for topic in self._topics for number, (_, end) in partition_bounds(source, topic).items()}
        history = self._recorder.history(complete)
        found = check(history)
        kinds = ", ".join(f"{kind} {count}" for kind, count in counted(found).items() if count) or "no anomaly"
        seen = sum(len(poll.records) for poll in history.polls)
        text = f"{len(history.sends):,} sends, {len(history.transactions):,} transactions, {seen:,} records polled: {kinds}"
        repeated, torn = sum(times > 1 for times in history.source_times.values()), len(torn_at_source(history))
        revived = revived_at_source(history)
        if lost := lost_at_source(history):
            text += f"; {len(lost):,} records of committed transactions are not in the source's own log"
        if repeated:
            text += f"; {repeated:,} records stand more than once in the source's own log, and as often on the target"
        if torn:
            text += f"; of {torn} transactions the source's own log holds only a part, and so does the target"
        if revived:
            text += f"; {revived:,} records of aborted transactions are committed in the source's own log"
        self._log.verdict("history", text, [str(anomaly) for anomaly in found[:SHOWN]])

    def groups(self) -> None:
        """Real consumers at every translated position; a synced group stands where it was translated to."""
        code, document, complaints = self._ferry("translate", "--flow", FLOW, "--json")
        problems = [] if code == 0 else [f"ferry translate ended with {code}: {complaints[-500:]}"]
        positions = [row for row in document.get("positions", ()) if row["upstream_offset"] is not None]
        exact = 0
        for row in positions:
            problem = self._position(row)
            problems += [problem] if problem else []
            exact += row["exact"]
        known = {(row["group"], row["topic"], row["partition"]): row["upstream_offset"] for row in positions}
        for key, offset in self._source_groups().items():
            if known.get(key) != offset:
                problems.append(f"{key} stands at {offset} at the source; ferry translate says {known.get(key)}")
        self._log.verdict("groups", f"{len(positions)} positions, {exact} exact", problems[:SHOWN])

    def _position(self, row: Mapping[str, Any]) -> str:
        where = f"{row['group']} at {row['topic']}-{row['partition']}:{row['upstream_offset']}"
        image = row["downstream_offset"]
        if image is None:
            return f"{where} is not translated: {row['reason']}"
        source, target = self._stage.source.bootstrap, self._stage.target.bootstrap
        wanted = self._read(source, (row["topic"], row["partition"]), row["upstream_offset"])
        read = self._read(target, (row["remote_topic"], row["partition"]), image)
        if row["topic"] == COMPACTED:  # each side's cleaner takes what it likes of the older records
            differs = {content[0]: content for content in wanted} != {content[0]: content for content in read} and row["exact"]
        else:
            verdict = judge(wanted, read)
            differs = bool(verdict.skipped or (row["exact"] and not verdict.exact))
        if differs:
            return f"{where}, translated to {image} ({row['reason'] or 'exact'}), reads {len(read)} records instead of {len(wanted)}"
        place = (row["remote_topic"], row["partition"])
        committed = _committed(self._stage.target, row["group"], [place])[place]
        return "" if committed == image else f"{where} stands at {committed} on the target, translated to {image}"

    @staticmethod
    def _read(bootstrap: str, place: Place, start: int) -> list[Content]:
        low, end = partition_bounds(bootstrap, place[0])[place[1]]
        return [record.content for record in read_partition(bootstrap, place[0], place[1], (max(low, start), end))]

    def _source_groups(self) -> dict[tuple[str, str, int], int]:
        """Where the groups stand at the source."""
        places = [(topic, number) for topic, width in FIRST.items() for number in range(width)]
        found = {group: _committed(self._stage.source, group, places) for group in GROUPS}
        return {(group, *place): offset for group, offsets in found.items() for place, offset in offsets.items() if offset >= 0}

    def configs(self) -> None:
        """What was changed on the source stands on the remote topics."""
        problems = []
        sides = [_configs(self._stage.source.bootstrap, self._topics)]
        sides.append(_configs(self._stage.target.bootstrap, [f"{REMOTE_PREFIX}{topic}" for topic in self._topics]))
        names = {*CONFIGS, "cleanup.policy", "segment.ms"}
        for topic in self._topics:
            for name in sorted(names):
                here, there = sides[0][topic][name], sides[1][f"{REMOTE_PREFIX}{topic}"][name]
                if here != there:
                    problems.append(f"{topic} {name} is {here}, and {there} on the remote topic")
        self._log.verdict("topic configs", f"{len(self._topics)} topics, {len(names)} configs each", problems[:SHOWN])

    def acls(self) -> None:
        """The remote topics have the source's ACLs by the rules of MM2, and no others."""
        topics = sorted(FIRST)
        wanted = {found for acl in _acls(self._stage.source.bootstrap) for found in _images(acl) if acl.name in topics}
        found = {
            (acl.name.removeprefix(REMOTE_PREFIX), acl.principal, acl.operation, acl.permission_type)
            for acl in _acls(self._stage.target.bootstrap)
            if acl.name.startswith(REMOTE_PREFIX)
        }
        problems = [f"missing: {acl}" for acl in wanted - found] + [f"too many: {acl}" for acl in found - wanted]
        self._log.verdict("ACLs", f"{len(wanted)} of remote topics", problems[:SHOWN])

    def status(self) -> None:
        """Ferry itself knows of no loss and no lag."""
        code, document, complaints = self._ferry("status", "--flow", FLOW, "--json")
        self._log.verdict("ferry status", f"exit code {code}", [] if code == 0 else [f"{complaints[-300:]} {str(document)[:1_000]}"])

    def _ferry(self, command: str, *options: str) -> tuple[int, dict[str, Any], str]:
        whole = [FERRY, command, str(self._stage.config), *options]
        done = subprocess.run(whole, capture_output=True, text=True, check=False, timeout=COMMAND_SECONDS)
        try:
            document = json.loads(done.stdout)
        except ValueError:
            document = {}
        return done.returncode, document, done.stderr


def _committed(cluster: SandboxCluster, group: str, places: Iterable[Place]) -> dict[Place, int]:
    consumer = Consumer({**cluster.client_settings(), "group.id": group, "enable.auto.commit": False, "log_level": 0})
    with closing(consumer):
        answers = consumer.committed([TopicPartition(*place) for place in places], timeout=ANSWER_SECONDS)
        return {(answer.topic, answer.partition): answer.offset for answer in answers}


def _configs(bootstrap: str, topics: Iterable[str]) -> dict[str, dict[str, str]]:
    client = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
    answers = client.describe_configs(resources)
    return {
        resource.name: {name: entry.value for name, entry in future.result(ANSWER_SECONDS).items()} for resource, future in answers.items()
    }


def _acls(bootstrap: str) -> list[AclBinding]:
    client = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    everything = AclBindingFilter(
        ResourceType.TOPIC, None, ResourcePatternType.LITERAL, None, None, AclOperation.ANY, AclPermissionType.ANY
    )
    return list(client.describe_acls(everything).result(ANSWER_SECONDS))


def _images(acl: AclBinding) -> list[tuple[str, str, AclOperation, AclPermissionType]]:
    operation = BECOMES.get(acl.operation, acl.operation) if acl.permission_type is AclPermissionType.ALLOW else acl.operation
    return [] if operation is None else [(acl.name, acl.principal, operation, acl.permission_type)]
