#!/usr/bin/env bash
# Airflow takes Asset("s3://lake/orders") and Asset("s3://lake/orders/") for two assets with one URI, and the second one that it meets is dead.
#
# One would guess: Airflow normalises the URIs of assets, and it does drop this slash; so a DAG that waits for the one runs after a task that
# writes the other. Or they are two assets with two URIs, which have nothing to do with each other.
# What happens: the URI is s3://lake/orders for both. The name, which is the text as it was written if none is given, keeps the slash. Both are
# stored, and only the one whose file was read first is active. If the reader's was later, the task succeeds and no run of the reader is
# queued. If the writer's was later, the task fails before its code begins, with AirflowInactiveAssetInInletOrOutletException. A pair with
# one spelling works.
# With: apache-airflow 3.3.2.
# Hurt: whoever builds URIs from settings in several places: a new DAG of somebody else makes a task fail, or waits for ever. Give assets names.
set -euo pipefail

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
python3.11 -m venv "$directory/venv"
"$directory/venv/bin/pip" install -q --disable-pip-version-check uv==0.9.5
"$directory/venv/bin/uv" pip install --no-config -q --python "$directory/venv/bin/python" --exclude-newer 2026-11-20 apache-airflow==3.3.2
export PATH="$directory/venv/bin:$PATH" AIRFLOW__CORE__LOAD_EXAMPLES=False
cat >"$directory/writer.py" <<'PYTHON'
from airflow.sdk import Asset, dag, task


@dag(schedule=None)
def writer():
    @task(outlets=[Asset("s3://lake/orders/")])
    def write():
        print("SEEN the task's code")

    write()

    @task(outlets=[Asset("s3://lake/bills")])
    def write_bills():
        pass

    write_bills()


writer()
PYTHON
cat >"$directory/readers.py" <<'PYTHON'
from airflow.sdk import Asset, dag, task


def reader(name):
    @dag(dag_id=name, schedule=[Asset(f"s3://lake/{name}")])
    def read():
        @task
        def look():
            pass

        look()

    return read()


orders, bills = reader("orders"), reader("bills")
PYTHON
cat >"$directory/look.py" <<'PYTHON'
import sqlite3
import sys

first, path, log = sys.argv[1:]
database = sqlite3.connect(path)
rows = sorted(database.execute("select name, uri from asset where uri = 's3://lake/orders'"))
active = sorted(name for (name,) in database.execute("select name from asset_active"))
states = dict(database.execute("select task_id, state from task_instance where dag_id = 'writer'"))
queued = sorted(name for (name,) in database.execute("select target_dag_id from asset_dag_run_queue"))
with open(log, errors="replace") as lines:
    text = lines.read()
ran, inactive = "SEEN the task's code" in text, "AirflowInactiveAssetInInletOrOutletException: " in text
print(f"{first} is read first: assets (name, URI) {rows}; active {active}")
print(f"  tasks {states}; code of write ran: {ran}, inactive asset: {inactive}; DAGs that are to run: {queued}")
as_told = rows == [("s3://lake/orders", "s3://lake/orders"), ("s3://lake/orders/", "s3://lake/orders")]
if first == "writer":
    expected = (["s3://lake/bills", "s3://lake/orders/"], "success", True, False)
else:
    expected = (["s3://lake/bills", "s3://lake/orders"], "failed", False, True)
sys.exit(not (as_told and (active, states["write"], ran, inactive) == expected and (states["write_bills"], queued) == ("success", ["bills"])))
PYTHON

prepare() {
  "$@" >"$directory/prepare.txt" 2>&1 || { tail -n 30 "$directory/prepare.txt"; exit 2; }
}

answer=0
for first in writer readers; do
  export AIRFLOW_HOME="$directory/$first"
  mkdir -p "$AIRFLOW_HOME/dags"
  prepare airflow db migrate
  cp "$directory/$first.py" "$AIRFLOW_HOME/dags"
  prepare airflow dags reserialize
  cp "$directory/writer.py" "$directory/readers.py" "$AIRFLOW_HOME/dags"
  prepare airflow dags reserialize
  for name in orders bills; do
    prepare airflow dags unpause "$name" --yes
  done
  # Fails where the task does.
  airflow dags test writer >"$directory/run.txt" 2>&1 || true
  python "$directory/look.py" "$first" "$AIRFLOW_HOME/airflow.db" "$directory/run.txt" || answer=1
done
exit "$answer"
