"""The trigger that starts a flow's DAG when the source has records that are not copied. Airflow's triggerer runs it; it holds no slot."""

import asyncio
import logging
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance
from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from ferry.airflow.flows import FlowReference, flow_for_running
from ferry.errors import FerryError
from ferry.monitoring.arrivals import Arrivals

ACTIVE = ["queued", "running"]

log = logging.getLogger(__name__)


class RecordsArrived(BaseEventTrigger):
    """Looks at the flow every `seconds`, and sends an event when a run of `dag_id` should start. While one is active it sends none.

    It decides by the state of the clusters, not by its own memory, so a triggerer that starts again loses nothing.
    """

    def __init__(self, config: str, flow: str, dag_id: str, seconds: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # of Airflow
        self.config, self.flow, self.dag_id, self.seconds = config, flow, dag_id, seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        settings = {"config": self.config, "flow": self.flow, "dag_id": self.dag_id, "seconds": self.seconds}
        return f"{__name__}.{type(self).__name__}", settings

    async def run(self) -> AsyncIterator[TriggerEvent]:
        arrivals = Arrivals(partial(flow_for_running, FlowReference(Path(self.config), self.flow)))
        thread = ThreadPoolExecutor(1, thread_name_prefix=f"ferry {self.flow}")  # clients block, and belong to one thread
        loop, said = asyncio.get_running_loop(), ""
        try:
            while True:
                try:
                    found, problem = await loop.run_in_executor(thread, arrivals.look), ""
                except FerryError as error:
                    found, problem = {}, error.named
                if problem != said:
                    log.warning("new records of %s: %s", self.flow, problem or "the clusters answer again")
                said = problem
                active = await loop.run_in_executor(thread, self._is_active) if found else False
                if active:
                    arrivals.still_active()
                elif found:
                    arrivals.started(found)
                    yield TriggerEvent({"flow": self.flow, "partitions": len(found)})  # type: ignore[no-untyped-call]  # of Airflow
                await asyncio.sleep(self.seconds)
        finally:
            thread.submit(arrivals.close)
            thread.shutdown(wait=False)

    def _is_active(self) -> bool:
        return RuntimeTaskInstance.get_dr_count(dag_id=self.dag_id, states=ACTIVE) > 0
