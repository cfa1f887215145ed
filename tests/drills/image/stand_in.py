"""A bare Debian 12 in a directory, and in it what stands for the image `apache/airflow`, where no image can be pulled.

`debootstrap` makes the directory from the mirror that this machine's apt names. A command runs in it by chroot, with mounts and processes
of its own: the kernel ends both with the command, so nothing is left to unmount. The network is this machine's.

All that is stood in for is in this module. `ENVIRONMENT`, `SHELL`, `CONTENTS` and `AIRFLOW` repeat what Airflow's own Dockerfile says about
user, directories, variables and virtual environment. Two things differ: Python is Debian's 3.11, and of the providers only `EXTRAS` are
there, in the versions that pip finds today. The entrypoint and the clients of other databases are missing.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

SUITE = "bookworm"
PACKAGES = "ca-certificates,python3,python3-venv"
HOME, USER = "/home/airflow", "50000:0"
SHELL = ("/bin/bash", "-o", "pipefail", "-o", "errexit", "-o", "nounset", "-c")
ENVIRONMENT = {
    "PATH": f"/root/bin:{HOME}/.local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "VIRTUAL_ENV": f"{HOME}/.local",
    "AIRFLOW_HOME": "/opt/airflow",
    "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
    "DEBIAN_FRONTEND": "noninteractive",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "PIP_CACHE_DIR": "/tmp/.cache/pip",  # noqa: S108 - as in the image
}
CONTENTS = (
    f"useradd --uid 50000 --gid 0 --home-dir {HOME} --create-home --shell /bin/bash airflow",
    "mkdir --parents /opt/airflow/dags /opt/airflow/logs && chown -R airflow:0 /opt/airflow && chmod -R g+rw /opt/airflow",
)
EXTRAS = "celery,cncf-kubernetes,fab,http,openlineage,postgres,statsd"
AIRFLOW = (
    f"python3 -m venv {HOME}/.local && pip install --quiet --upgrade pip",
    f"pip install --quiet --no-cache-dir 'apache-airflow[{EXTRAS}]=={{version}}'",
)
# How this machine reaches its registries.
REGISTRIES = re.compile(r"(?i)((pip|uv|ssl)_\w+|\w+_ca_bundle|(https?|no)_proxy)")
MIRROR_SECONDS = 30


@dataclass
class Root:
    """What the next instruction of a Dockerfile finds: the files in `place`, the user, the working directory and the variables."""

    place: Path
    user: str = "0:0"
    directory: str = "/"
    environment: dict[str, str] = field(default_factory=lambda: dict(ENVIRONMENT))

    def inside(self, path: str) -> Path:
        """Where this machine finds what has that path in the root. A relative path begins in the working directory."""
        return self.place / Path("/", self.directory, path).relative_to("/")

    def run(self, line: str, variables: Mapping[str, str] | None = None) -> str:
        """What the line prints, run as RUN does: as the user, in the directory, with the variables and the image's shell."""
        user, group = self.user.split(":")
        (home,) = re.findall(rf"^\w+:[^:]*:{user}:.*:(/[^:]*):", self.inside("/etc/passwd").read_text(), re.MULTILINE)
        names = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--root", str(self.place), "--wd", self.directory, "--mount-proc"]
        machine = {name: value for name, value in os.environ.items() if REGISTRIES.fullmatch(name)}
        done = subprocess.run(
            [*names, "--setuid", user, "--setgid", group, *SHELL, line],
            env={**machine, **self.environment, "HOME": home, **(variables or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{line}\n{done.stdout[-6000:]}"
        return done.stdout


def missing() -> str:
    """What this machine lacks; empty if nothing."""
    if os.geteuid() != 0:
        return "it needs root, for chroot and mounts"
    if absent := [name for name in ("apt-get", "debootstrap", "unshare") if not shutil.which(name)]:
        return f"it needs {', '.join(absent)} (on Debian 12: apt-get install debootstrap)"
    mirror = next((address for suite, address in _mirrors() if suite == SUITE), "")
    try:
        urllib.request.urlopen(f"{mirror.rstrip('/')}/dists/{SUITE}/Release", timeout=MIRROR_SECONDS).close()  # noqa: S310 - apt's own address
    except (OSError, ValueError) as problem:
        return f"it needs a mirror of Debian {SUITE} that apt names and that answers: {problem}"
    return ""


def bare_debian(place: Path) -> Root:
    """Debian with its security updates, Python and certificates, that reaches registries as this machine does."""
    mirrors = _mirrors()
    mirror = next(address for suite, address in mirrors if suite == SUITE)
    made = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", SUITE, str(place), mirror]
    subprocess.run(made, check=True, stdout=subprocess.DEVNULL)
    root = Root(place)
    root.inside("/etc/apt/sources.list").write_text("".join(f"deb {address} {suite} main\n" for suite, address in mirrors))
    for name in ("/etc/resolv.conf", "/etc/hosts", "/etc/pip.conf"):
        if Path(name).exists():
            shutil.copy(name, root.inside(name))
    certificates = "/usr/local/share/ca-certificates"
    if Path(certificates).exists():
        shutil.copytree(certificates, root.inside(certificates), dirs_exist_ok=True)
    root.inside("/dev/shm").chmod(0o1777)  # noqa: S108 - Docker mounts one that everybody may write to
    root.run("update-ca-certificates")
    return root


def airflow_image(root: Root, version: str) -> None:
    """What FROM would have brought."""
    for line in CONTENTS:
        root.run(line)
    root.user, root.directory = USER, "/opt/airflow"
    for line in AIRFLOW:
        root.run(line.format(version=version))


def _mirrors() -> list[tuple[str, str]]:
    """Suite and address of every source of Debian 12 that this machine's apt has."""
    told = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(RELEASE) $(REPO_URI) $(COMPONENT)", "Created-By: Packages"],
        capture_output=True,
        text=True,
        check=True,
    )
    return sorted(set(re.findall(rf"^({SUITE}(?:-updates|-security)?) (\S+) main$", told.stdout, re.MULTILINE)))
