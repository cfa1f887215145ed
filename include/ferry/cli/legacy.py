"""`ferry legacy`: MirrorMaker 1's command line, for a whole run of Ferry.

The options are written into a legacy file (see config.legacy_file) without secrets. That file is the config of the run, which a Spark job
reads too. An option that has no meaning here gets a warning, or an error that says what to write instead.
"""

import os
import re
from pathlib import Path
from typing import Annotated

import typer

from ferry.cli.copies import carry_out
from ferry.cli.options import AsJson, Master, ReportFile, load_flow, run_id
from ferry.cli.output import naming, notice
from ferry.copying.request import RunRequest
from ferry.ending import temporary_directory
from ferry.errors import ArgumentError, ConfigError


def legacy(
    consumer_config: Annotated[
        Path, typer.Option("--consumer.config", "--consumer", resolve_path=True, help="Properties file of the consumer, on the source.")
    ],
    producer_config: Annotated[
        Path, typer.Option("--producer.config", "--producer", resolve_path=True, help="Properties file of the producer, on the target.")
    ],
    include: Annotated[str | None, typer.Option("--include", help="Regular expression of the topics to copy.")] = None,
    whitelist: Annotated[str | None, typer.Option("--whitelist", help="Older name of --include.")] = None,
    blacklist: Annotated[str | None, typer.Option("--blacklist", help="Copy all topics but these.")] = None,
    num_streams: Annotated[str | None, typer.Option("--num.streams", help="Number of Spark tasks.")] = None,
    offset_commit_interval: Annotated[
        str | None, typer.Option("--offset.commit.interval.ms", help="Age at which Ferry commits a transaction, in ms: 1000 to 50000.")
    ] = None,
    abort_on_send_failure: Annotated[
        str | None, typer.Option("--abort.on.send.failure", help="false: leave out records that the target refuses, and report them.")
    ] = None,
    message_handler: Annotated[str | None, typer.Option("--message.handler", help="package.module:Class, in Python.")] = None,
    message_handler_args: Annotated[str | None, typer.Option("--message.handler.args", help="Text for the handler's class.")] = None,
    consumer_rebalance_listener: Annotated[
        str | None, typer.Option("--consumer.rebalance.listener", help="package.module:Class of an assignment listener, in Python.")
    ] = None,
    rebalance_listener_args: Annotated[str | None, typer.Option("--rebalance.listener.args", help="Text for the listener's class.")] = None,
    new_consumer: Annotated[bool, typer.Option("--new.consumer", help="Has no effect.")] = False,
    num_producers: Annotated[str | None, typer.Option("--num.producers", help="Has no effect.")] = None,
    queue_size: Annotated[str | None, typer.Option("--queue.size", help="Has no effect.")] = None,
    source_alias: Annotated[str, typer.Option("--source.alias", help="What Ferry calls the source.")] = "source",
    target_alias: Annotated[str, typer.Option("--target.alias", help="What Ferry calls the target.")] = "target",
    save: Annotated[Path | None, typer.Option("--save", help="Only write a file, which all other commands take as CONFIG.")] = None,
    master: Master = None,
    report: ReportFile = None,
    as_json: AsJson = False,
) -> None:
    """Do one whole run with MirrorMaker 1's command line. Topics keep their names, and Ferry copies only records."""
    options = dict(locals())
    import javaproperties

    from ferry.config import load_config
    from ferry.config.legacy_file import KNOWN, PREFIX

    for option, given, why in (
        ("--new.consumer", new_consumer, "there is one kind of consumer"),
        ("--num.producers", num_producers, "each lane has its own writer (ferry.lanes)"),
        ("--queue.size", queue_size, "nothing is queued between reading and writing"),
    ):
        if given:
            notice(f"warning: {option} has no effect: {why}")
    # The file has every option under its name, escaped by the rules of Java properties.
    named = [(f"{PREFIX}{name.replace('_', '.')}", value) for name, value in options.items()]
    lines = [javaproperties.join_key_value(key, str(value), " = ") for key, value in named if key in KNOWN and value is not None]
    text = "".join(f"{line}{os.linesep}" for line in lines)
    with temporary_directory("ferry-legacy-") as directory:
        config = directory / "legacy.properties"
        config.touch(mode=0o600)
        config.write_text(text, encoding="latin-1")
        try:
            load_config(config)
        except ConfigError as problem:  # it says what is wrong with an option of this command line
            shown = re.sub(rf"^{re.escape(str(config))}(?::\d+)?: legacy\.", "--", str(problem), flags=re.MULTILINE)
            raise (ArgumentError if shown.startswith("--") else ConfigError)(shown) from problem
        if save is not None:
            with naming("--save", save):
                save.write_text(text, encoding="latin-1")
            notice(f"{save}: written; use it as CONFIG with --flow '{source_alias}->{target_alias}'")
            return
        request = RunRequest(f"{source_alias}->{target_alias}", run_id("legacy"))
        carry_out(config, load_flow(config, request.flow), request, master, report, as_json=as_json, syncs=True)
