"""Ferry in Airflow: DAGs, the bodies of their tasks, connections, metrics, the routes of the page.

Knows `alerting`, `config`, `copying`, `doctor`, `ledger`, `monitoring`, `page`, `pipeline`, `policy`, `recovery`, `spark`, `syncs`,
`verify` and `wire`. Also knows Airflow; nothing below does.
Begin with `dags.py`, then `steps.py`. `versions.py` says what differs between releases of Airflow.
"""

import logging

# The client logs every connection that it opens and closes; what fails becomes an error of Ferry's.
logging.getLogger("kafka").setLevel(logging.CRITICAL)
