"""The questions of `ferry init`: for each cluster until a connection works, then for topics and schedule."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from ferry.cli.new_file import write_new_file
from ferry.cli.output import notice
from ferry.cli.prompts import Asker, anything, one_of
from ferry.clusters.admin.likeness import likeness
from ferry.clusters.open_cluster import open_cluster
from ferry.config import Flow, load_config
from ferry.config.first_file import PASSWORD_MECHANISMS, ClusterAnswers, FirstFile, first_file
from ferry.config.providers import has_reference
from ferry.config.registry import kinds
from ferry.config.registry.clients import PROTOCOLS
from ferry.doctor.cluster_checks import cluster_findings
from ferry.doctor.cluster_facts import ClusterFacts, read_cluster_facts
from ferry.doctor.finding import Finding, Verdict
from ferry.doctor.flow_checks import rights_findings
from ferry.doctor.flow_facts import rights_of, source_rights
from ferry.ending import temporary_directory
from ferry.errors import ConfigError, FerryError, count_of, some_of
from ferry.ledger.open_flow import open_flow
from ferry.permissions.required import required_rights
from ferry.policy.naming import ALIAS, ALIAS_WANTS

_REFERENCE = re.compile(r"\$\{env:\w+\}|\$\{file:/[^:}]+:[^:}]+\}")
_ELSEWHERE = ClusterAnswers("ferry-elsewhere", "elsewhere.invalid:9092")
TOPICS_SHOWN = 12
# The usual safe number; a cluster with fewer brokers gets fewer.
WANTED_REPLICAS = 3


@dataclass(frozen=True)
class SideOptions:
    """The options of the command line for one side (`source` or `target`)."""

    side: str
    servers: str | None = None
    alias: str | None = None
    protocol: str | None = None
    mechanism: str | None = None
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    truststore: str | None = None


@dataclass
class InitDialog:
    """One dialog. `findings`: results of the connections that were tried."""

    file: Path
    asker: Asker
    tests: bool = True
    findings: list[Finding] = field(default_factory=list)

    def ask(self, left: SideOptions, right: SideOptions, topics: str | None, schedule: str | None) -> FirstFile:
        """All answers; each was checked. ArgumentError or ClusterUnreachable if a wrong answer cannot be asked for again."""
        source, source_facts = self._cluster(left, "A", None)
        target, target_facts = self._cluster(right, "B", source)
        while source_facts.known_brokers and target_facts.known_brokers and (same := self._same(FirstFile(source, target))):
            self._again(ConfigError(same))
            target, target_facts = self._cluster(SideOptions("target", alias=target.alias), "B", source)
        replicas = min(WANTED_REPLICAS, target_facts.known_brokers or WANTED_REPLICAS)
        answers = FirstFile(source, target, replication_factor=replicas)
        # Errors in earlier answers must not look like errors in the topics.
        with self._flow(answers) as flow:
            names = self._offer_topics(flow) if self.tests else ()
        chosen = self.asker.ask("Topics to copy (names and expressions)", "--topics", topics, ".*", partial(self._topics, answers))
        answers = replace(answers, topics=chosen)
        if names:
            with self._flow(answers) as flow:
                count = len(flow.topic_rules.select(names).selected)
            notice(f"  {answers.topics}: {count} of {count_of(len(names), 'topic')}")
        return replace(answers, schedule=self.asker.ask("Schedule for Airflow (cron, UTC; empty: none)", "--schedule", schedule, "", _cron))

    def look_at_rights(self, answers: FirstFile) -> None:
        """Say which rights are missing on both sides, as far as the clusters show them. Missing rights are no error."""
        if not self.tests:
            return
        with self._flow(answers) as flow, open_flow(flow) as opened:
            needed = required_rights(flow)
            for check, side, rights in (("source", opened.source, needed.source), ("target", opened.target, needed.target)):
                try:
                    facts = source_rights(opened, rights) if check == "source" else rights_of(side, rights)
                    found = list(rights_findings(f"rights at the {check}", flow, side.cluster, rights, facts))
                except FerryError as problem:
                    notice(f"  rights at the {check}: {self._own(problem)}")
                else:
                    self._tell([replace(entry, fix=self._own(entry.fix)) for entry in found])

    def _cluster(self, given: SideOptions, default_alias: str, other: ClusterAnswers | None) -> tuple[ClusterAnswers, ClusterFacts]:
        while True:
            answers = self._answers(given, default_alias, other)
            if not self.tests:
                return answers, ClusterFacts(answers.alias, answers.servers, "")
            notice(f"  trying {answers.servers} …")
            facts = self._tried(answers, target=given.side == "target")
            if facts.problem is None or not self._again(facts.problem, keep=True):
                return answers, facts
            given = SideOptions(given.side, alias=answers.alias)

    def _same(self, answers: FirstFile) -> str:
        """Why both sides count as one cluster; empty: they are two."""
        with self._flow(answers) as flow, open_flow(flow) as opened:
            alike = likeness(opened.source.admin, opened.target.admin)
        if alike is not None and not alike.same:
            notice(f"  warning: {alike.why}")
        return f"{alike.why}; {alike.remedy}" if alike is not None and alike.same else ""

    def _answers(self, given: SideOptions, default_alias: str, other: ClusterAnswers | None) -> ClusterAnswers:
        ask, side = self.asker.ask, given.side

        def alias(text: str) -> str:
            if not ALIAS.fullmatch(text):
                raise ValueError(f"an alias has {ALIAS_WANTS}")
            if other is not None and text == other.alias:
                raise ValueError(f"{text} is the source's: the two need different ones")
            return text

        name = ask(f"What to call the {side}", f"--{side}-alias", given.alias, default_alias, alias)
        servers = ask(f"Servers of {name} (host:port, …)", f"--{side}", given.servers, check=partial(_servers, other=other))
        protocol = ask(f"security.protocol of {name}", f"--{side}-protocol", given.protocol, "PLAINTEXT", one_of(PROTOCOLS))
        answers = ClusterAnswers(name, servers, protocol)
        if protocol.endswith("SSL"):
            question = f"PEM file of the authorities that certify {name} (empty: those of the system)"
            answers = replace(answers, truststore=ask(question, f"--{side}-truststore", given.truststore, "", _existing_file))
        if protocol.startswith("SASL"):
            question = f"sasl.mechanism of {name}"
            mechanism = ask(question, f"--{side}-mechanism", given.mechanism, "SCRAM-SHA-512", one_of(PASSWORD_MECHANISMS))
            user = ask(f"User at {name}", f"--{side}-user", given.user, check=_user)
            answers = replace(answers, mechanism=mechanism, user=user, password=self._password(given, name))
        return answers

    def _password(self, given: SideOptions, name: str) -> str:
        option = f"--{given.side}-password"
        if given.password is not None or self.asker.no_input:
            return self.asker.ask(f"Where the password at {name} is", option, given.password, check=_reference)
        places = ("env", "file", "write")
        question = f"The password at {name}: in an environment variable (env), in a file (file), or written into {self.file.name} (write)"
        match self.asker.ask(question, option, None, "env", one_of(places)):
            case "env":
                variable = f"{re.sub(r'[^A-Za-z0-9]', '_', name).upper()}_PASSWORD"
                return self.asker.ask("Name of the variable", option, None, variable, lambda text: _reference(f"${{env:{text}}}"))
            case "file":
                path = self.asker.ask("Properties file that holds it", option, None, check=_existing_file)
                key = self.asker.ask("Its key there", option, None, "password")
                return f"${{file:{Path(path).absolute()}:{key}}}"
        return self.asker.ask("Password", option, None, check=_password, secret=True)

    def _tried(self, answers: ClusterAnswers, *, target: bool) -> ClusterFacts:
        both = FirstFile(_ELSEWHERE, answers) if target else FirstFile(answers, _ELSEWHERE)
        try:
            with self._flow(both) as flow, open_cluster(flow.target if target else flow.source) as opened:
                facts = read_cluster_facts(opened)
        except ConfigError as problem:
            return ClusterFacts(answers.alias, answers.servers, "", problem)
        if facts.problem is None:
            self._tell(list(cluster_findings(facts, source=not target, target=target)))
        return facts

    def _offer_topics(self, flow: Flow) -> tuple[str, ...]:
        try:
            with open_cluster(flow.source) as source:
                names = tuple(name for name in source.admin.topic_names() if flow.topic_rules.why_not(name) is None)
        except FerryError:
            return ()
        notice(f"  {flow.source.alias} has {count_of(len(names), 'topic')} to copy: {some_of(names, TOPICS_SHOWN)}")
        return names

    def _topics(self, answers: FirstFile, text: str) -> str:
        if not text:
            raise ValueError("at least one name or expression is needed")
        try:
            with self._flow(replace(answers, topics=text)):
                return text
        except ConfigError as problem:
            raise ValueError(self._own(problem)) from problem

    def _again(self, problem: FerryError, *, keep: bool = False) -> bool:
        """Say what is wrong, and return whether to ask once more. Raises with --no-input."""
        if self.asker.no_input:
            kind = ConfigError if isinstance(problem, ConfigError) else type(problem)  # a PropertyError takes more than a text
            raise kind(self._own(problem)) from problem
        notice(f"  {self._own(problem)}")
        return not (keep and self.asker.agree("Write the file anyway?", "--no-test", default=False))

    def _tell(self, findings: list[Finding]) -> None:
        self.findings += findings
        for entry in findings:
            mark = "" if entry.verdict is Verdict.OK else f"{entry.verdict.value}: "
            notice(f"  {mark}{entry.check}: {entry.found}" + (f"\n    → {entry.fix}" if entry.fix else ""))

    def _own(self, told: object) -> str:
        """`told` with the name of the file to be written instead of the temporary file's."""
        return re.sub(rf"\S*ferry-init-\w+/{re.escape(self.file.name)}(:\d+)?", str(self.file), str(told))

    @contextmanager
    def _flow(self, answers: FirstFile) -> Iterator[Flow]:
        """The flow that the file would hold, from a temporary file. ConfigError names the file to be written."""
        with temporary_directory("ferry-init-") as directory:
            path = directory / self.file.name
            write_new_file(path, first_file(answers), force=False)
            try:
                yield load_config(path).flows[0]
            except ConfigError as problem:
                raise ConfigError(self._own(problem)) from problem


def _servers(text: str, other: ClusterAnswers | None) -> str:
    try:
        servers = kinds.SERVERS.parse(text)
    except ValueError:
        raise ValueError(f"{text or 'nothing'} is no list of servers: write {kinds.SERVERS.wants}, with ports from 1 to 65535") from None
    if other is not None and not set(servers).isdisjoint(kinds.SERVERS.parse(other.servers)):
        raise ValueError(f"{text} is the source: a flow must not copy a cluster to itself")
    return text


def _user(text: str) -> str:
    if has_reference(anything(text)):
        raise ValueError("write the name itself: Ferry resolves ${…:…} for passwords only")
    return text


def _password(text: str) -> str:
    """The password, checked. The error shows no part of it."""
    if has_reference(text):
        raise ValueError("it holds ${…:…}, which Ferry would resolve: answer env or file to the question where the password is")
    return text


def _existing_file(text: str) -> str:
    if text and not os.path.isfile(text):  # noqa: PTH113 - Path's fails where a directory may not be searched
        raise ValueError(f"{text} is no file that you can read")
    return str(Path(text).absolute()) if text else ""


def _reference(text: str) -> str:
    if not _REFERENCE.fullmatch(text):
        raise ValueError("give '${env:NAME}' or '${file:/path:key}': a password in a command line can be seen by others")
    return text


def _cron(text: str) -> str:
    if text:
        try:
            kinds.CRON.parse(text)
        except ValueError as problem:
            raise ValueError(f"{text} is not {kinds.CRON.wants}") from problem
    return text
