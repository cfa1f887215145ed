"""The Ferry page of a config file on 127.0.0.1, as Airflow's API server serves it, for anybody: `python -m tests.page.open_server PORT`.

The config file is $FERRY_CONFIG. Airflow's login and its list of runs are left out: they are Airflow's own, and have their own tests.
"""

from __future__ import annotations

import sys

import uvicorn
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from airflow.api_fastapi.core_api.security import get_user
from fastapi import FastAPI

import ferry.airflow.page as product
from ferry.page.documents import RIGHTS


def main() -> None:
    """Serve until killed."""
    product.may_read = product.may_read_runs = product.may_read_errors = product.may_trigger = lambda *_: True  # type: ignore[assignment]
    product.rights = lambda *_: dict.fromkeys(RIGHTS, True)
    product.ferry_dags = dict
    product.dag_runs = lambda *_: []  # type: ignore[assignment]
    app = product.page_app()
    app.dependency_overrides[get_user] = lambda: SimpleAuthManagerUser(username="admin", role="admin")
    whole = FastAPI()
    whole.mount("/ferry", app)
    uvicorn.run(whole, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")


if __name__ == "__main__":
    main()
