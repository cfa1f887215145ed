"""The situations: how each comes about on real clusters. A play keeps what is to be seen at one moment or at several."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec
from tests.drills.situations.keeping import Keeper, pause
from tests.drills.situations.stage import TOPICS, Stage
from tests.permissions.landscape import READER, USERS, WRITER, Side
from tests.permissions.variants import MODULE
from tests.waiting import until
from tools.kafka import SandboxCluster
from tools.kafka.groups import commit_offsets
from tools.kafka.topics import delete_topics

from ferry.airflow.page_flows import FLOWS_SECONDS
from ferry.permissions.required import required_rights
from ferry.permissions.rights import Operation

WARN_MS = 5_000
HALF_AN_HOUR = 30.0
LARGE = 20_000
# Until the page has looked twice at a run that copies.
SOME_PROGRESS = 20.0
GROUP = "billing"
SLOWLY = "ferry.max.rate.mb = 0.2"


@dataclass(frozen=True)
class Situation:
    """`guarded`: its clusters ask for a login, and deny what no ACL allows."""

    name: str
    play: Callable[[Stage, Keeper], None]
    lines: tuple[str, ...] = ()
    guarded: bool = False


def up_to_date(stage: Stage, keeper: Keeper) -> None:
    stage.fill()
    stage.run()
    keeper.keep(stage, "up-to-date")


def never_ran(stage: Stage, keeper: Keeper) -> None:
    """Nobody has switched the DAG on."""
    stage.fill()
    keeper.keep(stage, "never-ran")


def running(stage: Stage, keeper: Keeper) -> None:
    stage.fill(1_000, size=LARGE)
    stage.start()
    until_copying(stage)
    pause(SOME_PROGRESS)
    keeper.keep(stage, "running")
    stage.end()


def following(stage: Stage, keeper: Keeper) -> None:
    stage.fill()
    stage.start()
    with stage.busy(minutes_ago=0):
        until_copying(stage)
        pause(SOME_PROGRESS)
        keeper.keep(stage, "following")
    stage.end()


def group_on_target(stage: Stage, keeper: Keeper) -> None:
    """An application reads the remote topics while its group is to be synced: it was moved too early, or runs twice."""
    stage.fill()
    stage.copy()
    commit_offsets(stage.source.client_settings(), GROUP, {("orders", 0): 20, ("payments", 0): 30})
    settings = {**stage.target.client_settings(), "group.id": GROUP, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    member = Consumer(settings)
    remote = [f"{stage.aliases[0]}.{topic}" for topic in TOPICS]
    member.subscribe(remote)
    until(lambda: member.poll(1) is not None, lambda: "the member never got a record")
    member.commit(offsets=[TopicPartition(name, 0, 1) for name in remote], asynchronous=False)
    try:
        stage.fill()
        stage.run()
        keeper.keep(stage, "group-on-target")
    finally:
        member.close()


def topic_dropped(stage: Stage, keeper: Keeper) -> None:
    """Somebody takes payments out of the config; applications go on to write there."""
    stage.fill()
    stage.run()
    stage.configure(*stage.lines, topics="orders")
    stage.fill()
    stage.run()
    pause(FLOWS_SECONDS)  # after it the page uses what was changed
    keeper.keep(stage, "topic-dropped")


def lagging(stage: Stage, keeper: Keeper) -> None:
    """Records come faster than the run copies them, and they are half an hour old."""
    stage.fill()
    with stage.busy(minutes_ago=HALF_AN_HOUR):
        stage.run()
    keeper.keep(stage, "lagging")


def gap(stage: Stage, keeper: Keeper) -> None:
    """Somebody set the positions of payments to the ends of its partitions, before records that no run had copied."""
    stage.fill()
    stage.copy()
    stage.fill()
    seeds = stage.directory / "seeds.csv"
    lines = [f"payments,{partition},{end - 20}" for partition, end in ends(stage.source, "payments").items()]
    seeds.write_text("\n".join(["topic,partition,position", *lines]) + "\n", encoding="utf-8")
    assert stage.ferry("seed", "--flow", stage.flow.name, "--from-file", str(seeds)).endswith("exit code 0\n")
    stage.run()
    keeper.keep(stage, "gap")


def loss(stage: Stage, keeper: Keeper) -> None:
    """The source deletes records that no run has copied."""
    stage.fill()
    stage.copy()
    stage.fill()
    below = [TopicPartition("orders", partition, end - 20) for partition, end in ends(stage.source, "orders").items()]
    client = AdminClient(stage.source.client_settings())
    for future in client.delete_records(below).values():
        future.result(60)
    stage.run()
    keeper.keep(stage, "loss")


def failed_topic(stage: Stage, keeper: Keeper) -> None:
    """Somebody deletes a remote topic and creates it again."""
    stage.fill()
    stage.copy()
    remote = f"{stage.aliases[0]}.payments"
    delete_topics(stage.target.client_settings(), remote)
    client = AdminClient(stage.target.client_settings())
    client.create_topics([NewTopic(remote, TOPICS["payments"], 1)])[remote].result(60)
    stage.fill()
    stage.run()
    keeper.keep(stage, "failed-topic")


def target_away(stage: Stage, keeper: Keeper) -> None:
    """Somebody looked at the page before; afterwards the target comes back, and then the next run ends."""
    stage.fill()
    stage.run()
    keeper.look(stage)
    stage.target.kill()
    stage.fill()
    stage.run()
    keeper.keep(stage, "b-away")
    stage.target.run()
    keeper.keep(stage, "b-away-and-back")
    stage.run()
    keeper.keep(stage, "b-back-and-next-run")


def source_away(stage: Stage, keeper: Keeper) -> None:
    """Nobody looked at the page before."""
    stage.fill()
    stage.copy()
    stage.source.kill()
    stage.run()
    keeper.keep(stage, "a-away")


def login_refused(stage: Stage, keeper: Keeper) -> None:
    """The password at the source was changed, and the config has the old one."""
    allow(stage)
    stage.fill()
    stage.copy()
    stage.configure(*(line.replace(USERS[READER], "the-old-one") for line in stage.lines))
    stage.run()
    pause(FLOWS_SECONDS)  # after it the page uses what was changed
    keeper.keep(stage, "login-refused")


def right_missing(stage: Stage, keeper: Keeper) -> None:
    """Somebody takes the right to read payments away."""
    allow(stage)
    stage.fill()
    stage.copy()
    allow(stage, without=(Operation.READ, "payments"))
    stage.fill()
    stage.run()
    keeper.keep(stage, "right-missing")


def open_transaction(stage: Stage, keeper: Keeper) -> None:
    stage.fill()
    stage.copy()
    producer = Producer({**stage.source.client_settings(), "transactional.id": "billing-1", "transaction.timeout.ms": 900_000})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("payments", b"held", partition=0)
    producer.flush(30)
    pause(WARN_MS / 1000)
    stage.fill()
    stage.run()
    keeper.keep(stage, "open-transaction")
    producer.abort_transaction(60)


def superseded(stage: Stage, keeper: Keeper) -> None:
    """While a slow run copies, somebody starts another one by hand."""
    fast = stage.configure(path=stage.directory / "fast.properties")
    stage.fill(size=LARGE)
    stage.start()
    until_copying(stage)
    stage.copy(config=fast)
    stage.end()
    keeper.keep(stage, "superseded")


def until_copying(stage: Stage) -> None:
    client = AdminClient(stage.target.client_settings())
    remote = f"{stage.aliases[0]}.orders"

    def copied() -> bool:
        with suppress(KafkaException):  # a topic that was just created may have no leader yet
            return remote in client.list_topics(timeout=30).topics and any(ends(stage.target, remote).values())
        return False

    until(copied, lambda: "nothing was copied")


def ends(cluster: SandboxCluster, topic: str) -> dict[int, int]:
    """The log end of each partition."""
    client = AdminClient(cluster.client_settings())
    asked = {
        TopicPartition(topic, number): OffsetSpec.latest() for number in client.list_topics(topic, timeout=30).topics[topic].partitions
    }
    return {key.partition: future.result(30).offset for key, future in client.list_offsets(asked).items()}


def allow(stage: Stage, without: tuple[Operation, str] | None = None) -> None:
    """Ferry's users get all rights that the flow needs, but for one at the source."""
    needed = required_rights(stage.flow)
    kept = [right for right in needed.source if (right.operation, right.resource.name) != without]
    assert len(needed.source) - len(kept) == (without is not None)
    Side.of(stage.source, READER).allow(kept)
    Side.of(stage.target, WRITER).allow(needed.target)


LOGINS = tuple(
    line
    for side, user in (("$A", READER), ("$B", WRITER))
    for line in (
        f"{side}.security.protocol = SASL_PLAINTEXT",
        f"{side}.sasl.mechanism = PLAIN",
        f'{side}.sasl.jaas.config = {MODULE} required username="{user}" password="{USERS[user]}";',
    )
)
LIMITS = ("$A->$B.ferry.alert.lag.records = 500", "$A->$B.ferry.alert.lag.seconds = 900")
SITUATIONS = (
    Situation("never-ran", never_ran),
    Situation("running", running, (SLOWLY,)),
    Situation("following", following, ("$A->$B.ferry.follow.seconds = 150",)),
    Situation("group-on-target", group_on_target, ("sync.group.offsets.enabled = true", "sync.group.offsets.interval.seconds = 1")),
    Situation("topic-dropped", topic_dropped),
    Situation("up-to-date", up_to_date),
    Situation("lagging", lagging, LIMITS),
    Situation("gap", gap),
    Situation("loss", loss),
    Situation("failed-topic", failed_topic),
    Situation("b-away", target_away),
    Situation("a-away", source_away),
    Situation("login-refused", login_refused, LOGINS, guarded=True),
    Situation("right-missing", right_missing, LOGINS, guarded=True),
    Situation("open-transaction", open_transaction, (f"ferry.open.transaction.warn.ms = {WARN_MS}",)),
    Situation("superseded", superseded, (SLOWLY,)),
)
