"""As much of Kubernetes as executors need, on 127.0.0.1: an API server that keeps pods, and runs each of them as a process.

The process is what the entrypoint of Apache's image starts, with the environment that Spark asked for. Nothing else of a cluster is there:
no images, rights, quotas, networks or limits.
"""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ferry.sandbox.jars import java
from ferry.spark.submit import spark_home

LOOPBACK = "127.0.0.1"
BACKEND = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
Document = dict[str, Any]


class Kubernetes:
    """`pods`: what was asked for, by name; `processes`: what runs them. `master`: for Spark."""

    def __init__(self, directory: Path, port: int) -> None:
        self.master = f"k8s://http://{LOOPBACK}:{port}"
        self.pods: dict[str, Document] = {}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._directory, self._lock = directory, threading.Lock()

    def answer(self, method: str, path: str, body: Document) -> tuple[int, Document]:
        """Of the API server: status and document."""
        # /api/v1/namespaces/NAMESPACE/KIND[/NAME]
        namespace, kind, name = ([*urlsplit(path).path.split("/")[4:], "", "", ""])[:3]
        with self._lock:
            if method == "POST":
                body["metadata"] |= {"namespace": namespace, "uid": f"uid-{len(self.pods)}", "creationTimestamp": "2026-01-01T00:00:00Z"}
                if body.get("kind") == "Pod":
                    self._run(body)
                return 201, body
            if method == "DELETE":
                for pod in [name] if name in self.pods else list(self.pods):
                    self.processes[pod].kill()
                return 200, {"kind": "Status", "apiVersion": "v1", "status": "Success"}
            if name in self.pods:
                return 200, self._seen(name)
            items = [self._seen(pod) for pod in self.pods] if kind == "pods" else []
            return 200, {"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items}

    def close(self) -> None:
        """End all pods."""
        for process in self.processes.values():
            process.kill()
            process.wait()

    def _run(self, pod: Document) -> None:
        name = pod["metadata"]["name"]
        asked = environment_of(pod)
        options = [value for key, value in asked.items() if key.startswith("SPARK_JAVA_OPT_")]
        arguments = {
            "--driver-url": asked["SPARK_DRIVER_URL"],
            "--executor-id": asked["SPARK_EXECUTOR_ID"],
            "--cores": asked["SPARK_EXECUTOR_CORES"],
            "--app-id": asked["SPARK_APPLICATION_ID"],
            "--hostname": LOOPBACK,
            "--resourceProfileId": asked["SPARK_RESOURCE_PROFILE_ID"],
            "--podName": name,
        }
        command = [java(), *options, f"-Xmx{asked['SPARK_EXECUTOR_MEMORY']}", "-cp", f"{spark_home() / 'jars'}/*", BACKEND]
        place = self._directory / name
        place.mkdir()
        image = {"SPARK_HOME": str(spark_home()), "PATH": "/usr/bin:/bin", "SPARK_LOCAL_IP": LOOPBACK}
        with (place / "log").open("wb") as log:
            self.processes[name] = subprocess.Popen(
                [*command, *(word for pair in arguments.items() for word in pair)],
                env={**image, **asked, "SPARK_LOCAL_DIRS": str(place)},
                cwd=place,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.pods[name] = pod

    def _seen(self, name: str) -> Document:
        code = self.processes[name].poll()
        state: Document = {"running": {"startedAt": "2026-01-01T00:00:00Z"}} if code is None else {"terminated": {"exitCode": abs(code)}}
        phase = "Running" if code is None else "Failed" if code else "Succeeded"
        container = {"name": self.pods[name]["spec"]["containers"][0]["name"], "ready": code is None, "state": state}
        return {**self.pods[name], "status": {"phase": phase, "podIP": LOOPBACK, "containerStatuses": [container]}}


def environment_of(pod: Mapping[str, Any]) -> dict[str, str]:
    """What Spark wants in the container's environment; without what the cluster itself would fill in."""
    return {entry["name"]: entry["value"] for entry in pod["spec"]["containers"][0]["env"] if "value" in entry}


@contextmanager
def kubernetes(directory: Path) -> Iterator[Kubernetes]:
    """It runs inside; afterwards no pod does."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            status, document = cluster.answer(self.command, self.path, json.loads(self.rfile.read(length) or "{}"))
            content = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815 - names of the library

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer((LOOPBACK, 0), Handler) as server:
        cluster = Kubernetes(directory, server.server_port)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield cluster
        finally:
            cluster.close()
            server.shutdown()
            thread.join()
