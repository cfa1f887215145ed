#!/usr/bin/env bash
# A time with an offset, as datetime.fromisoformat("2026-01-01T00:00:00+01:00") gives it, can be handed from one Airflow task to the next, but not
# be taken.
#
# One would guess: the next task gets the same moment, as with UTC or a named zone; or the task that returns it fails.
# What happens: the first task succeeds. What is stored holds the moment and an empty zone, and the task that reads it fails with
# "ZoneInfo keys must be normalized relative paths, got: ". The offset is stored nowhere.
# With: apache-airflow 3.3.2 on Python 3.11.
# Hurt: whoever returns times that were parsed from JSON, logs or databases. A retry of the reader does not help; convert to UTC first.
set -euo pipefail

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
python3.11 -m venv "$directory/venv"
"$directory/venv/bin/pip" install -q --disable-pip-version-check uv==0.9.5
"$directory/venv/bin/uv" pip install --no-config -q --python "$directory/venv/bin/python" --exclude-newer 2026-11-20 apache-airflow==3.3.2
export PATH="$directory/venv/bin:$PATH" AIRFLOW_HOME="$directory/airflow" AIRFLOW__CORE__LOAD_EXAMPLES=False
mkdir -p "$AIRFLOW_HOME/dags"
cat >"$AIRFLOW_HOME/dags/look.py" <<'PYTHON'
from datetime import datetime

from airflow.sdk import dag, task


@dag(schedule=None)
def look():
    for name, text in {"utc": "2026-01-01T00:00:00+00:00", "offset": "2026-01-01T00:00:00+01:00"}.items():

        @task(task_id=f"send_{name}")
        def send(text):
            return datetime.fromisoformat(text)

        @task(task_id=f"receive_{name}")
        def receive(name, found):
            print("SEEN", name, found.isoformat())

        receive(name, send(text))


look()
PYTHON
airflow db migrate >"$directory/migrate.txt" 2>&1 || { cat "$directory/migrate.txt"; exit 2; }
airflow dags test look >"$directory/run.txt" 2>&1 || true
state() {
  python -c 'import sqlite3, sys; print(*sqlite3.connect(sys.argv[1]).execute("select state from task_instance where task_id = ?", sys.argv[2:]).fetchone())' "$AIRFLOW_HOME/airflow.db" "$1"
}
echo "UTC: sent $(state send_utc), read $(state receive_utc); offset: sent $(state send_offset), read $(state receive_offset): $(grep -ao "ZoneInfo keys must be[^\"']*" "$directory/run.txt" | head -1)"
[ "$(state send_utc) $(state receive_utc) $(state send_offset)" = "success success success" ] || { tail -30 "$directory/run.txt"; exit 2; }
[ "$(state receive_offset)" != success ] && grep -aq "ZoneInfo keys must be" "$directory/run.txt"
