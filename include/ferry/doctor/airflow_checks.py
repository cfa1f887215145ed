"""Findings about an Airflow that shall run Ferry's DAGs (pure, except that it looks for a config).

Until a run of one flow is green, anything missing for the flow that is nearest to a green run is a failure. Anything missing for the other
flows, or after that run, is a warning.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile
from pathlib import Path
from shlex import quote

from ferry.config.flow import CONFIG_VARIABLE
from ferry.doctor.airflow_facts import AirflowFacts, DagFacts
from ferry.doctor.finding import Finding, Verdict, failure, ok, warning

AIRFLOW = "Airflow"
OLDEST, NEWEST = (3, 0), (3, 3)
COMMAND = "airflow "
START = "start Airflow as you always do; a new one: airflow standalone, in another terminal"
AGAIN = "then type this command again"
# As in the documentation.
NEW_FILE, NEW_CONFIG = "replication.py", "mm2.properties"
Missing = Callable[[str, str, str, str], Finding]
GREEN, UNDER_WAY = "success", frozenset({"queued", "running"})


def next_step(findings: Iterable[Finding]) -> str | None:
    """What to do about the first failure; None: there is none. Commands of Airflow that follow one another are one line."""
    steps = [entry.fix for entry in findings if entry.verdict is Verdict.FAILURE]
    commands = takewhile(lambda step: step.startswith(COMMAND), steps)
    return " && ".join(dict.fromkeys(commands)) or next(iter(steps), None)


def airflow_findings(facts: AirflowFacts, config: Path | None, only: str | None) -> Iterator[Finding]:
    """All findings. `config`: the file that a new DAG file shall name. `only`: look at this flow alone."""
    if not facts.version:
        found = "not installed for the Python that runs this command"
        yield failure(AIRFLOW, "version", found, "pip install 'kafka-ferry[airflow]', into the environment of your Airflow if you have one")
    elif not OLDEST <= tuple(map(int, facts.version.split(".")[:2])) <= NEWEST:
        yield failure(AIRFLOW, "version", f"{facts.version}; Ferry runs on 3.0 to 3.3", "pip install 'apache-airflow>=3.0,<3.4'")
    elif facts.problem:
        yield failure(AIRFLOW, "database", f"{facts.problem} (AIRFLOW_HOME={facts.home or 'not known'})", START)
    else:
        yield ok(AIRFLOW, "database", f"Airflow {facts.version} answers (AIRFLOW_HOME={facts.home})")
        if facts.silent:
            yield failure(AIRFLOW, "processes", f"no heartbeat of {' and '.join(facts.silent)}", START)
        else:
            yield ok(AIRFLOW, "processes", "scheduler and DAG processor are alive")
        yield _file(facts, config)
        yield from _dags(facts, only)


def _file(facts: AirflowFacts, config: Path | None) -> Finding:
    beside, named = Path(facts.folder, NEW_CONFIG), os.environ.get(CONFIG_VARIABLE)
    if facts.errors:
        found = "; ".join(f"{file}: {problem}" for file, problem in facts.errors.items())
        return failure(AIRFLOW, "DAG file", found, f"correct what the message names, {AGAIN}")
    if facts.dags:
        return ok(AIRFLOW, "DAG file", ", ".join(facts.files) or f"none in {facts.folder}, but Airflow has Ferry's DAGs")
    if facts.files:
        found = f"{', '.join(facts.files)} makes no DAG here, and Airflow has none: flows() needs {CONFIG_VARIABLE}, or a path"
        return failure(AIRFLOW, "DAG file", found, f"export {CONFIG_VARIABLE}={config or beside}, here and for all processes of Airflow")
    if not facts.folder:  # Airflow fetches its bundles
        fix = f'add a file with `from ferry.airflow.dags import flows; flows("{NEW_CONFIG}")` and {NEW_CONFIG} to what a DAG bundle fetches'
        return failure(AIRFLOW, "DAG file", "Airflow has no DAGs of Ferry, and no DAG folder on this machine", fix)
    folder = quote(facts.folder)
    if config is None and named is None and not beside.is_file():
        found = f"there is no {beside}, {CONFIG_VARIABLE} is not set, and this command was given no file"
        return failure(AIRFLOW, "config", found, f"mkdir -p {folder} && ferry init {quote(str(beside))}")
    path = f'"{config.absolute()}"' if config else "" if named else f'"{NEW_CONFIG}"'
    line = quote(f"from ferry.airflow.dags import flows; flows({path})")
    fix = f"mkdir -p {folder} && echo {line} > {quote(str(Path(facts.folder, NEW_FILE)))}"
    return failure(AIRFLOW, "DAG file", f"no file in {facts.folder} makes Ferry's DAGs", fix)


def _dags(facts: AirflowFacts, only: str | None) -> Iterator[Finding]:
    dags = [dag for dag in facts.dags if only is None or dag.dag_id == f"ferry.{only.replace('->', '.')}"]
    if facts.dags and not dags:
        yield failure(AIRFLOW, "DAG", f"there is none of {only}", f"name a flow that has a DAG, or enable {only} in its file")
    nearest = max(dags, key=lambda dag: (dag.state == GREEN, bool(dag.run), not dag.paused), default=None)
    for dag in dags:
        where, missing = f"DAG {dag.dag_id}", failure if dag is nearest and dag.state != GREEN else warning
        yield _spark(where, dag, missing)
        yield _seen(where, dag, facts, missing)
        if dag.paused:
            yield missing(where, "paused", "yes: no run starts", f"{COMMAND}dags unpause {quote(dag.dag_id)}")
        if dag.state == GREEN:
            yield ok(where, "last run", f"{dag.run} is green")
        elif dag.state in UNDER_WAY:
            yield missing(where, "last run", f"{dag.run} is {dag.state}", f"wait until it has ended, {AGAIN}")
        elif dag.run:
            yield failure(where, "last run", f"{dag.run} {dag.state}: {dag.reason}", dag.next_step)
        else:
            yield missing(where, "last run", "none yet", f"{COMMAND}dags trigger {quote(dag.dag_id)}")


def _seen(where: str, dag: DagFacts, facts: AirflowFacts, missing: Missing) -> Finding:
    if dag.seen:
        return ok(where, "seen", f"Airflow has it{dag.config and f'; its config is {dag.config}'}")
    if facts.import_errors:
        found = "; ".join(f"Airflow cannot import {file}: {problem}" for file, problem in facts.import_errors.items())
        return failure(where, "seen", found, "start Airflow's DAG processor again, with the packages and variables of this shell")
    bundles = "".join(f" --bundle-name {quote(bundle)}" for bundle in sorted(set(facts.files.values())))
    found = "Airflow has not read the DAG file yet: by default it looks for new files every 5 minutes"
    return missing(where, "seen", found, f"{COMMAND}dags reserialize{bundles}")


def _spark(where: str, dag: DagFacts, missing: Missing) -> Finding:
    if dag.master:
        return ok(where, "Spark connection", f"{dag.connection}, in {dag.found_in}: {dag.master}")
    if dag.found_in:
        return missing(where, "Spark connection", f"{dag.unusable} (in {dag.found_in})", f"correct the connection {dag.connection}")
    if dag.connection:
        fix = f"{COMMAND}connections add {quote(dag.connection)} --conn-type spark --conn-host 'local[2]'"
        return missing(where, "Spark connection", f"{dag.connection} does not exist: tasks that start Spark fail", fix)
    if dag.config:
        return ok(where, "Spark connection", "not needed: the flow copies no records")
    fix = "type this command where the DAG file and its config are"
    return warning(where, "Spark connection", "not checked: no DAG file that this user can read makes the DAG", fix)
