"""The search for secrets finds what is planted, and nothing else."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import urllib.parse
from pathlib import Path

import pytest
from tests.drills.security.guarded import PASSWORD
from tests.drills.security.searching import Search, Watch
from tests.waiting import until

pytestmark = pytest.mark.unit

PLANTED = {
    "as it is": PASSWORD,
    "JSON": json.dumps({"a": PASSWORD}),
    "JSON in JSON": json.dumps(json.dumps({"a": PASSWORD})),
    "URL": urllib.parse.urlencode({"a": PASSWORD}),
    "hexadecimal": PASSWORD.encode().hex(),
    "repr": repr({"a": PASSWORD}),
    **{f"base64 at {start}": base64.b64encode(b"x" * start + PASSWORD.encode() + b"tail").decode() for start in range(6)},
    "Basic header": base64.urlsafe_b64encode(f"some-client:{PASSWORD}".encode()).decode(),
}


@pytest.mark.parametrize("form", PLANTED)
def test_every_form_is_found(form: str) -> None:
    search = Search({"password": PASSWORD, "other": "something-else-s3cret"})
    search.look("log: 1", f"before {PLANTED[form]} behind")
    assert search.found == {"password in log: 1"}
    search.look("log: 2", "before [hidden] behind")
    assert len(search.found) == 1


def test_arguments_environment_and_files_are_watched(tmp_path: Path) -> None:
    search = Search({"argument": "argument-s3cret", "variable": "variable-s3cret", "file": "file-s3cret", "allowed": "allowed-s3cret"})
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(3600)', 'argument-s3cret'])"
    process = subprocess.Popen([sys.executable, "-c", code], env={"V": "variable-s3cret", "W": "allowed-s3cret"}, start_new_session=True)
    try:
        with Watch(search, process.pid, tmp_path, leave=["allowed"]):
            passing = tmp_path / "passing"
            passing.write_text("file-s3cret")
            until(lambda: len({line.split()[0] for line in search.found}) == 3, lambda: search.found)
            passing.unlink()
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert {line.split()[0] for line in search.found} == {"argument", "variable", "file"}
