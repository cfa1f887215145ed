"""Consumer groups of a cluster, as plain values."""

from dataclasses import dataclass
from enum import StrEnum


class GroupType(StrEnum):
    """Kafka's kinds of groups. Brokers before 3.8 (KIP-848) do not name the kind; all their groups are classic."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


class GroupState(StrEnum):
    """The states of Kafka in which a group has no members, in the words of brokers."""

    EMPTY = "Empty"
    DEAD = "Dead"  # there is no such group


@dataclass(frozen=True, slots=True)
class GroupListing:
    """One group of a cluster. `type`: a GroupType or a newer word of Kafka; `state`: empty before Kafka 2.6."""

    group: str
    type: str
    protocol_type: str
    state: str = ""


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """The offset that a group has committed for a partition: the next one that it reads."""

    offset: int  # may be negative, which Java's clients call a null offset
    leader_epoch: int = -1  # -1 if the client did not commit one
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class GroupMember:
    client_id: str
    host: str


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """The current state of a group. `state`: a GroupState or another word of Kafka; `type`: empty for a group that does not exist."""

    group: str
    state: str
    type: str
    members: tuple[GroupMember, ...] = ()

    @property
    def exists(self) -> bool:
        """Whether the cluster knows the group as a classic, consumer or streams group."""
        return self.state != GroupState.DEAD

    @property
    def active(self) -> bool:
        """Whether the group has members or is about to get some. Then nobody else may write its offsets."""
        return bool(self.members) or self.state not in {GroupState.EMPTY, GroupState.DEAD}
