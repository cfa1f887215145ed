"""The end of a run for the history: what the run did, and how far behind the flow was then, as small records of the runs topic.

It never fails a run, and never raises: what could not be kept is said. In Airflow two tasks end a run side by side: the report keeps the
summary, the check of the limits the lag that it measured.
"""

from ferry.clusters.internal_producer import append_records
from ferry.clusters.internal_reader import InternalTopicReader
from ferry.config import Flow
from ferry.errors import FerryError
from ferry.ledger.run_report import RunReport
from ferry.ledger.run_summary import RunLag, encode_run_part, summary_of

NOT_KNOWN = RunLag()


def keep_run(flow: Flow, report: RunReport, lag: RunLag = NOT_KNOWN) -> str:
    """Write the run's summary; what kept it from being written, for people (empty: nothing did)."""
    return _kept(flow, encode_run_part(report.run_id, summary_of(report, lag)))


def keep_lag(flow: Flow, run_id: str, lag: RunLag) -> str:
    """Write how far behind the flow was at the run's end, for a summary that another task keeps; as `keep_run`."""
    return _kept(flow, encode_run_part(run_id, lag))


def _kept(flow: Flow, record: tuple[bytes, bytes]) -> str:
    topic = flow.runs_topic
    try:
        with InternalTopicReader(flow.target) as reader:
            if not reader.partitions(topic):
                return ""  # a flow that has never copied: writing could create the topic with the broker's settings
        append_records(flow.target, topic, [record])
    except FerryError as problem:
        return f"this run, or its lag, is not in the page's history, because it could not be written: {problem}"
    return ""
