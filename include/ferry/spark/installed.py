"""Makes PySpark start faster: from the installed package, and without pandas. This saves more than a CPU second per process.

Spark puts zipped sources of PySpark before everything else on PYTHONPATH. Python cannot store compiled modules in a zip, so every driver
and worker compiles them again; the installed package has the same modules compiled. And PySpark imports pandas, if it is installed, when it
first converts an argument for the JVM.
"""

import importlib.machinery
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PANDAS = ("pandas", "pyarrow")


def prefer_installed_pyspark() -> None:
    """Remove the zips of the installed PySpark from the path, where the package itself comes later. Call it before importing pyspark.

    Zips of another Spark stay: they are the cluster's own version.
    """
    for entry in list(sys.path):
        library = Path(entry).parent
        if entry.endswith("pyspark.zip") and library.parts[-3:] == ("pyspark", "python", "lib"):
            rest = [other for other in sys.path if Path(other).parent != library]
            found = importlib.machinery.PathFinder.find_spec("pyspark", rest), importlib.machinery.PathFinder.find_spec("py4j", rest)
            if all(found) and found[0] and found[0].origin == str(library.parents[1] / "__init__.py"):
                sys.path[:] = rest


@contextmanager
def without_pandas() -> Iterator[None]:
    """Inside, imports of pandas and pyarrow fail as if they were not installed. RDDs need neither."""
    hidden = [name for name in PANDAS if name not in sys.modules]
    # The import system's own way to say that there is no such module.
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in hidden:
            sys.modules.pop(name, None)
