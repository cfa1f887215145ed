"""An archive of the classes of Spark's driver (JEP 350): the JVM starts a second sooner, with a third less CPU time.

The first run on a machine writes the archive when its JVM ends, under a temporary name, and then renames it. The name depends on the
versions of Java and Spark; the JVM ignores an archive that does not fit.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from ferry.cache import cache_directory

# Hides warnings: about an archive that does not fit, and about the many classes of Spark that cannot be archived.
QUIET = "-Xlog:disable -Xlog:all=error:stderr"


class ClassArchive:
    """The archive for one Spark and the Java that runs it."""

    def __init__(self, spark_home: Path) -> None:
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
        writable = os.access(self.path.parent, os.W_OK)
        return self.use or (f'"-XX:ArchiveClassesAtExit={self._scratch}" {QUIET}' if writable else "")

    def keep(self, *, good: bool) -> None:
        """After the JVM has ended: keep the archive that it wrote if the run was `good`, else remove it."""
        if self._scratch.exists():
            if good:
                self._scratch.replace(self.path)
            else:
                self._scratch.unlink()


def _made_from(spark_home: Path) -> str:
    home = os.environ.get("JAVA_HOME")
    java = Path(home) / "bin" / "java" if home else Path(shutil.which("java") or "java")
    parts = []
    for path in (java.resolve(), spark_home.resolve() / "jars"):
        changed = path.stat().st_mtime_ns if path.exists() else 0
        parts.append(f"{path} {changed}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]
