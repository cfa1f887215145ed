"""Waits for a cluster that answered a moment ago: a broker that restarts in the middle of a run must not end the run."""

import logging
from functools import partial

from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_delay, wait_exponential

from ferry.clusters.coordination import COORDINATION_SECONDS
from ferry.errors import ClusterUnreachable, RetryRule

log = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 5.0


def until_it_answers(doing: str) -> Retrying:
    """Repeats a call while a cluster does not answer, for COORDINATION_SECONDS at most; then it raises ClusterUnreachable.

    Other errors, also refused credentials and rights, are raised at once. `doing`: what waits for the cluster, for the log.
    """
    return Retrying(
        retry=retry_if_exception(lambda problem: isinstance(problem, ClusterUnreachable) and problem.retry is RetryRule.RETRY),
        wait=wait_exponential(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS),
        stop=stop_after_delay(COORDINATION_SECONDS),
        before_sleep=partial(_log_pause, doing),
        reraise=True,
    )


def _log_pause(doing: str, state: RetryCallState) -> None:
    problem = state.outcome.exception() if state.outcome is not None else None
    log.warning("%s waits for a cluster that does not answer, and asks it again in %.1f s: %s", doing, state.upcoming_sleep, problem)
