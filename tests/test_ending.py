"""Every process that may have a Kafka client ends by its exit code: the interpreter is not taken apart around threads that still run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[1]
BUFFERED = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
# Says how the process ends, and which threads, those of librdkafka included, run then.
WITNESS = """
import os, sys, threading

def name_of(task):
    try:
        return open(f"/proc/self/task/{task}/comm").read().strip()
    except OSError:  # it has ended since it was listed
        return ""

def threads():
    return sorted(map(name_of, os.listdir("/proc/self/task")))

def witnessed(code, ended=os._exit):
    others = [name for name in threads() if name.startswith(("rdk:", "ferry"))] + [t.name for t in threading.enumerate()][1:]
    sys.stderr.write(f"ended at once with {code:d}, beside {others}\\n")
    sys.stderr.flush()
    ended(code)

os._exit = witnessed
"""
# A client that nobody closed, and a thread that waits in it for a cluster that is not there.
STUCK = """
import threading, time
from confluent_kafka.admin import AdminClient
client = AdminClient({"bootstrap.servers": "127.0.0.1:1", "log_level": 0})
threading.Thread(target=client.list_topics, name="waits", daemon=True).start()
"""


def ended(program: str, *arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITNESS + textwrap.dedent(program), *map(str, arguments)]
    settings = {"capture_output": True, "text": True, "timeout": 240, "cwd": ROOT, "env": BUFFERED, **options}
    return subprocess.run(command, check=False, **settings)  # type: ignore[call-overload,no-any-return]


def test_threads_and_clients_that_are_left_behind_do_not_matter() -> None:
    done = ended(f"{STUCK}\nfrom ferry.ending import run_and_end\nrun_and_end(lambda: 7)")
    assert done.returncode == 7, done.stderr
    assert "'rdk:main'" in done.stderr, "there was a client to be left behind"
    assert "'waits'" in done.stderr


@pytest.mark.parametrize(
    ("main", "code", "shown"),
    [
        ("lambda: None", 0, ""),
        ("lambda: sys.exit()", 0, ""),
        ("lambda: sys.exit(4)", 4, ""),
        ("lambda: sys.exit('why')", 1, "why\n"),
        ("lambda: {}['no such key']", 1, "KeyError: 'no such key'"),
        ("lambda: signal.raise_signal(signal.SIGINT)", 130, ""),
    ],
)
def test_the_exit_code_is_the_one_that_was_meant(main: str, code: int, shown: str) -> None:
    done = ended(f"import signal, sys\nfrom ferry.ending import run_and_end\nrun_and_end({main})")
    assert (done.returncode, shown in done.stderr) == (code, True), done.stderr
    assert f"ended at once with {code}" in done.stderr


def test_a_temporary_directory_is_removed_even_if_a_signal_comes_between_the_block_and_its_end(tmp_path: Path) -> None:
    program = """
        import signal, sys
        from ferry.ending import interrupted_by_signals, run_and_end, temporary_directory
        kept = []
        def strike(frame, event, _):
            if event == "call" and frame.f_code.co_name == "__exit__" and frame.f_globals["__name__"] == "contextlib":
                sys.setprofile(None)
                signal.raise_signal(signal.SIGTERM)
        def main():
            try:
                with interrupted_by_signals():
                    with temporary_directory("left-") as directory:
                        print(directory.exists())
                        sys.setprofile(strike)
            except KeyboardInterrupt as problem:
                kept.append(problem)  # and so the frames in which the directory is still in use
                raise
        run_and_end(main)
    """
    done = ended(program, env={**BUFFERED, "TMPDIR": str(tmp_path)})
    assert (done.returncode, done.stdout) == (130, "True\n"), done.stderr
    assert list(tmp_path.iterdir()) == []


def test_what_an_orderly_end_does_is_done(tmp_path: Path) -> None:
    program = """
        import atexit, logging, logging.handlers, pathlib, sys, tempfile
        from ferry.ending import run_and_end
        target = logging.FileHandler(sys.argv[1], delay=True)
        memory = logging.handlers.MemoryHandler(1000, target=target)
        kept = tempfile.TemporaryDirectory(dir=pathlib.Path(sys.argv[1]).parent)
        def main():
            logging.getLogger().addHandler(memory)
            logging.warning("logged")
            atexit.register(print, "registered")
            sys.stdout.write("written")
        run_and_end(main)
    """
    done = ended(program, tmp_path / "log")
    assert (done.returncode, done.stdout) == (0, "writtenregistered\n"), done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["log"], "temporary files are gone"
    assert (tmp_path / "log").read_text() == "logged\n"


def test_output_that_cannot_be_written_is_no_success() -> None:
    program = "from ferry.ending import run_and_end\nrun_and_end(lambda: print('a document'))"
    with Path("/dev/full").open("w", encoding="ascii") as full:
        lost = ended(program, capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert (lost.returncode, "No space left on device" in lost.stderr) == (1, True)
    reading, writing = os.pipe()
    os.close(reading)
    left = ended(program, capture_output=False, stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    assert (left.returncode, "BrokenPipe" in left.stderr) == (1, False)


@pytest.mark.parametrize("closing", ["2>&-", "<&- 2>&-", "<&- >&- 2>&-"])
def test_no_connection_gets_the_descriptor_of_a_closed_stream(closing: str, tmp_path: Path) -> None:
    program = """
        import pathlib, socket, sys
        from ferry.ending import run_and_end
        run_and_end(lambda: pathlib.Path(sys.argv[1]).write_text(str(socket.socket().fileno())) and 0)
    """
    command = ["sh", "-c", f'exec "$@" {closing}', "sh", sys.executable, "-c", textwrap.dedent(program), str(tmp_path / "number")]
    subprocess.run(command, check=True, timeout=240, cwd=ROOT, env=BUFFERED)
    assert int((tmp_path / "number").read_text()) > 2


@pytest.mark.parametrize(
    ("main", "code", "output"),
    [
        ("lambda: 7", 7, ""),
        ("lambda: sys.exit('why')", 1, ""),
        ("lambda: 1 / 0", 1, ""),
        ("lambda: print('a message', file=sys.stderr) or 7", 7, ""),
        ("lambda: print('a long message' * 9_000, file=sys.stderr)", 0, ""),
        ("lambda: print('a name that is no UTF-8: \\udcff', file=sys.stderr) or 7", 7, ""),
        ("lambda: setattr(sys, 'stderr', open('/dev/full', 'w')) or print('unseen', file=sys.stderr) or 7", 7, ""),
        ("lambda: print('a document')", 0, "a document\n"),
    ],
)
@pytest.mark.parametrize("closing", ["2>&-", "2>/dev/full"])
def test_messages_that_nobody_can_see_change_no_exit_code(main: str, code: int, output: str, closing: str) -> None:
    program = f"import logging, sys\nfrom ferry.ending import run_and_end\nlogging.warning('unseen')\nrun_and_end({main})"
    command = ["sh", "-c", f'exec "$@" {closing}', "sh", sys.executable, "-c", program]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=240, cwd=ROOT, env=BUFFERED)
    assert (done.returncode, done.stdout) == (code, output)


@pytest.mark.parametrize("arguments", [("status", "no-such-file.properties", "--flow", "A->B"), ("status",), ("no-such-command",)])
def test_a_command_whose_messages_cannot_be_written_ends_with_its_own_exit_code(arguments: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w", encoding="ascii") as full:
        command = [sys.executable, "-m", "ferry.cli.main", *arguments]
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=full, timeout=240, cwd=ROOT, env=BUFFERED)
    assert (done.returncode, done.stdout) == (2, b"")


def test_output_that_cannot_be_written_is_no_success_though_nobody_can_be_told() -> None:
    program = "from ferry.ending import run_and_end\nrun_and_end(lambda: print('a document'))"
    command = ["sh", "-c", 'exec "$@" >/dev/full 2>&-', "sh", sys.executable, "-c", program]
    assert subprocess.run(command, check=False, timeout=240, cwd=ROOT, env=BUFFERED).returncode == 1


@pytest.mark.parametrize(
    ("program", "arguments", "code"),
    [
        ("from ferry.cli.main import main; main()", ("plan", "no-such-file.properties", "--flow", "A->B"), 2),
        ("from ferry.cli.main import main; main()", ("completion", "bash"), 0),
        ("import runpy; runpy.run_module('ferry.cli.main', run_name='__main__')", ("--help",), 0),
        ("import runpy; runpy.run_path('spark_jobs/copy_ranges.py', run_name='__main__')", ("no-such-file.properties",), 2),
        ("import runpy; runpy.run_path('spark_jobs/verify.py', run_name='__main__')", ("no-such-file.properties",), 2),
        ("import runpy; runpy.run_module('ferry.page.reader_process', run_name='__main__')", ("not-a-descriptor",), 1),
        ("import runpy; runpy.run_module('demo', run_name='__main__')", ("--help",), 0),
    ],
    ids=["ferry", "ferry in order", "python -m ferry.cli.main", "copy job", "verify job", "page's reader", "demo"],
)
def test_every_way_in_has_this_way_out(program: str, arguments: tuple[str, ...], code: int) -> None:
    silent, speaker = os.pipe()  # the page's reader ends with 0 where its stdin does
    done = ended(program, *arguments, stdin=silent)
    os.close(silent)
    os.close(speaker)
    assert (done.returncode, f"ended at once with {code}" in done.stderr) == (code, True), done.stderr


def test_a_command_that_fails_has_closed_its_clients(tmp_path: Path) -> None:
    config = tmp_path / "mm2.properties"
    clusters = [
        f"{alias}.{entry}"
        for alias, port in (("A", 1), ("B", 2))
        for entry in (f"bootstrap.servers = 127.0.0.1:{port}", "security.protocol = PLAINTEXT")
    ]
    config.write_text("\n".join(["clusters = A, B", "A->B.enabled = true", "A->B.topics = t", *clusters, ""]))
    program = """
        from ferry.cli.main import main
        from ferry.clusters.logs import internal_reader
        internal_reader.CONTACT_MILLISECONDS = 500
        main()
    """
    done = ended(program, "format", "state", config, "--flow", "A->B")
    assert (done.returncode, "ended at once with 3, beside []" in done.stderr) == (3, True), done.stderr


def test_a_second_interruption_ends_what_hangs_at_the_end() -> None:
    program = """
        import atexit, os, signal
        from ferry.ending import run_and_end
        atexit.register(signal.raise_signal, signal.SIGINT)
        run_and_end(lambda: None)
    """
    assert ended(program).returncode == -signal.SIGINT
