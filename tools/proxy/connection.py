"""One client's connection to one broker: two directions, frame by frame, each with a queue of what is under way.

A frame is a length of four bytes and so much more. The reader of a direction decides what becomes of a frame and when it is due; the writer
waits for that, for the direction to be open, and for the bandwidth. What a client has sent reaches the broker even if the client goes; an
error of the broker's side resets the client's.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import struct
from asyncio import Event, Queue, StreamReader, StreamWriter
from collections import Counter
from dataclasses import dataclass, field

from tools.proxy.playing import Change, play
from tools.proxy.rules import Action, Link, Request, Rule, Way
from tools.proxy.service import Service

LENGTH = 4
# Frames under way in one direction: more than any client has in flight.
UNDER_WAY = 64
# A limited link sends so much at a time.
CHUNK = 16_384
Side = tuple[StreamReader, StreamWriter]


@dataclass
class Exchange:
    """A request that came over `connection`, and when (seconds of the loop). `answered`: when the broker's answer came; None: not yet."""

    connection: Connection
    api: int
    asked: float
    answered: float | None = None


@dataclass
class Conditions:
    """What holds for all connections of a proxy now; read and written by its loop only.

    exchanges: None while nobody wants to know. service: None where the broker is not to be another than it is.
    """

    dice: random.Random
    link: dict[Way, Link] = field(default_factory=lambda: dict.fromkeys(Way, Link()))
    open: dict[Way, Event] = field(default_factory=lambda: {way: Event() for way in Way})
    dropped: set[Way] = field(default_factory=set)
    rules: list[Rule] = field(default_factory=list)
    seen: Counter[int] = field(default_factory=Counter)
    exchanges: list[Exchange] | None = None
    service: Service | None = None


class Connection:
    """Forwards until one side ends or `cut`."""

    def __init__(self, conditions: Conditions, client: Side, broker: Side) -> None:
        self._conditions = conditions
        self._in: dict[Way, StreamReader] = {Way.REQUESTS: client[0], Way.ANSWERS: broker[0]}
        self._out: dict[Way, StreamWriter] = {Way.REQUESTS: broker[1], Way.ANSWERS: client[1]}
        self._under_way: dict[Way, Queue[tuple[float, bytes] | None]] = {way: Queue(UNDER_WAY) for way in Way}
        self._ended: set[Way] = set()
        self._awaited: dict[int, Rule] = {}
        self._unanswered: dict[int, Exchange] = {}
        self._changes: dict[int, Change] = {}
        self.incomplete = False

    async def run(self) -> None:
        """Until both directions are at their end."""
        try:
            await asyncio.gather(*(action(way) for way in Way for action in (self._read, self._write)))
        finally:
            self.cut()
            for writer in self._out.values():
                with contextlib.suppress(ConnectionError):
                    await writer.wait_closed()

    def cut(self) -> None:
        """Reset both sides (RST): what is under way is lost."""
        for writer in self._out.values():
            held = writer.get_extra_info("socket")
            if not writer.transport.is_closing() and held is not None:
                held.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                writer.transport.abort()

    def end(self, way: Way) -> None:
        """Half-close: no more in this direction, and its receiver is told (FIN); the other goes on."""
        if way not in self._ended:
            self._ended.add(way)
            with contextlib.suppress(OSError):
                self._out[way].write_eof()

    async def _read(self, way: Way) -> None:
        reader, queue = self._in[way], self._under_way[way]
        try:
            while True:
                head = await reader.readexactly(LENGTH)
                body = await reader.readexactly(int.from_bytes(head))
                lag = self._requested(body) if way is Way.REQUESTS else self._answered(body)
                frame = None if lag is None else self._played(way, body)
                if lag is not None and frame is not None:
                    lag += self._conditions.link[way].lag(self._conditions.dice)
                    await queue.put((asyncio.get_running_loop().time() + lag, len(frame).to_bytes(LENGTH) + frame))
        except asyncio.IncompleteReadError:
            await queue.put(None)
        except ConnectionError:
            if way is Way.ANSWERS:
                self.cut()
            await queue.put(None)

    async def _write(self, way: Way) -> None:
        queue, loop = self._under_way[way], asyncio.get_running_loop()
        while (frame := await queue.get()) is not None:
            due, data = frame
            await asyncio.sleep(max(0.0, due - loop.time()))
            await self._conditions.open[way].wait()
            if way in self._conditions.dropped:
                self.incomplete = True
            elif way not in self._ended:
                await self._send(way, data)
        self.end(way)

    async def _send(self, way: Way, data: bytes) -> None:
        writer = self._out[way]
        limit = self._conditions.link[way].bytes_per_second
        try:
            for start in range(0, len(data), CHUNK if limit else len(data)):
                writer.write(data[start : start + CHUNK] if limit else data)
                await writer.drain()
                await asyncio.sleep(CHUNK / limit if limit else 0)
        except ConnectionError:
            self._ended.add(way)  # its receiver has gone; whatever else is under way goes nowhere
            if way is Way.REQUESTS:
                self.cut()

    def _played(self, way: Way, body: bytes) -> bytes | None:
        """The frame as the service would have it; None when it has closed the connection."""
        if way is Way.ANSWERS:
            change = self._changes.pop(int.from_bytes(body[:4], signed=True), None)
            return body if change is None else change(body)
        if self._conditions.service is None:
            return body
        played = play(self._conditions.service, body)
        if played is None:
            self.cut()
            return None
        if played.change is not None:
            self._changes[Request.of(body).correlation] = played.change
        return played.forward

    def _requested(self, body: bytes) -> float | None:
        """Seconds that a request is held up by a rule; None when it is not forwarded."""
        request = Request.of(body)
        self._conditions.seen[request.api] += 1
        if self._conditions.exchanges is not None:
            exchange = self._unanswered[request.correlation] = Exchange(self, request.api, asyncio.get_running_loop().time())
            self._conditions.exchanges.append(exchange)
        rule = next((rule for rule in self._conditions.rules if rule.meets(request, self._conditions.dice)), None)
        if rule is None:
            return 0.0
        if rule.action in {Action.SWALLOW_REQUEST, Action.CUT_BEFORE}:
            if rule.action is Action.CUT_BEFORE:
                self.cut()
            return None
        if rule.action is Action.DELAY_REQUEST:
            return rule.seconds
        self._awaited[request.correlation] = rule
        return 0.0

    def _answered(self, body: bytes) -> float | None:
        """The same for an answer, by the rule that its request met."""
        correlation = int.from_bytes(body[:4], signed=True)
        if exchange := self._unanswered.pop(correlation, None):
            exchange.answered = asyncio.get_running_loop().time()
        rule = self._awaited.pop(correlation, None)
        if rule is None:
            return 0.0
        if rule.action is Action.DELAY_ANSWER:
            return rule.seconds
        if rule.action is Action.CUT_AFTER:
            self.cut()
        return None
