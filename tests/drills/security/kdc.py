"""A Kerberos KDC on 127.0.0.1 from Debian's packages, whose tickets live for seconds."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.waiting import NEVER_SECONDS

from ferry.sandbox.ports import free_ports

REALM = "FERRY.TEST"
TICKET_SECONDS = 8
# Debian keeps them where only root looks.
_PROGRAMS = f"{os.environ['PATH']}:/usr/sbin"
POLL_SECONDS = 0.1


def missing() -> str:
    """What a test needs and this machine lacks; empty if everything is there."""
    programs = [name for name in ("krb5kdc", "kdb5_util", "kadmin.local") if shutil.which(name, path=_PROGRAMS) is None]
    return f"no {', '.join(programs)}: apt-get install krb5-kdc krb5-admin-server" if programs else ""


@dataclass
class Kdc:
    """`config` is its krb5.conf."""

    directory: Path
    config: Path
    port: int

    def run(self, *command: str) -> None:
        found = shutil.which(command[0], path=_PROGRAMS)
        assert found
        subprocess.run([found, *command[1:]], env=self._environment(), check=True, capture_output=True, timeout=NEVER_SECONDS)

    def keytab(self, principal: str) -> Path:
        """A new principal, and the file with its keys."""
        path = self.directory / f"{principal.replace('/', '-')}.keytab"
        self.run("kadmin.local", "-q", f'addprinc -randkey -maxlife "{TICKET_SECONDS} seconds" {principal}')
        self.run("kadmin.local", "-q", f"ktadd -k {path} {principal}")
        path.chmod(0o600)
        return path

    def start(self) -> subprocess.Popen[bytes]:
        program = shutil.which("krb5kdc", path=_PROGRAMS)
        assert program
        process = subprocess.Popen([program, "-n"], env=self._environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + NEVER_SECONDS
        while time.monotonic() < deadline:
            assert process.poll() is None, (self.directory / "kdc.log").read_text()
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return process
            time.sleep(POLL_SECONDS)
        raise AssertionError("the KDC does not listen")

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "KRB5_CONFIG": str(self.config), "KRB5_KDC_PROFILE": str(self.directory / "kdc.conf")}


@contextmanager
def running_kdc(directory: Path) -> Iterator[Kdc]:
    directory.mkdir()
    (port,) = free_ports(1)
    kdc = Kdc(directory, directory / "krb5.conf", port)
    # Java asks by UDP first, unless it is told not to.
    kdc.config.write_text(
        f"[libdefaults]\ndefault_realm = {REALM}\ndns_lookup_kdc = false\ndns_lookup_realm = false\nrdns = false\n"
        f"dns_canonicalize_hostname = false\nudp_preference_limit = 1\n"
        f"[realms]\n{REALM} = {{\nkdc = 127.0.0.1:{port}\n}}\n[domain_realm]\nlocalhost = {REALM}\n"
        f"[logging]\nkdc = FILE:{directory}/kdc.log\n"
    )
    (directory / "kdc.conf").write_text(
        f"[kdcdefaults]\nkdc_listen = 127.0.0.1:{port}\nkdc_tcp_listen = 127.0.0.1:{port}\n"
        f"[realms]\n{REALM} = {{\ndatabase_name = {directory}/principals\nkey_stash_file = {directory}/stash\nacl_file = {directory}/acl\n"
        f"max_life = {TICKET_SECONDS}s\n}}\n"
    )
    kdc.run("kdb5_util", "create", "-s", "-r", REALM, "-P", "master")
    process = kdc.start()
    try:
        yield kdc
    finally:
        process.kill()
        process.wait()
