"""A slow link between this machine and a network namespace: two TUN devices, and a process that passes packets on late.

The kernel's TCP runs on both ends, with its own windows, so what a connection carries is what it would carry over such a line. Packets are
of Ethernet's size. Needs root, and iproute2's `ip`.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import random
import select
import struct
import subprocess
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

NAMESPACE, HERE, THERE = "ferry-far", "10.91.7.1", "10.91.7.2"
DEVICE = "ferry-tun"
PACKET_BYTES = 1_500
TUNSETIFF, IFF_TUN, IFF_NO_PI, CLONE_NEWNET = 0x400454CA, 0x0001, 0x1000, 0x40000000
# A router that holds more than this much of the line's seconds drops packets.
QUEUE_SECONDS = 0.2


@dataclass(frozen=True)
class Line:
    """`delay`: seconds each way. `bytes_per_second` None: no limit. `loss`: the chance of each packet to be lost."""

    delay: float = 0.0
    bytes_per_second: float | None = None
    loss: float = 0.0


class Link:
    """The running link. `line` sets what it is like from now on."""

    def __init__(self, control: Connection) -> None:
        self._control = control

    def line(self, line: Line) -> None:
        """Set it, and count anew."""
        self._control.send(line)
        self._control.recv()

    def carried(self, *, away: bool) -> float:
        """Bytes in each second since `line` that went to the far side (`away`) or came from there, while the middle nine tenths passed."""
        self._control.send(away)
        rate: float = self._control.recv()
        return rate


@contextmanager
def tun_link() -> Iterator[Link]:
    """Between HERE, in this namespace, and THERE, in NAMESPACE. All of it is removed at the end."""
    _remove()  # what a run left that was killed
    _ip("netns", "add", NAMESPACE)
    try:
        _ip("tuntap", "add", "dev", DEVICE, "mode", "tun")
        _ip("-n", NAMESPACE, "tuntap", "add", "dev", DEVICE, "mode", "tun")
        for where, address in (((), HERE), (("-n", NAMESPACE), THERE)):
            _ip(*where, "address", "add", f"{address}/24", "dev", DEVICE)
            _ip(*where, "link", "set", DEVICE, "mtu", str(PACKET_BYTES), "up")
        _ip("-n", NAMESPACE, "link", "set", "lo", "up")
        context = get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_forward, args=(theirs,), daemon=True)
        process.start()
        ours.recv()
        try:
            yield Link(ours)
        finally:
            process.terminate()
            process.join()
    finally:
        _remove()


def _remove() -> None:
    _ip("link", "delete", DEVICE, check=False)
    _ip("netns", "delete", NAMESPACE, check=False)


def in_namespace(command: list[str]) -> list[str]:
    """The command line that runs `command` on the far side."""
    return ["ip", "netns", "exec", NAMESPACE, *command]


def _ip(*arguments: str, check: bool = True) -> None:
    subprocess.run(["ip", *arguments], check=check, capture_output=not check)


def _forward(control: Connection) -> None:
    here = _device()
    with Path(f"/run/netns/{NAMESPACE}").open("rb") as namespace:
        if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")
    there = _device()
    control.send("ready")
    ways = {here: _Way(there), there: _Way(here)}
    while True:
        due = [way.queue[0][0] for way in ways.values() if way.queue]
        wait = max(0.0, min(due) - time.monotonic()) if due else None
        for ready in select.select([here, there, control], [], [], wait)[0]:
            if ready is control:
                control.send(_obey(control.recv(), ways[here], ways[there]))
            else:
                ways[ready].take(ready)
        for way in ways.values():
            way.give()


def _obey(said: Line | bool, here: _Way, there: _Way) -> float:
    if isinstance(said, bool):
        return (here if said else there).rate
    for way in (here, there):
        way.line = said
        way.passed.clear()
    return 0.0


class _Way:
    """One direction. `passed`: when packets left, and how many bytes had left then."""

    def __init__(self, out: int) -> None:
        self.line, self.queue = Line(), deque[tuple[float, bytes]]()
        self.passed: list[tuple[float, int]] = []
        self._out, self._free_at = out, 0.0

    @property
    def rate(self) -> float:
        if not self.passed:
            return 0.0
        total = self.passed[-1][1]
        first, last = (next(moment for moment, size in self.passed if size >= total * share) for share in (0.05, 0.95))
        return total * 0.9 / max(last - first, 1e-3)

    def take(self, device: int) -> None:
        """Read the packets that are there."""
        for _ in range(64):
            try:
                packet = os.read(device, 65_536)
            except BlockingIOError:
                return
            now, rate = time.monotonic(), self.line.bytes_per_second
            self._free_at = max(now, self._free_at)
            if random.random() < self.line.loss or self._free_at - now > QUEUE_SECONDS:  # noqa: S311 - no secret
                continue
            self._free_at += len(packet) / rate if rate else 0.0
            self.queue.append((self._free_at + self.line.delay, packet))

    def give(self) -> None:
        """Write the packets that are due."""
        now = time.monotonic()
        while self.queue and self.queue[0][0] <= now:
            try:
                os.write(self._out, self.queue[0][1])
            except BlockingIOError:
                return
            size = len(self.queue.popleft()[1])
            self.passed.append((now, size + (self.passed[-1][1] if self.passed else 0)))


def _device() -> int:
    """The TUN device of the namespace that this process is in."""
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", DEVICE.encode(), IFF_TUN | IFF_NO_PI))
    return device
