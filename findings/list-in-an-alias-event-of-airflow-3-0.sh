#!/usr/bin/env bash
# What becomes of a task of Airflow 3.0 that adds an event to an asset alias, with a list in the event's `extra`.
#
# One would guess: `extra` is JSON, so a list is as good as a number; with `outlet_events[asset].extra` it is.
#
# What happens (apache-airflow 3.0.6): the task's code ends well. Then the API server takes the items of `extra` as a key of a dictionary
# (TaskInstance.register_asset_changes_in_db), and a list cannot be one: "TypeError: unhashable type: 'list'". The task becomes failed, is
# not tried again, and its own log has no error. Only the log of the API server says why. An event with a number in its place is stored.
#
# Who is hurt: producers that tell in an alias's event what they have written, for example as a list of offsets or files.
#
# Needs bash, Python 3.11 with venv, and about three minutes. Exits 0 while this is so, 1 once it has changed.
set -euo pipefail

directory=$(mktemp -d)
server=""
end() {
  [ -z "$server" ] || { kill -- "$server" 2>/dev/null || true; wait "${server#-}" 2>/dev/null || true; }
  rm -rf "$directory"
}
trap end EXIT

python3.11 -m venv "$directory/venv"
"$directory/venv/bin/pip" install -q uv==0.9.5
# The packages of the days of 3.0.6.
"$directory/venv/bin/uv" pip install --no-config -q --python "$directory/venv/bin/python" --exclude-newer 2025-09-20 apache-airflow==3.0.6

free() { "$directory/venv/bin/python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
port=$(free)
export PATH="$directory/venv/bin:$PATH"
export AIRFLOW_HOME="$directory/airflow" AIRFLOW__CORE__LOAD_EXAMPLES=False AIRFLOW__CORE__MAX_ACTIVE_TASKS_PER_DAG=1
export AIRFLOW__API__HOST=127.0.0.1 AIRFLOW__API__PORT="$port" AIRFLOW__API__WORKERS=1 AIRFLOW__API__BASE_URL="http://127.0.0.1:$port"
export AIRFLOW__CORE__EXECUTION_API_SERVER_URL="http://127.0.0.1:$port/execution/" AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT="$(free)"
AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT=$(free)
export AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT
mkdir -p "$AIRFLOW_HOME/dags"
cat > "$AIRFLOW_HOME/dags/tells.py" <<'PYTHON'
from airflow.sdk import Asset, AssetAlias, dag, task

ALIAS = AssetAlias("written")


@dag(schedule=None)
def tells():
    for name, told in {"a_number": 1, "a_list": [1]}.items():

        @task(task_id=name, outlets=[ALIAS])
        def write(told, *, outlet_events):
            outlet_events[ALIAS].add(Asset("files"), extra={"told": told})

        write(told)


tells()
PYTHON
airflow db migrate > "$directory/migrate.log" 2>&1 || { cat "$directory/migrate.log"; exit 2; }
setsid airflow standalone > "$directory/standalone.log" 2>&1 &
server=-$!
state() {
  python -c 'import sqlite3, sys; found = sqlite3.connect(sys.argv[1]).execute("select state from task_instance where task_id = ?", sys.argv[2:]).fetchone(); print(found and found[0])' "$AIRFLOW_HOME/airflow.db" "$1"
}
answers() { python -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1])' "http://127.0.0.1:$port/api/v2/monitor/health" 2>/dev/null; }
for _ in $(seq 90); do answers && break || sleep 1; done
answers || { cat "$directory/standalone.log"; exit 2; }
airflow dags reserialize > "$directory/dags.log" 2>&1
airflow dags unpause tells >> "$directory/dags.log" 2>&1
airflow dags trigger tells >> "$directory/dags.log" 2>&1 || { cat "$directory/dags.log"; exit 2; }
for _ in $(seq 120); do
  sleep 1
  case "$(state a_number) $(state a_list)" in "success success" | "success failed") break ;; esac
done
echo "event with a number: $(state a_number); event with a list: $(state a_list); the API server says: $(grep -ao "TypeError.*list" "$directory/standalone.log" | sed 's/\x1b\[[0-9;]*m//g' | sort -u | head -1)"
[ "$(state a_number)" = success ] && [ "$(state a_list)" = failed ]
