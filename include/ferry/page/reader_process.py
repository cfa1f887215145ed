"""The process that reads for the page: one request after the other from its stdin, answers to a pipe of their own.

Kafka clients live here and not in the api-server, which they could crash (librdkafka aborts on what it takes for a bug of its own) or keep
from answering (they hold Python's lock while they decode). The process ends when the api-server does: its stdin is closed then, which a
thread notices even while a read hangs.

    python -m ferry.page.reader_process PIPE

What is printed, by whomever, goes where the api-server's errors go: the descriptor PIPE is for answers alone.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import sys
import threading
from pathlib import Path

from ferry.ending import run_and_end
from ferry.errors import FerryError
from ferry.page.frames import ReadRequest, answer_frame, read_request
from ferry.page.problem import ReadFailed, problem_of
from ferry.page.reads import carry_out

log = logging.getLogger(__name__)

# When memory is short, the kernel takes this process before the api-server.
OOM_SCORE = "800"


def answer(request: ReadRequest) -> bytes:
    """The answer to one request; never raises."""
    try:
        return answer_frame(carry_out(request.name, request.flow, request.argument), None)
    except FerryError as problem:
        return answer_frame(None, problem_of(problem))
    except Exception as problem:  # the process goes on: the next flow's read may be fine
        log.exception("reading %s of %s", request.name, request.flow.name)
        return answer_frame(None, problem_of(ReadFailed(f"{type(problem).__name__} while reading {request.name} of {request.flow.name}")))


def main() -> None:
    """Answer until stdin ends."""
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="ferry page: %(levelname)s %(name)s: %(message)s")
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(OOM_SCORE, encoding="ascii")
    requests: queue.Queue[ReadRequest] = queue.Queue()
    threading.Thread(target=_listen, args=(requests,), daemon=True, name="requests").start()
    with os.fdopen(int(sys.argv[1]), "wb", buffering=0) as out:
        while True:
            left = memoryview(answer(requests.get()))
            while left:
                left = left[out.write(left) or 0 :]


def _listen(requests: queue.Queue[ReadRequest]) -> None:
    stream = os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    while True:
        try:
            request = read_request(stream)
        except Exception:
            log.exception("a request is not readable")
            os._exit(1)
        if request is None:
            os._exit(0)
        requests.put(request)


if __name__ == "__main__":
    run_and_end(main)
