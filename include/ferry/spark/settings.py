"""The Spark configuration of Ferry's jobs: quick to start, one attempt for each task, no secrets.

Spark must not run a task again by itself: Ferry's driver decides which lanes run again, after fencing.
"""

import hashlib
import os
import shutil
import sys
from pathlib import Path

from ferry.cache import cache_directory

LOOPBACK = "127.0.0.1"
# For the driver, which only schedules, and for spark-submit's launcher, a JVM that only builds the driver's command line. With a serial
# collector and no optimising compiler the driver starts a second sooner, with a third less CPU time. With a small first heap it uses again
# what it has freed, instead of more and more of a heap that begins with a 64th of the machine's memory: 50 MiB less.
JAVA_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xms48m -Xmn16m"
# Hides warnings: about an archive that does not fit, and about the many classes of Spark that cannot be archived.
QUIET = "-Xlog:disable -Xlog:all=error:stderr"


def spark_conf(master: str, java_options: str = "") -> dict[str, str]:
    """Spark properties for one job on `master`. `java_options`: further ones of the driver."""
    conf = {
        "spark.task.maxFailures": "1",
        "spark.speculation": "false",
        "spark.python.worker.faulthandler.enabled": "true",
        "spark.python.worker.reuse": "true",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "WARN",
        "spark.driver.extraJavaOptions": f"{JAVA_OPTIONS} {java_options}".rstrip(),
        "spark.python.daemon.module": "ferry.spark.worker_daemon",
        # If the user sets spark.pyspark.python, it is for executors: the driver always uses this Python.
        "spark.pyspark.driver.python": sys.executable,
        "spark.executorEnv.PYTHONUNBUFFERED": "1",
    }
    if master.startswith("local") or "//127.0.0.1" in master or "//localhost" in master:
        conf |= {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
    return conf


def spark_environment(spark_home: str) -> dict[str, str]:
    """What spark-submit needs in its environment: this very Python for driver and local workers."""
    return {
        "SPARK_HOME": spark_home,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONUNBUFFERED": "1",
        "SPARK_LAUNCHER_OPTS": JAVA_OPTIONS,
    }


class ClassArchive:
    """An archive of the classes of Spark's driver (JEP 350), for one Spark and the Java that runs it.

    The JVM starts a second sooner with it, with a third less CPU time. The first run on a machine writes the archive when its JVM ends,
    under a temporary name, and then renames it. The JVM ignores an archive that does not fit. If the class path has a directory, such
    as one with Spark's configuration, the JVM could not write the archive, and would end with exit code 1.
    """

    def __init__(self, spark_home: Path) -> None:
        self._home = spark_home
        self.path = cache_directory() / f"spark-classes-{_made_from(spark_home)}.jsa"
        self._scratch = self.path.with_suffix(f".{os.getpid()}.new")

    @property
    def use(self) -> str:
        """JVM options that use the archive; empty while there is none."""
        return f'"-XX:SharedArchiveFile={self.path}" {QUIET}' if self.path.exists() else ""

    @property
    def use_or_write(self) -> str:
        """JVM options that use the archive, or write it when the JVM ends. Call `keep` afterwards."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError:
            return ""
        writable = os.access(self.path.parent, os.W_OK) and not _has_directories(self._home)
        return self.use or (f'"-XX:ArchiveClassesAtExit={self._scratch}" {QUIET}' if writable else "")

    def keep(self, *, good: bool) -> None:
        """After the JVM has ended: keep the archive that it wrote if the run was `good`, else remove it."""
        if self._scratch.exists():
            if good:
                self._scratch.replace(self.path)
            else:
                self._scratch.unlink()


def _has_directories(spark_home: Path) -> bool:
    """Whether spark-submit puts more than Spark's jars on the class path (org.apache.spark.launcher.AbstractCommandBuilder)."""
    directories = [os.environ.get("SPARK_CONF_DIR") or spark_home / "conf", *map(os.environ.get, ("HADOOP_CONF_DIR", "YARN_CONF_DIR"))]
    return "SPARK_DIST_CLASSPATH" in os.environ or any(Path(path).is_dir() for path in directories if path)


def _made_from(spark_home: Path) -> str:
    home = os.environ.get("JAVA_HOME")
    java = Path(home) / "bin" / "java" if home else Path(shutil.which("java") or "java")
    paths = (java.resolve(), spark_home.resolve() / "jars")
    parts = [f"{path} {path.stat().st_mtime_ns if path.exists() else 0}" for path in paths]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]
