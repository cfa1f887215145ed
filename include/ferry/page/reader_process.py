"""The process that reads for the page. It takes one request after the other from stdin, and writes the answers to a pipe.

    python -m ferry.page.reader_process PIPE

Kafka clients run here and not in the api-server, because they could crash it (librdkafka aborts when it finds a bug of its own) or stop it
from answering (they hold Python's lock while they decode). When the api-server ends, stdin is closed; a thread notices that even while a
read hangs, and ends this process. Everything that is printed goes to the api-server's stderr: only answers use the descriptor PIPE.
"""

import contextlib
import logging
import os
import queue
import sys
import threading
from pathlib import Path

from ferry.ending import run_and_end
from ferry.errors import FerryError
from ferry.page.problem import ReadFailed, problem_of
from ferry.page.reads import ReadRequest, answer_frame, carry_out, read_request

log = logging.getLogger(__name__)

# When memory is short, the kernel takes this process before the api-server.
OOM_SCORE = "800"


def answer(request: ReadRequest) -> bytes:
    """The answer to one request. Never raises."""
    try:
        return answer_frame(carry_out(request.name, request.flow, request.argument), None)
    except FerryError as problem:
        return answer_frame(None, problem_of(problem))
    except Exception as problem:  # the process goes on, because the next read may succeed
        log.exception("reading %s of %s", request.name, request.flow.name)
        return answer_frame(None, problem_of(ReadFailed(f"{type(problem).__name__} while reading {request.name} of {request.flow.name}")))


def main() -> None:
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
    run_and_end(main, "ferry page: ")
