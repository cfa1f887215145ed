"""What changes at the source while it is copied: topics come, grow and go, configs and ACLs change, groups move."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    ResourcePatternType,
    ResourceType,
)
from tests.drills.soak.producers import write_once
from tests.drills.soak.recording import Recorder
from tests.drills.soak.report import Log
from tests.drills.soak.stage import Stage, create_topics
from tests.drills.soak.topics import COMPACTED, FIRST, Topics
from tools.kafka.topics import delete_topics

PAUSE_SECONDS = (2.0, 8.0)
ANSWER_SECONDS = 20.0
MOST_PARTITIONS = 6
MOST_NEW_TOPICS = 8
GROUPS = tuple(f"soak-group-{number}" for number in range(6))
READ_RECORDS = 300
BRIEF_RECORDS = 500
CONFIGS = {
    "retention.ms": ("-1", "86400000000", "172800000000"),
    "segment.bytes": ("1048576", "4194304", "104857600"),
    "max.message.bytes": ("1048588", "2097152"),
    "index.interval.bytes": ("4096", "8192"),
}
# The brokers' own files set it, and what only stands there is not synced (as by MirrorMaker 2): a removal would not arrive.
NEVER_REMOVED = "retention.ms"
OPERATIONS = (AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.ALL)


class Changes(threading.Thread):
    """One change after the other until told to stop."""

    def __init__(self, stage: Stage, topics: Topics, recorder: Recorder, log: Log, seed: int, disturbed: Callable[[], None]) -> None:
        super().__init__(name="changes", daemon=True)
        self._stage, self._topics, self._recorder, self._log = stage, topics, recorder, log
        self._chance = random.Random(seed)
        self._admin = AdminClient({**stage.source.client_settings(), "log_level": 0})
        self._stopped = threading.Event()
        self._made = 0
        self._disturbed = disturbed

    def run(self) -> None:
        """What a broker that is down refuses is not done."""
        kinds: tuple[Callable[[], None], ...] = (
            self._grow, self._new_topic, self._brief_topic, self._config, self._config, self._acl, self._acl, self._group, self._group,
            self._group, self._commit_anywhere,
        )  # fmt: skip
        while not self._stopped.wait(self._chance.uniform(*PAUSE_SECONDS)):
            try:
                self._chance.choice(kinds)()
            except KafkaException as problem:
                self._log.say(f"a change was refused: {problem.args[0].name()}")
            except TimeoutError:
                self._log.say("a change got no answer")

    def finish(self) -> None:
        """After the change that is under way."""
        self._stopped.set()
        self.join()

    def _grow(self) -> None:
        topic, width = self._chance.choice(sorted(self._topics.living.items()))
        if width < MOST_PARTITIONS and topic != COMPACTED:  # a key would move
            self._admin.create_partitions([NewPartitions(topic, width + 1)])[topic].result(ANSWER_SECONDS)
            self._topics.note(topic, width + 1)
            self._log.event("partition growth", f"{topic} to {width + 1}")

    def _new_topic(self) -> None:
        if len(self._topics.living) < len(FIRST) + MOST_NEW_TOPICS:
            self._made += 1
            name, width = f"soak-new-{self._made}", self._chance.randint(1, 3)
            create_topics(self._stage.source, {name: (width, {})})
            self._topics.note(name, width)
            self._log.event("new topic", f"{name} with {width} partitions")

    def _brief_topic(self) -> None:
        """A topic that is deleted again; how much of it is copied is chance. Nobody else writes there."""
        self._made += 1
        name = f"soak-brief-{self._made}"
        create_topics(self._stage.source, {name: (1, {})})
        self._log.event("brief topic", name)
        write_once(self._stage.source_proxy.bootstrap, (name, 0), BRIEF_RECORDS, self._recorder)
        self._stopped.wait(self._chance.uniform(1.0, 20.0))
        self._disturbed()  # a run that copies it right now reports that it is gone
        delete_topics(self._stage.source.client_settings(), name)
        self._log.event("deleted topic", name)

    def _config(self) -> None:
        topic = self._chance.choice(sorted(self._topics.living))
        key = self._chance.choice(sorted(CONFIGS))
        value = self._chance.choice(CONFIGS[key] if key == NEVER_REMOVED else [None, *CONFIGS[key]])
        kind = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
        entry = ConfigEntry(key, value or "", incremental_operation=kind)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        self._admin.incremental_alter_configs([resource])[resource].result(ANSWER_SECONDS)
        self._log.event("config change", f"{topic} {key}={value}")

    def _acl(self) -> None:
        topic, user = self._chance.choice(sorted(FIRST)), f"User:{self._chance.choice(['ann', 'bob', 'cy'])}"
        operation = self._chance.choice(OPERATIONS)
        permission = self._chance.choice([AclPermissionType.ALLOW, AclPermissionType.ALLOW, AclPermissionType.DENY])
        given = (ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, user, "*", operation, permission)
        removes = self._chance.random() < 0.35
        if removes:
            wanted = AclBindingFilter(*given)
            self._admin.delete_acls([wanted])[wanted].result(ANSWER_SECONDS)
        else:
            binding = AclBinding(*given)
            self._admin.create_acls([binding])[binding].result(ANSWER_SECONDS)
        self._log.event("ACL change", f"{'no ' if removes else ''}{permission.name} {operation.name} of {topic} for {user}")

    def _group(self) -> None:
        """A consumer joins a group, reads on, commits and leaves."""
        group, topics = self._chance.choice(GROUPS), self._chance.sample(sorted(FIRST), 2)
        consumer = Consumer(
            {
                **self._stage.source.client_settings(),
                "group.id": group,
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "log_level": 0,
            }
        )
        try:
            consumer.subscribe(topics)
            got = [message for _ in range(10) for message in consumer.consume(READ_RECORDS // 10, 0.3) if message.error() is None]
            if got:
                consumer.commit(asynchronous=False)
            self._log.event("group moves", f"{group} read {len(got)} records of {', '.join(topics)}")
        finally:
            consumer.close()

    def _commit_anywhere(self) -> None:
        """A group without members commits somewhere ahead of where it was, perhaps inside a transaction or at its marker."""
        group, topic = self._chance.choice(GROUPS), self._chance.choice(sorted(FIRST))
        place = TopicPartition(topic, self._chance.randrange(FIRST[topic]))
        consumer = Consumer({**self._stage.source.client_settings(), "group.id": group, "log_level": 0})
        try:
            before = max(0, consumer.committed([place], timeout=ANSWER_SECONDS)[0].offset)
            _, end = consumer.get_watermark_offsets(place, timeout=ANSWER_SECONDS)
            place.offset = self._chance.randint(before, max(before, end))
            consumer.commit(offsets=[place], asynchronous=False)
            self._log.event("group commits", f"{group} at {topic}-{place.partition}:{place.offset}")
        finally:
            consumer.close()
