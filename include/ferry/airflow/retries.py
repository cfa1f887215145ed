"""Ferry's errors and exit codes in Airflow's terms: try again, or fail at once because trying again cannot help."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from ferry.errors import ExitCode, FerryError, RetryRule

# What a job's exit code asks for. A superseded run must not come back: the newer one does the work.
FINAL_EXIT_CODES = frozenset({ExitCode.BAD_INPUT, ExitCode.SUPERSEDED, ExitCode.DATA_LOST})


class EarlierTaskFailed(AirflowFailException):
    """A task cannot do its work because another one failed, which has said so itself."""


class JobFailed(AirflowException):
    """A Spark job ended with `exit_code`; worth another try."""

    exit_code = ExitCode.OTHER


class JobFailedForGood(AirflowFailException):
    """A Spark job ended with `exit_code`; another try would end the same way."""

    exit_code = ExitCode.OTHER


@contextmanager
def typed_retries() -> Iterator[None]:
    """Turn a FerryError into a failure that Airflow retries, or one that it does not."""
    try:
        yield
    except FerryError as problem:
        text = f"{type(problem).__name__}: {problem} (next: {problem.next_step})"
        if problem.retry is RetryRule.RETRY:
            raise AirflowException(text) from problem
        raise AirflowFailException(text) from problem


def failure_of_exit_code(code: int) -> JobFailed | JobFailedForGood:
    """The exception for a Spark job that ended with `code` (not 0)."""
    known = ExitCode(code) if code in set(ExitCode) else ExitCode.OTHER
    text = f"the Spark job ended with exit code {code} ({known.name.lower().replace('_', ' ')}); its log above names the reason"
    failure = JobFailedForGood(text) if known in FINAL_EXIT_CODES else JobFailed(text)
    failure.exit_code = known
    return failure
