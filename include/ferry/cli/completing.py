"""What the shell offers at the TAB key: flows, clusters and topics of the CONFIG in the command line.

Flows and clusters come from the file, topics too if `topics` names them. Else Ferry asks the source, for a short time. Nothing here may
raise or print: after any error the shell offers nothing. Bash inserts names without quotes, and `A->B` would redirect output to a file B;
so Bash gets names in quotes.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ferry.cli.output import answer

if TYPE_CHECKING:
    from ferry.config import FerryConfig, Flow

PROGRAM = "ferry"
# The shells' scripts set it; click derives the name from the program's.
COMPLETE_VARIABLE = "_FERRY_COMPLETE"
# A person who presses TAB waits this long at most.
TOPICS_SECONDS = 1.5
MOST_AT_ONCE = 8
# More names would only fill the screen.
MOST_TOPICS = 200


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    shell: Annotated[Shell, typer.Argument(help="Your shell.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of the script alone.")] = False,
) -> None:
    """Print the completion script of a shell, for your shell to source. `ferry --install-completion` installs it for you."""
    from typer._completion_shared import get_completion_script

    script = get_completion_script(prog_name=PROGRAM, complete_var=COMPLETE_VARIABLE, shell=shell.value)
    answer({"shell": shell.value, "script": script}, [script], as_json=as_json)


def answer_the_shell(app: typer.Typer) -> None:
    """Answer a request for completion, which the environment holds. Does not return."""
    from typer._click.shell_completion import add_completion_class
    from typer._completion_classes import BashComplete

    class QuotingBash(BashComplete):
        def format_completion(self, item: Any) -> str:
            value = str(super().format_completion(item))
            with suppress(ValueError):  # inside quotes
                shlex.split(os.environ.get("COMP_WORDS", ""))
                return shlex.quote(value)
            return value

    command = typer.main.get_command(app)  # this registers typer's own class
    add_completion_class(QuotingBash, Shell.BASH.value)
    command()


def flow_names(context: typer.Context) -> list[tuple[str, str]]:
    loaded = _config(context)
    return [] if loaded is None else [(flow.name, ", ".join(flow.topics)[:60]) for flow in loaded.flows]


def cluster_names(context: typer.Context) -> list[tuple[str, str]]:
    loaded = _config(context)
    return [] if loaded is None else [(alias, cluster.bootstrap) for alias, cluster in loaded.clusters.items()]


def topic_names(context: typer.Context, incomplete: str) -> list[str]:
    """Source topics of the flow in the command line, or of all flows."""
    loaded = _config(context)
    if loaded is None:
        return []
    asked = context.params.get("flow")
    flows = [flow for flow in loaded.flows if asked in {None, flow.name}]
    named = sorted({name for flow in flows for name in flow.named_topics if name.startswith(incomplete)})
    return named or sorted({name for name in _topics_of_all(flows) if name.startswith(incomplete)})[:MOST_TOPICS]


def _topics_of_all(flows: Iterable[Flow]) -> Iterator[str]:
    """Asks all sources at the same time, for TOPICS_SECONDS together."""
    from concurrent.futures import ThreadPoolExecutor

    end = time.monotonic() + TOPICS_SECONDS
    with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
        for names in pool.map(lambda flow: _topics_of(flow, end - time.monotonic()), flows):
            yield from names


def _topics_of(flow: Flow, seconds: float) -> Iterable[str]:
    """Topics of the source that the flow copies; none if the source does not answer within `seconds`."""
    if seconds <= 0:
        return ()
    with suppress(Exception):  # see the module's text
        from confluent_kafka.admin import AdminClient

        rules = flow.topic_rules
        with AdminClient({**flow.source.librdkafka(), "log_level": 0}) as client:
            names = list(client.list_topics(timeout=seconds).topics)
        return [name for name in names if rules.why_not(name) is None]
    return ()


def _config(context: typer.Context) -> FerryConfig | None:
    """The CONFIG of the command line, or of the environment."""
    from ferry.config import load_config

    for path in _config_paths(context):
        with suppress(Exception):  # see the module's text
            return load_config(path)
    return None


def _config_paths(context: Any) -> Iterator[Path]:
    """Paths that may be the CONFIG, the best first: click drops arguments in front of an option without a value yet."""
    from ferry.config.flow import named_configs

    while context is not None:
        if context.params.get("config"):
            yield Path(context.params["config"]).expanduser()
        context = context.parent
    words = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or ""
    yield from (Path(path) for path in map(os.path.expanduser, words.split()) if os.path.isfile(path))  # noqa: PTH113 - never fails
    yield from named_configs()
