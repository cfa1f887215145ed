"""Waiting for a cluster that answered a moment ago: a broker that restarts in the middle of a run must not end it."""

from __future__ import annotations

import logging

from tenacity import Retrying, before_sleep_log, retry_if_exception, stop_after_delay, wait_exponential

from ferry.clusters.coordination import COORDINATION_SECONDS
from ferry.errors import ClusterUnreachable, RetryRule

log = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 5.0


def until_it_answers() -> Retrying:
    """Repeats a call while a cluster does not answer, no longer than a coordinator is waited for; then ClusterUnreachable goes through.

    Refused credentials and permissions go through at once, and so does everything else.
    """
    return Retrying(
        retry=retry_if_exception(lambda problem: isinstance(problem, ClusterUnreachable) and problem.retry is RetryRule.RETRY),
        wait=wait_exponential(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS),
        stop=stop_after_delay(COORDINATION_SECONDS),
        before_sleep=before_sleep_log(log, logging.WARNING),
        reraise=True,
    )
