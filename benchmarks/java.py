"""MirrorMaker 2's jars, resolved once by the Ivy that ships in PySpark."""

from __future__ import annotations

import subprocess
from importlib.util import find_spec
from pathlib import Path

KAFKA_VERSION = "4.3.1"
# connect-runtime holds the workers of the dedicated mode; slf4j-simple makes them log.
COORDINATES = (
    ("org.apache.kafka", "connect-mirror", KAFKA_VERSION),
    ("org.apache.kafka", "connect-runtime", KAFKA_VERSION),
    ("org.slf4j", "slf4j-simple", "1.7.36"),
)
# A cold cache downloads about 34 MB.
RESOLVE_SECONDS = 600
DIRECTORY = Path(".ferry/benchmark/jars")
_COMPLETE = "complete"


def mirror_maker_classpath(directory: Path = DIRECTORY) -> str:
    """A Java class path of MirrorMaker 2; downloads on first use. CalledProcessError when Ivy cannot resolve."""
    if not (directory / _COMPLETE).exists():
        directory.mkdir(parents=True, exist_ok=True)
        for organisation, module, revision in COORDINATES:
            _retrieve(organisation, module, revision, directory)
        (directory / _COMPLETE).touch()
    return f"{directory.resolve()}/*"


def _retrieve(organisation: str, module: str, revision: str, directory: Path) -> None:
    command = ["java", "-cp", str(_ivy()), "org.apache.ivy.Main", "-dependency", organisation, module, revision, "-confs", "default"]
    command += ["-retrieve", f"{directory}/[artifact]-[revision].[ext]"]
    subprocess.run(command, check=True, capture_output=True, timeout=RESOLVE_SECONDS)


def _ivy() -> Path:
    pyspark = find_spec("pyspark")
    if pyspark is None or pyspark.origin is None:
        raise FileNotFoundError("PySpark is not installed: run `make setup`")
    return next((Path(pyspark.origin).parent / "jars").glob("ivy-*.jar"))
