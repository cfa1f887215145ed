"""How long an administration asks again: a cluster that has answered may be restarting, another one is unreachable at once.

A broker that answers may not be able to tell something now.
"""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from ferry.clusters.admin import cluster_admin as module
from ferry.clusters.admin.cluster_admin import ATTEMPT_PAUSE_SECONDS, CLOSED_TIMES, HIDDEN, ClusterAdmin
from ferry.clusters.admin.describe import TopicDescription, WantedTopic
from ferry.clusters.net.connections import RequestClosed, RequestLost, RequestNotSent
from ferry.clusters.net.failures import REFUSALS
from ferry.clusters.net.outage import PATIENCE_SECONDS
from ferry.errors import AuthenticationFailed, ClusterUnreachable, NotAuthorized

pytestmark = pytest.mark.unit

GONE = ClusterUnreachable("cluster A does not answer")
ID = "the cluster's id"
ANSWER = SimpleNamespace(cluster_id=ID)
ATTEMPTS = round(PATIENCE_SECONDS / ATTEMPT_PAUSE_SECONDS)


@pytest.fixture
def admin(monkeypatch: pytest.MonkeyPatch) -> tuple[ClusterAdmin, list[Any]]:
    """An administration, and the answers that it gets: what is an error is raised."""
    answers: list[Any] = []
    clock = SimpleNamespace(now=0.0)

    def sleep(seconds: float) -> None:
        clock.now += seconds

    def answered(*_: object, **__: object) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(module, "clock", SimpleNamespace(monotonic=lambda: clock.now, sleep=sleep))
    cluster: Any = SimpleNamespace(ask=answered, cluster=SimpleNamespace(alias="A", where="cluster A (a:9092)"))
    return ClusterAdmin(cluster), answers


def test_a_cluster_that_never_answered_is_unreachable_at_once(admin: tuple[ClusterAdmin, list[Any]]) -> None:
    made, answers = admin
    answers += [GONE, ANSWER]
    with pytest.raises(ClusterUnreachable, match="cluster A does not answer"):
        made.cluster_id()
    assert answers == [ANSWER]


@pytest.mark.parametrize(("problem", "left"), [(GONE, 1), (NotAuthorized("no"), 0)], ids=["lost", "refused"])
def test_a_cluster_that_was_lost_counts_as_one_that_never_answered(
    admin: tuple[ClusterAdmin, list[Any]], problem: Exception, left: int
) -> None:
    """A command that keeps its administration does not wait for a lost cluster with each question."""
    made, answers = admin
    answers += [ANSWER, *[problem] * (ATTEMPTS + 2)]
    assert made.cluster_id() == ID
    with pytest.raises(ClusterUnreachable):
        made.cluster_id()
    answers[:] = [GONE, ANSWER]
    if left:
        with pytest.raises(ClusterUnreachable):
            made.cluster_id()
    else:
        assert made.cluster_id() == ID
    assert len(answers) == left


def test_a_request_at_which_brokers_close_the_connection_is_named_soon(admin: tuple[ClusterAdmin, list[Any]]) -> None:
    made, answers = admin
    closed = RequestClosed("cluster A: DescribeConfigs: socket disconnected")
    answers += [closed, None] * CLOSED_TIMES
    with pytest.raises(
        ClusterUnreachable, match=r"it answers other requests, but closes the connection at this one: .*DescribeConfigs"
    ) as told:
        made.topic_configs(["t"])
    assert (answers, "brokers' logs" in told.value.next_step) == ([], True)


@pytest.mark.parametrize("between", [RequestNotSent("connection refused"), RequestLost("no answer in time"), GONE])
def test_a_broker_that_restarts_again_and_again_is_asked_again(admin: tuple[ClusterAdmin, list[Any]], between: Exception) -> None:
    """It closes connections too, but then the cluster takes no other request, or the next connection."""
    made, answers = admin
    closed = RequestClosed("cluster A: Metadata: socket disconnected")
    answers += [*[closed, None] * (CLOSED_TIMES - 1), between, *[closed, RequestLost("reset")] * CLOSED_TIMES, closed, None, ANSWER]
    assert made.cluster_id() == ID


@pytest.mark.parametrize("before", [[ANSWER], [RequestLost("reset"), ANSWER]], ids=["an answer", "its brokers were found"])
@pytest.mark.parametrize("problem", [GONE, RequestLost("reset")])
def test_a_cluster_that_has_answered_may_be_restarting(
    before: list[Any], problem: Exception, admin: tuple[ClusterAdmin, list[Any]]
) -> None:
    made, answers = admin
    answers += [*before, *[problem] * ATTEMPTS, ANSWER]
    assert [made.cluster_id(), made.cluster_id()] == [ID, ID]
    answers += [problem] * (ATTEMPTS + 2)
    with pytest.raises(ClusterUnreachable):
        made.cluster_id()
    assert answers == []


def test_a_refused_login_is_final(admin: tuple[ClusterAdmin, list[Any]]) -> None:
    made, answers = admin
    answers += [ANSWER, AuthenticationFailed("no login"), ANSWER]
    made.cluster_id()
    with pytest.raises(AuthenticationFailed):
        made.cluster_id()
    assert answers == [ANSWER]


def test_what_a_client_met_long_ago_does_not_explain_why_nobody_answers_now(
    admin: tuple[ClusterAdmin, list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A controller may be restarting now. The login was refused when a password was changed, hours ago."""
    made, _ = admin
    outcomes: list[Exception | None] = [KafkaException(KafkaError(KafkaError._TIMED_OUT)), None]

    def create_topics(wanted: list[Any], **_: object) -> dict[str, Future[None]]:
        future, outcome = Future[None](), outcomes.pop(0)
        future.set_result(None) if outcome is None else future.set_exception(outcome)
        return {one.topic: future for one in wanted}

    monkeypatch.setattr(module._Clients, "admin", SimpleNamespace(poll=lambda _: 0, create_topics=create_topics))
    made._clients.answered = True
    made._clients.errors.extend([KafkaError(KafkaError._AUTHENTICATION)] * REFUSALS)
    assert made.create_topics([WantedTopic("t", 1, 1)]) == {}
    assert outcomes == []


def described(*codes: int) -> dict[str, Any]:
    """Topics t0, t1 and so on; those with a code are not described."""
    topic = TopicDescription(None, 1, ((1,),), led=True)
    return {f"t{number}": KafkaError(code) if code else topic for number, code in enumerate(codes)}


@pytest.mark.parametrize("code", [KafkaError.REQUEST_TIMED_OUT, KafkaError.LEADER_NOT_AVAILABLE, KafkaError.UNKNOWN])
def test_what_a_broker_cannot_tell_now_is_asked_for_again(code: int, admin: tuple[ClusterAdmin, list[Any]]) -> None:
    made, answers = admin
    answers += [described(0, code), described(0, code), {"t1": described(0)["t0"]}]
    assert made.topics().keys() == {"t0", "t1"}
    answers += [{"t0": {}, "t1": KafkaError(code)}, {"t1": {}}]
    assert made.visible_configs(["t0", "t1"]) == ({"t0": {}, "t1": {}}, {})
    answers += [{"t0": {}, "t1": KafkaError(code)}] * (ATTEMPTS + 2)
    found, problems = made.visible_configs(["t0", "t1"])
    assert (found, {name: type(problem) for name, problem in problems.items()}) == ({"t0": {}}, {"t1": ClusterUnreachable})
    assert answers == []


def test_what_a_broker_refuses_to_tell_is_not_asked_for_again(admin: tuple[ClusterAdmin, list[Any]]) -> None:
    made, answers = admin
    answers += [described(KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.UNKNOWN_TOPIC_OR_PART, 0)]
    assert made.topics_that(HIDDEN, ["t0", "t1", "t2"]) == ("t0",)
    assert made.topics([]) == {}
    assert made.visible_configs([]) == ({}, {})
