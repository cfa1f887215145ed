"""How many replicas a new topic gets. A topic keeps that number permanently, so brokers that are down must not lower it.

Ferry asks for the number that the config gives. If the config gives none, Ferry tries its default, and asks for fewer only if the
cluster has fewer brokers. Brokers that are down count too: the replica lists of topics name them, and a cluster has at least as many
brokers as its default.replication.factor. KRaft controllers place replicas on brokers that are down; ZooKeeper controllers refuse.

Some clusters take only one number, and refuse all others although enough brokers are up. There Ferry leaves the number to the brokers (-1),
unless the config gives a number and the brokers' default is lower or not known.
"""

from collections.abc import Collection, Iterable, Mapping

from ferry import clock
from ferry.clusters.admin.broker_defaults import broker_defaults
from ferry.clusters.admin.cluster_admin import ClusterAdmin
from ferry.clusters.admin.describe import Rights, WantedTopic
from ferry.clusters.net.backoff import doubling
from ferry.config.settings import WantedReplicas
from ferry.errors import ChangeRefused, ClusterUnreachable, FerryError, TooFewBrokers, count_of, some_of

# A new topic can be used when its leaders are elected and all brokers know them. This usually takes milliseconds, but minutes if a broker
# creates thousands of partitions. So Ferry waits this long for the next topic to become usable.
LEADERS_SECONDS = 120.0
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.05, 1.0
NAMED_TOPICS = 20


def replicas_told(factor: int) -> str:
    """A replication factor for people."""
    return "the brokers' default" if factor < 0 else str(factor)


def replicas_for(wanted: WantedReplicas, target: ClusterAdmin, names: Collection[str]) -> int:
    """The replication factor to ask for when `names` are created (-1: the broker's default). Creates nothing."""
    if wanted.factor < 0 or not names:
        return wanted.factor
    refused = _refused(target, names, wanted.factor)
    if not refused:
        return wanted.factor
    brokers, default = target.brokers(), broker_defaults(target).replication_factor
    factor = wanted.on(len(brokers.known), default)
    if factor != wanted.factor and not _refused(target, refused, factor):
        return factor
    is_enough = factor <= default or not wanted.given
    # Otherwise it may be for the brokers that are down.
    if is_enough and len(brokers.up) >= factor and refused - _refused(target, refused, -1):
        return -1
    return factor


def _refused(target: ClusterAdmin, names: Iterable[str], factor: int) -> set[str]:
    """The topics that the target refuses with this replication factor. Creates nothing."""
    problems = target.create_topics((WantedTopic(name, 1, factor) for name in names), dry_run=True)
    return {name for name, problem in problems.items() if isinstance(problem, TooFewBrokers | ChangeRefused)}


def with_key(problem: FerryError, wanted: WantedReplicas, target: ClusterAdmin) -> FerryError:
    """The error of creating a topic; if it is about replicas with the key that sets the number, for TooFewBrokers also with the brokers."""
    value = f"{wanted.key}={wanted.factor}{'' if wanted.given else ' (the default)'}"
    leave = f"{wanted.key}=-1 leaves the number to the brokers"
    if isinstance(problem, ChangeRefused) and "replic" in str(problem).lower() and wanted.factor > 0:
        return ChangeRefused(f"{problem}; {value}: {leave}")
    if not isinstance(problem, TooFewBrokers):
        return problem
    brokers = target.brokers()
    if len(brokers.up) >= wanted.factor > 0:
        return TooFewBrokers(f"{problem}; {value}, and {target.alias} has {count_of(len(brokers.up), 'broker')} up: {leave}")
    count = f"{len(brokers.up)} of {count_of(len(brokers.known), 'known broker')} of {target.alias} are up"
    mend = f"start the others, or set {wanted.key} to the number that this cluster should always have"
    return TooFewBrokers(f"{problem}; {value}, and {count}: {mend}")


def wait_for_leaders(target: ClusterAdmin, widths: Mapping[str, int], rights: Rights) -> None:
    """Return when all these topics, which were just created, have as many partitions with leaders as `widths` says.

    ClusterUnreachable if no further topic becomes usable for LEADERS_SECONDS. NotAuthorized for a topic that the user may not describe: any
    of `rights` except Create would allow that, so the user lacks all of them.
    """

    def lacking(name: str) -> str:
        return ", ".join(right for right in rights(name).split(", ") if right != "Create")

    deadline, pauses = clock.monotonic() + LEADERS_SECONDS, doubling(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
    waiting = dict(widths)
    while waiting:
        topics = target.topics(waiting, lacking)
        left = {
            name: width for name, width in waiting.items() if name not in topics or topics[name].partitions < width or not topics[name].led
        }
        if len(left) < len(waiting):
            deadline = clock.monotonic() + LEADERS_SECONDS
        waiting = left
        if waiting and clock.monotonic() > deadline:
            named = some_of(sorted(waiting), NAMED_TOPICS)
            raise ClusterUnreachable(f"cluster {target.alias}: no leaders within {LEADERS_SECONDS:.0f} s for {named}")
        if waiting:
            clock.sleep(next(pauses))
