"""Ends a process of Ferry with its true exit code, even if threads still run.

When an interpreter ends normally, it destroys its state while other threads may still run: threads of librdkafka, which call back into
Python, and daemon threads that wait inside a client for a cluster that does not answer. The exception that ended a command also keeps
clients alive, because its traceback holds the frames that made them. Such a process sometimes ends by SIGSEGV or SIGABRT instead of with
its exit code. So every process of Ferry that may have a Kafka client ends here: it calls the functions of `atexit` (for example of
logging), flushes the output, and then ends at once by `os._exit`.
"""

import atexit
import io
import logging
import os
import secrets
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeVar

from ferry.errors import ExitCode

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

T = TypeVar("T")

INTERRUPTED = 130  # the exit code that a shell reports for a command that Ctrl-C ended


def run_and_end(main: Callable[[], int | None], name: str = "") -> NoReturn:
    """Call `main` and end the process with the code that it returns or exits with; 1 after any other exception, which is shown.

    `name`: stands before each warning of a library.
    """
    _replace_closed_streams()
    _drop_unwritable_messages()
    show_warnings(name)
    try:
        code = main() or ExitCode.DONE
    except SystemExit as leaving:
        code = _code_of(leaving)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BaseException as problem:  # noqa: BLE001 - what the interpreter itself would do with it
        sys.excepthook(type(problem), problem, problem.__traceback__)
        code = ExitCode.OTHER
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # nothing is left to restore: a second Ctrl-C may end a flush that hangs
    atexit._run_exitfuncs()  # noqa: SLF001 - there is no public name for what the interpreter calls at its end
    if not _flushed() and code == ExitCode.DONE:
        code = ExitCode.OTHER
    os._exit(code)


def show_warnings(name: str = "") -> None:
    """Show warnings of libraries on stderr, but none of Kafka's client: its reconnects are normal, and Ferry reports how they end."""
    logging.basicConfig(level=logging.WARNING, format=f"{name}%(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    logging.getLogger("kafka").setLevel(logging.CRITICAL)


_pending: list[int] = []  # signals that will raise KeyboardInterrupt when nobody holds them any more
# Signals wait while something is in the first list; not while something is in the second one.
_held: list[None] = []
_waiting: list[None] = []


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """Inside, SIGTERM and a closed terminal (SIGHUP) raise KeyboardInterrupt, as Ctrl-C does, so that `finally` clauses run.

    An ignored signal, as after nohup, stays ignored.
    """

    def interrupt(number: int, _: object) -> None:
        if not _held or _waiting or _pending:  # a second one waits for nothing
            raise KeyboardInterrupt
        _pending.append(number)

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    heard = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    previous = {number: signal.signal(number, interrupt) for number in heard}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        _pending.clear()
        _waiting.clear()


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Inside, a signal of `interrupted_by_signals` waits for the end of the block, or for `interruptible`; a second one does not.

    It is for steps that must not end halfway, and for event loops: a loop keeps an exception of a task as the result of that task, and
    perhaps nobody reads the result. Such signals interrupt the main thread: in other threads there is nothing to hold.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _held.append(None)
    try:
        yield
    finally:
        _held.pop()
        _raise_pending()


def interruptible(wait: Callable[..., T], *arguments: object) -> T:
    """The result of `wait`, which a signal may interrupt although it is held."""
    if not _held or threading.current_thread() is not threading.main_thread():
        return wait(*arguments)
    _waiting.append(None)
    try:
        _raise_pending()
        return wait(*arguments)
    finally:
        _waiting.pop()


def _raise_pending() -> None:
    if _pending and (_waiting or not _held):
        _pending.clear()
        raise KeyboardInterrupt


@contextmanager
def temporary_directory(prefix: str) -> Iterator[Path]:
    """A new directory that only its user may read, until the end of the block. A signal that ends Ferry does not leave it behind.

    Python's TemporaryDirectory may leave it behind: if a signal comes while it makes or removes the directory.
    """
    with interrupts_held():
        parent = tempfile.gettempdir()  # it writes a file, to see whether it can
    directory = Path(parent, f"{prefix}{secrets.token_hex(8)}")
    remove = partial(shutil.rmtree, directory, ignore_errors=True)
    atexit.register(remove)  # for a signal that comes when the block has ended, but the `finally` below has not begun
    try:
        directory.mkdir(0o700)
        yield directory
    finally:
        with interrupts_held():
            remove()
            atexit.unregister(remove)


def _replace_closed_streams() -> None:
    """Discard output to a stream that the caller closed (`2>&-`): otherwise it would go to stdout or into a connection.

    If stderr is None, `print` writes to stdout. And the first connection would get the free descriptor, to which libraries write. Files get
    the lowest free descriptor: if stdin is closed too, it must be replaced first.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            nothing = Path(os.devnull).open(mode, encoding="utf-8", errors="backslashreplace")  # noqa: SIM115 - it stays open to the end
            setattr(sys, name, nothing)
            setattr(sys, f"__{name}__", nothing)  # otherwise code that replaces the stream would close it


class _Messages(io.FileIO):
    """Drops text that cannot be written because the disk is full or the reader has left."""

    def write(self, data: "ReadableBuffer") -> int:
        """How many bytes were written or dropped."""
        written: int | None = None  # as of FileIO where a pipe that does not block is full
        with suppress(OSError):
            written = super().write(data)
        return memoryview(data).nbytes if written is None else written


def _drop_unwritable_messages() -> None:
    """From now on no write to stderr raises, not even a library's: messages that nobody can see must not change the exit code."""
    messages = io.BufferedWriter(_Messages(sys.stderr.fileno(), "wb", closefd=False))
    sys.stderr = io.TextIOWrapper(messages, encoding=sys.stderr.encoding, errors=sys.stderr.errors, line_buffering=True)


def _code_of(leaving: SystemExit) -> int:
    """The exit code as the interpreter reads it: a text is printed and means 1."""
    if leaving.code is None or isinstance(leaving.code, int):
        return int(leaving.code or ExitCode.DONE)
    with suppress(ValueError):  # the stream was closed
        print(leaving.code, file=sys.stderr)  # noqa: T201 - see above
    return ExitCode.OTHER


def _flushed() -> bool:
    """Whether all of stdout reached its reader. If the reader left early, as `head` does, Ferry prints no message."""
    with suppress(OSError, ValueError):  # it was replaced
        sys.stderr.flush()
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return False
    except (OSError, ValueError) as problem:  # the disk is full; the stream was closed
        with suppress(OSError, ValueError):
            os.write(sys.stderr.fileno(), f"ferry: the output could not be written: {problem}\n".encode())
        return False
    return True
