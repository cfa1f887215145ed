"""MirrorMaker 1's options and client files, read as the `mm2.properties` of one flow (KIP-382's legacy mode).

A legacy file holds the options of the first MirrorMaker's command line, with `legacy.` in front:

    legacy.consumer.config = /etc/mirror/consumer.properties
    legacy.producer.config = /etc/mirror/producer.properties
    legacy.include = orders|payments

`ferry legacy` writes such a file. Topics keep their names, and the flow copies only records: no configs, ACLs, heartbeats, checkpoints or
offset syncs. Entries of the client files keep their file, line and key.
"""

import math
from dataclasses import replace
from itertools import chain

from ferry.config.connector_file import AROUND, HEARTBEATS, IDENTITY_CLASS, RENAME, rename_off
from ferry.config.keys import closest_key
from ferry.config.problems import Problems, located
from ferry.config.properties import Entry, PropertiesFile, read_properties
from ferry.config.registry import CLIENT_PROPERTIES, FLOW_PROPERTIES
from ferry.config.registry.ferry import LONGEST_TRANSACTION, SHORTEST_TRANSACTION
from ferry.config.settings import ABORT, HANDLER, HANDLER_ARGS, LISTENER, LISTENER_ARGS
from ferry.errors import ConfigError

PREFIX = "legacy."
CONSUMER, PRODUCER = f"{PREFIX}consumer.config", f"{PREFIX}producer.config"
INCLUDE, WHITELIST, EXCLUDE = f"{PREFIX}include", f"{PREFIX}whitelist", f"{PREFIX}blacklist"
STREAMS, COMMIT_INTERVAL = f"{PREFIX}num.streams", f"{PREFIX}offset.commit.interval.ms"
SOURCE_ALIAS, TARGET_ALIAS = f"{PREFIX}source.alias", f"{PREFIX}target.alias"
# Options that are other names of properties.
_SAME = {
    STREAMS: "tasks.max",
    f"{PREFIX}abort.on.send.failure": ABORT,
    f"{PREFIX}message.handler": HANDLER,
    f"{PREFIX}message.handler.args": HANDLER_ARGS,
    f"{PREFIX}consumer.rebalance.listener": LISTENER,
    f"{PREFIX}rebalance.listener.args": LISTENER_ARGS,
}
KNOWN = frozenset({CONSUMER, PRODUCER, INCLUDE, WHITELIST, EXCLUDE, COMMIT_INTERVAL, SOURCE_ALIAS, TARGET_ALIAS, *_SAME})
# MirrorMaker 1's consumer excluded Kafka's own topics (exclude.internal.topics), and copied only records.
_DEFAULTS = {
    "enabled": "true",
    "tasks.max": "1",
    "topics.exclude": "__consumer_offsets, __transaction_state, __share_group_state",
    "replication.factor": "-1",
    **dict.fromkeys(chain.from_iterable(AROUND.values()), "false"),
}
# Keys of clients that used ZooKeeper, and of the first producer.
_ANCIENT = {"zookeeper.connect": "bootstrap.servers", "metadata.broker.list": "bootstrap.servers", "broker.list": "bootstrap.servers"}


def is_legacy_file(file: PropertiesFile) -> bool:
    """Whether the file holds MirrorMaker 1's options."""
    return "clusters" not in file.entries and bool({CONSUMER, PRODUCER} & set(file.entries))


def read_legacy_file(file: PropertiesFile) -> PropertiesFile:
    """The same settings under the keys of mm2.properties. ConfigError."""
    return _Reading(file).read()


class _Reading:
    def __init__(self, file: PropertiesFile) -> None:
        self.file = file
        self.entries: dict[str, Entry] = {}
        self.notes: list[tuple[Entry, str]] = []
        self.begun: list[Entry] = []
        self.problems = Problems(file.path)
        self.source, self.target = self._alias(SOURCE_ALIAS, "source"), self._alias(TARGET_ALIAS, "target")
        self.pair = f"{self.source}->{self.target}"

    def read(self) -> PropertiesFile:
        self.entries["clusters"] = Entry(SOURCE_ALIAS, f"{self.source}, {self.target}", 0)
        for name, value in _DEFAULTS.items():
            self.entries[f"{self.pair}.{name}"] = Entry(name, value, 0)
        self.entries[f"{self.target}->{self.source}.{HEARTBEATS}"] = Entry(HEARTBEATS, "false", 0)
        self._options()
        self._topics()
        self._client_file(CONSUMER, self.source, ("consumer", "admin"))
        self._client_file(PRODUCER, self.target, ("producer", "admin"))
        self.problems.raise_if_any()
        notes, begun = (*self.file.notes, *self.notes), (*self.file.begun, *self.begun)
        return replace(self.file, entries=self.entries, notes=notes, words=lambda text: text.replace(f"{self.pair}.", ""), begun=begun)

    def _alias(self, key: str, default: str) -> str:
        entry = self.file.entries.get(key)
        return entry.value.strip() if entry is not None else default

    def _options(self) -> None:
        """All options except topics and client files."""
        if RENAME not in self.file.entries or rename_off(self.file.entries):
            self.entries[f"{self.pair}.replication.policy.class"] = Entry(RENAME, IDENTITY_CLASS, 0)
        for key, entry in self.file.entries.items():
            if key in _SAME:
                self.entries[f"{self.pair}.{_SAME[key]}"] = entry
            elif key == COMMIT_INTERVAL:
                self._commit_interval(entry)
            elif key.startswith("config.providers"):
                self.entries[key] = entry
            elif key not in KNOWN and key != RENAME:
                self.entries[f"{self.pair}.{key.removeprefix(f'{self.pair}.')}"] = entry

    def _commit_interval(self, entry: Entry) -> None:
        try:
            milliseconds = int(entry.value)
        except ValueError:
            milliseconds = 0
        if milliseconds < 1:
            self.problems.add("must be a number of milliseconds, at least 1", entry)
            return
        seconds = min(LONGEST_TRANSACTION, max(SHORTEST_TRANSACTION, math.ceil(milliseconds / 1000)))
        if seconds * 1000 != milliseconds:
            what = f"becomes {seconds} s, the age at which a transaction is committed ({SHORTEST_TRANSACTION} to {LONGEST_TRANSACTION})"
            self.notes.append((entry, what))
        self.entries[f"{self.pair}.ferry.transaction.seconds"] = replace(entry, value=str(seconds))

    def _topics(self) -> None:
        """One of include (earlier whitelist) and blacklist. kafka.utils.TopicFilter: a comma means `|`; blanks and quotes are removed."""
        given = [self.file.entries[key] for key in (INCLUDE, WHITELIST, EXCLUDE) if key in self.file.entries]
        if len(given) != 1:
            second = given[1] if len(given) > 1 else Entry(INCLUDE, "", 0)
            missing = "is missing: say which topics, as a regular expression"
            what = "must not stand beside another one: give one of include, whitelist, blacklist" if given else missing
            self.problems.add(what, second)
            return
        entry = given[0]
        expression = entry.value.strip().replace(" ", "").strip("\"'")
        if entry.key == EXCLUDE:
            self.entries[f"{self.pair}.topics"] = replace(entry, value=".*")
            self.entries[f"{self.pair}.topics.exclude"] = replace(entry, value=f"{expression},{_DEFAULTS['topics.exclude']}")
        else:
            self.entries[f"{self.pair}.topics"] = replace(entry, value=expression)

    def _client_file(self, option: str, alias: str, roles: tuple[str, ...]) -> None:
        entry = self.file.entries.get(option)
        if entry is None or not entry.value.strip():
            self.problems.add("is missing: give the path of the client's properties file", entry, key=option)
            return
        try:
            client = read_properties(self.file.path.parent / entry.value.strip())
        except ConfigError as problem:
            self.problems.add(str(problem), entry, key=option)
            return
        self.begun += client.begun
        for written in client.entries.values():
            self._client_entry(written, alias, roles)
        if not {"bootstrap.servers", *_ANCIENT} & set(client.entries):
            raise ConfigError(located(client.path, 0, "bootstrap.servers", "is missing: add the cluster's servers, as host:port pairs"))

    def _client_entry(self, entry: Entry, alias: str, roles: tuple[str, ...]) -> None:
        name = entry.key
        known = CLIENT_PROPERTIES.get(name)
        if name.startswith("config.providers"):
            self.entries.setdefault(name, entry)
        elif known is not None and known.login:
            self.entries[f"{alias}.{name}"] = entry
        elif known is not None and set(roles) & known.roles:
            role = next(role for role in roles if role in known.roles)
            self.entries[f"{alias}.{role}.{name}"] = entry
        elif name in _ANCIENT:
            self.problems.add(f"belongs to clients that no longer exist: write {_ANCIENT[name]}", entry)
        else:
            names = [*(known.name for known in CLIENT_PROPERTIES.values() if roles[0] in known.roles), *FLOW_PROPERTIES]
            near = closest_key(name, names)
            if near and name not in names:
                self.problems.add(f"is not a property of Kafka's {roles[0]}", entry, nearest=near)
            else:
                self.notes.append((entry, f"has no effect: it is not a property of Kafka's {roles[0]}"))
