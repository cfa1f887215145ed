"""A real Prometheus on 127.0.0.1, and the page that it scrapes: what a collector of OpenTelemetry shows of Ferry's metrics."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from tests.airflow.collector import Points
from tests.waiting import NEVER_SECONDS, until

from ferry.cache import cache_directory
from ferry.sandbox.ports import free_ports

# Between two scrapes, and between two evaluations of the rules.
INTERVAL = "500ms"


def program(name: str) -> str:
    """The path of `prometheus` or `promtool`: where setup/prometheus.sh looks for it."""
    own = os.environ.get("FERRY_PROMETHEUS")
    found = Path(own, name) if own else Path(shutil.which(name) or cache_directory() / "prometheus" / name)
    if not os.access(found, os.X_OK):
        pytest.skip(f"there is no {name}: run setup/prometheus.sh")
    return str(found)


def exposition(found: Mapping[str, Points], prefix: str) -> str:
    """Metrics as a collector shows them to Prometheus: in names, all but letters and digits becomes `_`; no unit, so no suffix."""
    lines = []
    for name, points in found.items():
        for tags, value in points:
            labels = ",".join(f'{re.sub(r"[^a-zA-Z0-9_]", "_", tag)}="{text}"' for tag, text in tags.items())
            lines.append(f"{re.sub('[^a-zA-Z0-9_:]', '_', prefix + name)}{{{labels}}} {value!r}\n")
    return "".join(lines)


class Page:
    """An HTTP page with metrics; `text` may change."""

    def __init__(self, port: int) -> None:
        self.address = f"127.0.0.1:{port}"
        self.text = ""


@contextmanager
def page_of_metrics() -> Iterator[Page]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = page.text.encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        page = Page(server.server_port)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield page
        finally:
            server.shutdown()
            thread.join()


class Prometheus:
    """What it says over its API."""

    def __init__(self, port: int, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process, self._log = process, log
        self._client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=NEVER_SECONDS, trust_env=False)

    def ready(self) -> bool:
        assert self._process.poll() is None, self._log.read_text()
        try:
            return self._client.get("/-/ready").is_success
        except httpx.TransportError:
            return False

    def get(self, path: str, **parameters: str) -> dict[str, Any]:
        answer = self._client.get(f"/api/v1/{path}", params=parameters).raise_for_status().json()
        found: dict[str, Any] = answer["data"]
        return found

    def firing(self) -> list[dict[str, Any]]:
        """The alerts that fire, with labels and annotations."""
        return [alert for alert in self.get("alerts")["alerts"] if alert["state"] == "firing"]

    def scraped_since(self, since: datetime) -> bool:
        """Whether it has read the page."""
        targets = self.get("targets")["activeTargets"]
        return any(target["health"] == "up" and _moment(target["lastScrape"]) > since for target in targets)

    def evaluated_since(self, since: datetime) -> bool:
        """Whether an evaluation of all rules has begun since then, and ended."""
        return all(_moment(group["lastEvaluation"]) > since for group in self.get("rules")["groups"])

    def close(self) -> None:
        self._client.close()


def _moment(text: str) -> datetime:
    """A time of Go: it has nanoseconds."""
    return datetime.fromisoformat(re.sub(r"(\.\d{6})\d*", r"\1", text))


@contextmanager
def prometheus(directory: Path, rules: Mapping[str, Any], target: str) -> Iterator[Prometheus]:
    """One that scrapes `target` (host:port) and evaluates these rules, while the block runs."""
    (directory / "rules.yml").write_text(yaml.safe_dump(dict(rules), sort_keys=False))
    config = {
        "global": {"scrape_interval": INTERVAL, "scrape_timeout": INTERVAL, "evaluation_interval": INTERVAL},
        "rule_files": ["rules.yml"],
        "scrape_configs": [{"job_name": "collector", "static_configs": [{"targets": [target]}]}],
    }
    (directory / "prometheus.yml").write_text(yaml.safe_dump(config))
    (port,), log = free_ports(1), directory / "prometheus.log"
    command = [program("prometheus"), "--config.file=prometheus.yml", "--storage.tsdb.path=data", f"--web.listen-address=127.0.0.1:{port}"]
    with log.open("wb") as output, subprocess.Popen(command, cwd=directory, stdout=output, stderr=output) as process:
        running = Prometheus(port, process, log)
        try:
            until(running.ready, log.read_text)
            yield running
        finally:
            running.close()
            process.terminate()
