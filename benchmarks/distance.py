"""`python -m benchmarks.distance`: Ferry and MirrorMaker 2 over a line with a long round trip, the source far away, then the target.

The far broker runs in a network namespace behind a link of TUN devices (tun_link.py). Prints what part of the line each copier fills with
its defaults. Then, for `plan`, `status`, and runs with one heartbeat and with nothing to copy: how long each takes, and how many requests
to the far broker wait for each other. A proxy on the near side counts them. Needs root and iproute2.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tools.kafka import SandboxCluster
from tools.kafka.properties_file import write_properties
from tools.proxy.broker_proxy import BrokerProxy
from tools.proxy.round_trips import serial_requests

from benchmarks import ferry_side, mm2
from benchmarks.flow import Clusters, Flow
from benchmarks.measure import measure
from benchmarks.run import BROKER_JAVA, WORK
from benchmarks.shapes import Shape
from benchmarks.sources import source_topics
from benchmarks.tun_link import THERE, Line, Link, in_namespace, tun_link
from ferry.sandbox.ports import free_ports

SHAPE = Shape("distance", "1 KB, uncompressed, 110-record batches", 1_000, "none", 110, 120.0, 1, 16)
RUN = ("run", "--master", "inline")
# With a heartbeat, a run has one record to copy.
COMMANDS = (
    ("ferry plan", ("plan",), "true"),
    ("ferry status", ("status",), "true"),
    ("a run with one heartbeat", RUN, "true"),
    ("a run with nothing to copy", RUN, "false"),
)
ROUNDS = 3
FAR, COUNTED = 19_092, 19_093  # ports of the far broker: for copies, and for what comes by the proxy


def far_listeners(front: int) -> dict[str, str]:
    """`front`: the proxy's port."""
    return {
        "listeners": f"PLAINTEXT://127.0.0.1:{{port}},FAR://{THERE}:{FAR},COUNTED://{THERE}:{COUNTED},CONTROLLER://127.0.0.1:{{controller_port}}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{{port}},FAR://{THERE}:{FAR},COUNTED://127.0.0.1:{front}",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,FAR:PLAINTEXT,COUNTED:PLAINTEXT,CONTROLLER:PLAINTEXT",
    }


@dataclass(frozen=True)
class Side:
    """Which side is far away, over what, and the proxy before it."""

    far: str
    link: Link
    line: Line
    proxy: BrokerProxy


def main(arguments: list[str] | None = None) -> int:
    """0 when every copy arrived."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.distance", description=__doc__)
    parser.add_argument("--far", choices=("source", "target"), action="append", help="only this side; may be repeated")
    parser.add_argument("--milliseconds", type=float, default=100.0, help="round trip (default 100)")
    parser.add_argument("--megabits", type=float, default=100.0, help="the line (default 100 Mbit/s)")
    parser.add_argument("--loss", type=float, default=0.0, help="chance of a lost packet (default 0; 0.01 is 1 %%)")
    parser.add_argument("--without-mm2", action="store_true")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--front", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.serve:
        return _serve(options.serve, options.front)
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    if os.geteuid() != 0:
        print("network namespaces need root", file=sys.stderr)
        return 2
    line = Line(options.milliseconds / 2_000, options.megabits * 125_000, options.loss)
    print(f"{options.milliseconds:g} ms, {options.megabits:g} Mbit/s, {options.loss:.1%} loss; load {os.getloadavg()[0]:.1f}", flush=True)
    for far in options.far or ("source", "target"):
        directory = WORK / f"distance-{far}-{time.time_ns()}"
        (front,) = free_ports(1)
        with (
            tun_link() as link,
            _clusters(directory, far, front) as clusters,
            BrokerProxy(COUNTED, front, host=THERE) as proxy,
            source_topics(clusters, SHAPE) as names,
        ):
            _measure(Side(far, link, line, proxy), clusters, names, directory, mirror_maker=not options.without_mm2)
    return 0


@contextmanager
def _clusters(directory: Path, far: str, front: int) -> Iterator[Clusters]:
    near_name = "target" if far == "source" else "source"
    directory.mkdir(parents=True)
    served = subprocess.Popen(
        in_namespace([sys.executable, "-m", "benchmarks.distance", "--serve", str(directory / far), "--front", str(front)]),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        with SandboxCluster.start(directory / near_name, near_name, java_options=BROKER_JAVA) as near:
            if served.stdout is None or not served.stdout.readline():
                raise SystemExit("the far broker did not start")
            places = {near_name: near.bootstrap, far: f"{THERE}:{FAR}"}
            yield Clusters(places["source"], places["target"])
    finally:
        served.communicate()


def _serve(directory: Path, front: int) -> int:
    """The far broker; until standard input ends."""
    with SandboxCluster.start(directory, directory.name, properties=far_listeners(front), java_options=BROKER_JAVA):
        print("ready", flush=True)
        sys.stdin.read()
    return 0


def _measure(side: Side, clusters: Clusters, names: tuple[str, ...], directory: Path, *, mirror_maker: bool) -> None:
    flow = Flow.fresh(clusters, names, SHAPE.partitions)
    jobs = [("Ferry", ferry_side.job(flow, directory))]
    jobs += [("MirrorMaker 2", mm2.job(flow, SHAPE.codec, directory, tuned=False))] if mirror_maker else []
    for copier, job in jobs:
        side.link.line(side.line)
        sample = measure(job, SHAPE.records)
        rate = side.link.carried(away=side.far == "target")
        side.link.line(Line())
        part = rate / (side.line.bytes_per_second or rate)
        print(f"{side.far} far, {copier}: {rate / 1e6:.1f} MB/s, {part:.0%} of the line; CPU {sample.cpu_seconds:.1f} s", flush=True)
        if copier == "Ferry":
            _commands(side, flow, directory)
            flow.remove()
    flow.remove()


def _commands(side: Side, flow: Flow, directory: Path) -> None:
    config = directory / f"{flow.mark}-again.properties"

    def ferry(command: str, *more: str) -> None:
        subprocess.run([str(ferry_side.HERE), command, str(config), "--flow", flow.name, *more], check=True, capture_output=True)

    alias = flow.source_alias if side.far == "source" else flow.target_alias
    settings = ferry_side.properties(flow) | {f"{alias}.bootstrap.servers": side.proxy.bootstrap}
    write_properties(settings, config)
    ferry(*RUN)
    side.link.line(side.line)
    for name, command, heartbeats in COMMANDS:
        write_properties(settings | {"emit.heartbeats.enabled": heartbeats}, config)
        seconds, serial = [], []
        for _ in range(ROUNDS):
            with side.proxy.recording() as exchanges:
                began = time.perf_counter()
                ferry(*command)
                seconds.append(time.perf_counter() - began)
            serial.append(serial_requests(exchanges, 0.0))
        print(f"{side.far} far, {name}: {min(seconds):.1f} s, {min(serial)} serial requests", flush=True)
    side.link.line(Line())


if __name__ == "__main__":
    sys.exit(main())
