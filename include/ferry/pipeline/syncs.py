"""Carries out syncs, each on its own, so that one that fails does not stop the others.

A sync is a function `(OpenFlow, dry_run=…) -> SyncOutcome`. It compares both sides, writes only what differs, names what it leaves out and
what failed, and raises only when it can do nothing at all. Whether it is wanted (its `*.enabled`) and due (its interval, "not more often
than") is decided here; when it was last done stands in the flow's state topic.
"""

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import cached_property

from ferry import clock
from ferry.clusters.logs.internal_batches import KeyValue
from ferry.clusters.logs.internal_producer import append_records
from ferry.errors import FerryError, NewerFormat
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.reading import ask_syncs_done
from ferry.ledger.runs_topic import RunSync, encode_run_record
from ferry.ledger.state import SyncDone, encode_state
from ferry.ledger.sync_outcome import LISTED, NOT_DUE, SyncOutcome, WholeSyncFailure
from ferry.ledger.topics import ensure_internal_topics
from ferry.syncs.acls import sync_acls
from ferry.syncs.checkpoints import sync_checkpoints
from ferry.syncs.configs import sync_configs
from ferry.syncs.group_offsets import sync_groups
from ferry.syncs.heartbeats import sync_heartbeat
from ferry.syncs.names import BEFORE_THE_COPY, SYNCS, SyncName, not_enabled
from ferry.syncs.offset_syncs import sync_offset_syncs
from ferry.syncs.schemas import sync_schemas
from ferry.syncs.source_group import sync_source_group
from ferry.syncs.topics import sync_topics

FUNCTIONS: Mapping[SyncName, Callable[..., SyncOutcome]] = {
    SyncName.TOPICS: sync_topics,
    SyncName.SCHEMAS: sync_schemas,
    SyncName.CONFIGS: sync_configs,
    SyncName.ACLS: sync_acls,
    SyncName.HEARTBEAT: sync_heartbeat,
    SyncName.OFFSET_SYNCS: sync_offset_syncs,
    SyncName.CHECKPOINTS: sync_checkpoints,
    SyncName.GROUPS: sync_groups,
    SyncName.SOURCE_GROUP: sync_source_group,
}


class Syncs:
    """The syncs of one run or of one command. They read the state of earlier syncs once, and make Ferry's own topics once.

    With a `run_id`, Ferry writes each outcome for that run's report, and `carry_out` raises if it cannot. Without one it never raises a
    FerryError: the outcome says what was changed, and that Ferry could not record it.
    """

    def __init__(
        self,
        opened: OpenFlow,
        *,
        run_id: str = "",
        dry_run: bool = False,
        topics_made: bool = False,
        keep_seconds: float = 0.0,
        report_seconds: float = 0.0,
    ) -> None:
        """`topics_made`: Ferry's own topics are there.

        It is written after at most `keep_seconds` when a sync was done, and after at most `report_seconds` its outcome, for the report.
        """
        self._opened, self._flow, self._run_id, self._dry_run = opened, opened.flow, run_id, dry_run
        self._topics_made = topics_made
        self._seconds = {opened.flow.state_topic: keep_seconds, opened.flow.runs_topic: report_seconds}
        # By topic and sync: of several outcomes the last one. And by topic, since when something is not written.
        self._unkept: dict[str, dict[str, KeyValue]] = {}
        self._unkept_since: dict[str, float] = {}

    def carry_out(self, name: SyncName, *, on_request: bool = False, unless_disabled: bool = False) -> SyncOutcome:
        """Do one sync, if it is wanted and due.

        `on_request`: a person asked for it, so it is done whatever intervals and (but for `unless_disabled`) settings say. A sync that
        could do nothing has failed as a whole.
        """
        began, what = clock.monotonic(), f"sync {name.value}"
        try:
            self._refuse_newer()
            why_not = not_enabled(self._flow, name) if unless_disabled or not on_request else ""
            why_not = why_not or ("" if on_request else self.not_due(name))
            outcome = SyncOutcome(left_out=why_not) if why_not else FUNCTIONS[name](self._opened, dry_run=self._dry_run)
        except NewerFormat as problem:  # then nothing is written, not even the outcome
            return SyncOutcome(sync=name.value, failed=(WholeSyncFailure.of(what, problem),), dry_run=self._dry_run)
        except FerryError as problem:
            outcome = SyncOutcome(failed=(WholeSyncFailure.of(what, problem),))
        outcome = replace(outcome, sync=name.value, dry_run=self._dry_run, seconds=round(clock.monotonic() - began, 3))
        return outcome if self._dry_run or not_enabled(self._flow, name) else self._kept(outcome)

    def _refuse_newer(self) -> None:
        """NewerFormat if a newer Ferry wrote the state topic. If Ferry cannot read that topic, a sync that needs the target fails later."""
        try:
            _ = self._done
        except NewerFormat:
            raise
        except FerryError as problem:
            logging.getLogger(__name__).debug("syncs: the state topic was not read: %s", problem)

    @cached_property
    def _done(self) -> Mapping[str, SyncDone]:
        return ask_syncs_done(self._opened).answer()

    def not_due(self, name: SyncName, soon: float = 0.0) -> str:
        """Why a run leaves this sync out: it was done too short a time ago; empty if it is due, now or in `soon` seconds.

        If it was done in the future, by a machine whose clock is ahead, it is due. Otherwise it would have to wait for that moment too.
        What a copy needs is always due: a schema may be newer than the last sync, and the records that need it too.
        """
        interval = 0 if name in BEFORE_THE_COPY else SYNCS[name].interval(self._flow)
        done = self._done.get(name.value) if interval else None
        age = -1.0 if done is None else clock.time() - done.finished / 1000
        return f"{NOT_DUE}{age:.0f} s ago, {SYNCS[name].interval_key}={interval}" if 0 <= age < interval - soon else ""

    def _kept(self, outcome: SyncOutcome) -> SyncOutcome:
        try:
            self._keep(outcome)
        except FerryError as problem:
            if self._run_id:
                raise
            unkept = WholeSyncFailure(f"sync {outcome.sync}", type(problem).__name__, f"when it was done cannot be written down: {problem}")
            return replace(outcome, failed=(*outcome.failed, unkept))
        return outcome

    def _keep(self, outcome: SyncOutcome) -> None:
        succeeded = not (outcome.left_out or outcome.failed)
        if not self._run_id and not succeeded:
            return
        if not outcome.left_out and not self._topics_made:  # what is not due was done before, so the topics are there
            ensure_internal_topics(self._flow, self._opened.target.admin)
            self._topics_made = True
        now, new = clock.monotonic(), dict[str, KeyValue]()
        if self._run_id:
            new[self._flow.runs_topic] = encode_run_record(RunSync(self._run_id, outcome.sync, outcome.document(LISTED)))
        if succeeded:
            new[self._flow.state_topic] = encode_state(SyncDone(outcome.sync, clock.time_ms(), self._run_id))
        for topic, record in new.items():
            self._unkept.setdefault(topic, {})[outcome.sync] = record
            self._unkept_since.setdefault(topic, now)
        self._write([topic for topic, since in self._unkept_since.items() if now - since >= self._seconds[topic]])

    def keep(self, seconds: float | None = None) -> None:
        """Write the outcomes that are not written yet, in `seconds` (None: as append_records waits).

        If they cannot be written, ClusterUnreachable or NotAuthorized is raised, and the next call writes them.
        """
        self._write(list(self._unkept), seconds)

    def _write(self, topics: Collection[str], seconds: float | None = None) -> None:
        if topics:
            append_records(self._opened.target, {topic: list(self._unkept[topic].values()) for topic in topics}, seconds=seconds)
        for topic in topics:
            del self._unkept[topic], self._unkept_since[topic]
