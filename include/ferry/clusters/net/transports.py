"""Sockets of the data path: kafka-python's transports with large reads, and with writes that do not wait for the event loop.

kafka-python reads 4 KiB at a time and asks the selector before every write, although most writes would succeed at once.
"""

import os
import re
import socket
import ssl
import struct
from collections.abc import Iterable
from typing import Any

import kafka.errors as kafka_errors
from kafka.net.inet import KafkaNetSocket
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport

from ferry.clusters.net.frames import FrameParser, Meter
from ferry.wire.varint import Buffer

READ_BYTES = 1 << 20
# Buffers in one call; systems allow 1,024.
BUFFERS_A_WRITE = 64
_ERROR_NUMBER = re.compile(r"\b(\d+) E[A-Z]+\b")
# Where the kernel's struct tcp_info (linux/tcp.h) has the shortest round trip, in microseconds.
ROUND_TRIP_AT, UNKNOWN_ROUND_TRIP = 148, 0xFFFFFFFF
_BLOCKED = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


async def connected_socket(
    net: Any, host: str, port: int, options: Iterable[tuple[int, int, int]], *, proxy_url: str | None, timeout_at: float | None
) -> socket.socket:
    """A socket that is connected to one of the addresses of `host`; KafkaConnectionError. `timeout_at`: of clock.monotonic().

    Like kafka-python's `create_connection`, but it closes the sockets of failed attempts at once.
    """
    factory = KafkaNetSocket(proxy_url)
    failure: Exception = kafka_errors.KafkaConnectionError("DNS Resolution failure")
    for family, kind, protocol, _, address in factory.dns_lookup(host, port):
        attempt = factory.socket(family, kind, protocol)
        try:
            attempt.setblocking(False)
            for option in options:
                attempt.setsockopt(*option)
            found: socket.socket = await factory.sock_connect(net, attempt, address, timeout_at=timeout_at)
        except BaseException as problem:
            attempt.close()
            if isinstance(problem, kafka_errors.KafkaTimeoutError):
                raise kafka_errors.KafkaConnectionError("Connection timed out") from problem
            if not isinstance(problem, OSError | kafka_errors.KafkaConnectionError):
                raise
            failure = kafka_errors.KafkaConnectionError(_in_words(problem))
        else:
            return found
    raise failure


def _in_words(problem: BaseException) -> str:
    """kafka-python says `111 ECONNREFUSED`, the system "Connection refused"."""
    number = _ERROR_NUMBER.search(str(problem))
    return os.strerror(int(number[1])) if number else str(problem)


def shortest_round_trip(transport: KafkaTCPTransport) -> float:
    """Seconds, as the kernel measured it (tcp_info.tcpi_min_rtt, Linux); 0: not known."""
    try:
        told = transport._sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, ROUND_TRIP_AT + 4)  # noqa: SLF001 - it has no accessor
        (microseconds,) = struct.unpack_from("=I", told, ROUND_TRIP_AT)
    except (OSError, AttributeError, struct.error):
        return 0.0
    return 0.0 if microseconds == UNKNOWN_ROUND_TRIP else float(microseconds) / 1e6


def _parser(transport: "PlainTransport | EncryptedTransport") -> FrameParser:
    """The connection's parser. The first call replaces kafka-python's parser with ours."""
    connection = transport.get_protocol()
    if not isinstance(connection.parser, FrameParser):
        connection.parser = FrameParser(connection.parser, transport.meter)
        # The connection and what logs it in refer to each other: only a full garbage collection would free the frame.
        connection.close_future.add_both(lambda _, parser=connection.parser: parser.abandon())
    parser: FrameParser = connection.parser
    return parser


class PlainTransport(KafkaTCPTransport):  # type: ignore[misc]
    """Reads directly into the current frame. Writes what the socket accepts at once, and leaves the rest to the event loop."""

    meter: Meter | None = None

    def write(self, data: Buffer | list[Buffer]) -> None:
        """As of an asyncio transport, also for several buffers."""
        if self._closed or not self._write:
            raise RuntimeError("Transport closed for writes")
        self._write_buffer.extend(memoryview(buffer) for buffer in (data if isinstance(data, list) else (data,)))
        if self._writing:
            return
        self._send_now()
        if self._write_buffer:
            self._writing: bool = True
            self._write_task = self._net.call_soon(self._write_to_sock)

    def _send_now(self) -> None:
        """A failure is not reported here: the event loop's next attempt meets it again and reports it."""
        try:
            while self._write_buffer:
                wanted = [self._write_buffer[index] for index in range(min(BUFFERS_A_WRITE, len(self._write_buffer)))]
                sent = self._sock.sendmsg(wanted)
                while self._write_buffer and sent >= len(self._write_buffer[0]):
                    sent -= len(self._write_buffer.popleft())
                if sent:
                    self._write_buffer[0] = self._write_buffer[0][sent:]
        except OSError:
            return

    def _sock_recv(self) -> tuple[bytes, Exception | None]:
        parser = _parser(self)
        room = parser.room()
        try:
            if room is None:
                data = self._sock.recv(READ_BYTES)
                return (data, None) if data else (b"", kafka_errors.KafkaConnectionError("socket disconnected"))
            count = self._sock.recv_into(room)
        except (BlockingIOError, InterruptedError):
            return b"", None
        except OSError as problem:
            return b"", kafka_errors.KafkaConnectionError(problem)
        parser.received(count)
        return b"", None if count else kafka_errors.KafkaConnectionError("socket disconnected")


class EncryptedTransport(KafkaSSLTransport):  # type: ignore[misc]
    """Reads until TLS has nothing buffered, because buffered data would not wake the selector."""

    meter: Meter | None = None

    async def handshake_until(self, timeout_at: float | None) -> None:
        """The handshake; KafkaTimeoutError at `timeout_at` (monotonic), so that a peer that does not answer does not block a run."""
        while True:
            try:
                self._sock.do_handshake()
            except ssl.SSLWantReadError:
                await self._net.wait_read(self._sock, timeout_at)
            except ssl.SSLWantWriteError:
                await self._net.wait_write(self._sock, timeout_at)
            else:
                return

    def write(self, data: Buffer | list[Buffer]) -> None:
        """As of an asyncio transport, also for several buffers."""
        self.writelines([memoryview(buffer) for buffer in (data if isinstance(data, list) else (data,))])

    def _sock_recv(self) -> tuple[bytes, Exception | None]:
        _parser(self)
        received = []
        lost: Exception | None = None
        try:
            while data := self._sock.recv(READ_BYTES):
                received.append(data)
            lost = kafka_errors.KafkaConnectionError("socket disconnected")
        except _BLOCKED:
            pass
        except OSError as problem:
            lost = kafka_errors.KafkaConnectionError(problem)
            lost.__cause__ = problem  # it may say that the broker does not accept the certificate
        # With an error, like a refused login, kafka-python drops the data. So the data comes first; the next read meets the error.
        return (b"".join(received), None) if received else (b"", lost)
